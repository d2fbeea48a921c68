// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Which part of a tuning table a communicator takes, and what of it.
#include "select/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "override.hpp"
#include "tuned.hpp"

namespace tutti {
namespace {

double ratio(uint32_t a, uint32_t b) { return static_cast<double>(std::max(a, b)) / std::min(a, b); }

/// 0: all on one node; 1: several ranks on each of several; 2: a rank a node.
int placement(const TuningKey& key) { return key.nodes == 1 ? 0 : key.nodes < key.ranks ? 1 : 2; }

std::string place_text(const TuningKey& key) {
  return fmt::format("{} ranks on {} node{}", key.ranks, key.nodes, key.nodes == 1 ? "" : "s");
}

}  // namespace

std::string_view name(TypeClass type) noexcept {
  constexpr std::string_view kNames[kTypeClassCount] = {"int", "float", "small_float", "user"};
  return kNames[static_cast<size_t>(type)];
}

TypeClass type_class(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return TypeClass::small_floats;
    case DType::f32:
    case DType::f64:
    case DType::c64:
    case DType::c128:
    case DType::f32_i32:
    case DType::f64_i32:
      return TypeClass::floats;
    default:
      return TypeClass::integers;
  }
}

std::string links_text(std::string_view within_node, std::string_view between_nodes) {
  if (between_nodes.empty()) return std::string(within_node);
  if (within_node.empty()) return std::string(between_nodes);
  return fmt::format("{}/{}", within_node, between_nodes);
}

const TuningSection* TuningTable::find(const TuningKey& key) const noexcept {
  const auto at = std::find_if(sections_.begin(), sections_.end(), [&](const TuningSection& one) { return one.key == key; });
  return at == sections_.end() ? nullptr : &*at;
}

TuningSection& TuningTable::section(const TuningKey& key) {
  auto at = std::lower_bound(sections_.begin(), sections_.end(), key,
                             [](const TuningSection& one, const TuningKey& wanted) { return one.key < wanted; });
  if (at == sections_.end() || at->key != key) {
    at = sections_.insert(at, TuningSection());
    at->key = key;
  }
  return *at;
}

void TuningTable::add_machine(std::string_view machine) {
  if (machine.empty() || std::find(machines_.begin(), machines_.end(), machine) != machines_.end()) return;
  machines_.emplace_back(machine);
}

TuningTable::Match TuningTable::match(const TuningKey& wanted) const {
  using Score = std::tuple<double, int, bool, uint32_t>;  // the less the better
  Match best;
  Score best_score;
  for (const TuningSection& one : sections_) {
    const TuningKey& key = one.key;
    if (key.collective != wanted.collective || one.rows.empty()) continue;
    if ((!key.links.empty() && key.links != wanted.links) || placement(key) != placement(wanted)) continue;
    const double ranks = ratio(key.ranks, wanted.ranks);
    const double nodes = ratio(key.nodes, wanted.nodes);
    if (ranks > kFarthest || nodes > kFarthest) continue;
    const int type = key.type == wanted.type ? 0 : key.type == TypeClass::floats ? 1 : 2;
    const Score score{ranks * nodes, type, key.links.empty(), key.ranks};
    if (best.section != nullptr && best_score <= score) continue;
    best.section = &one;
    best_score = score;
  }
  if (best.section == nullptr) {
    best.how = fmt::format("{} has nothing near {}{}{}", origin_, place_text(wanted), wanted.links.empty() ? "" : " over ",
                           wanted.links);
    return best;
  }
  const TuningKey& key = best.section->key;
  best.how = fmt::format("measured on {}", place_text(key));
  if (key.ranks != wanted.ranks || key.nodes != wanted.nodes) best.how += fmt::format(", the nearest to {}", place_text(wanted));
  if (key.type != wanted.type) best.how += fmt::format(", with type {}", name(key.type));
  return best;
}

const char* unusable(const AlgorithmInfo& algorithm, const Shape& shape, const Requirements& required) {
  if (const char* why = unfit_for(algorithm, shape)) return why;
  if (const char* why = lacks(algorithm, required)) return why;
  return algorithm.has(kNested) && !nests(shape) ? "it is for nested ranks" : nullptr;
}

std::vector<SelectionRow> apply_tuning(const std::vector<SelectionRow>& model, const TuningTable& table,
                                       const TuningTable::Match& match, const Shape& shape, const Requirements& required) {
  std::vector<SelectionRow> result;
  uint64_t first = 0;
  /// The model's rows from `first` to `last`.
  const auto take_model = [&](uint64_t last, const std::string& why) {
    for (const SelectionRow& row : model) {
      if (row.up_to_bytes < first) continue;
      result.push_back({std::min(row.up_to_bytes, last), row.choice});
      result.back().choice.reason += why;
      if (row.up_to_bytes >= last) break;
    }
  };
  for (const TuningRow& row : match.section->rows) {
    const std::string place = fmt::format("{}:{}", table.origin(), row.line);
    if (const char* why = unusable(*row.algorithm, shape, required)) {
      take_model(row.up_to_bytes, fmt::format(" (not {}, which {} says: {})", row.algorithm->name, place, why));
    } else {
      const std::string what = describe(*row.algorithm, row.parameters);
      result.push_back({row.up_to_bytes, {row.algorithm, row.parameters, fmt::format("{}: {} ({})", what, match.how, place)}});
    }
    if (row.up_to_bytes == UINT64_MAX) return result;
    first = row.up_to_bytes + 1;
  }
  take_model(UINT64_MAX, fmt::format(" (beyond what {} says)", table.origin()));
  return result;
}

}  // namespace tutti
