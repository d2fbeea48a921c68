// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// What a communicator knows of the choice: settings, measurements, and tables made of both.
#include <fmt/format.h>

#include <algorithm>

#include "override.hpp"
#include "select/select.hpp"
#include "tuned.hpp"

namespace tutti {

Selector::Selector(Shape shape, CostModel model, Overrides overrides)
    : shape_(std::move(shape)), model_(std::move(model)), overrides_(std::move(overrides)) {}

Status Selector::check() const {
  for (uint32_t c = 0; c < kCollectiveCount; ++c) {
    if (overrides_[c].empty()) continue;
    const auto collective = static_cast<Collective>(c);
    const Result<Choice> forced = parse_override(collective, shape_, overrides_[c]);
    if (!forced) return forced.status().with_context(fmt::format("setting `{}`", name(collective)));
  }
  return Status();
}

void Selector::set_tuning(std::shared_ptr<const TuningTable> tuning, uint32_t nodes, std::string links) {
  tuning_ = std::move(tuning);
  nodes_ = nodes;
  links_ = std::move(links);
  for (std::unique_ptr<Tables>& tables : tables_) tables.reset();
}

Status Selector::force(Collective collective, std::string_view override_text) {
  if (!override_text.empty()) {
    const Result<Choice> forced = parse_override(collective, shape_, override_text);
    if (!forced) return forced.status();
  }
  const auto c = static_cast<size_t>(collective);
  overrides_[c] = override_text;
  tables_[c].reset();
  return Status();
}

Result<std::span<const SelectionRow>> Selector::make(Collective collective, const Requirements& required) {
  const auto c = static_cast<size_t>(collective);
  Result<std::vector<SelectionRow>> made = selection_table(collective, shape_, overrides_[c], model_, required);
  if (!made) return made.status();
  if (tuning_ != nullptr && overrides_[c].empty()) {
    const TuningTable::Match match = tuning_->match({collective, required.type, shape_.size, nodes_, links_});
    if (match.section != nullptr) {
      made = apply_tuning(*made, *tuning_, match, shape_, required);
    } else {
      for (SelectionRow& row : *made) row.choice.reason += fmt::format(" ({})", match.how);
    }
  }
  for (SelectionRow& row : *made) row.number = number_of(collective, row.choice);
  if (tables_[c] == nullptr) tables_[c] = std::make_unique<Tables>();
  std::vector<SelectionRow>& table = (*tables_[c])[tuning_ == nullptr ? required.kind() % kModelKinds : required.kind()];
  table = std::move(*made);
  return std::span<const SelectionRow>(table);
}

uint16_t Selector::number_of(Collective collective, const Choice& choice) {
  std::vector<Known>& known = known_[static_cast<size_t>(collective)];
  const auto same = [&](const Known& one) { return one.algorithm == choice.algorithm && one.parameters == choice.parameters; };
  const auto at = std::find_if(known.begin(), known.end(), same);
  const auto number = static_cast<uint16_t>(at - known.begin());
  if (at == known.end()) known.push_back({choice.algorithm, choice.parameters});
  return number;
}

}  // namespace tutti
