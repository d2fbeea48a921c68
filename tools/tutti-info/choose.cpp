// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// Which algorithm a call uses, and what speaks for it.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/types.hpp"
#include "pages.hpp"
#include "schedule/collective.hpp"
#include "select/contenders.hpp"
#include "select/tuning.hpp"

namespace tutti::info {
namespace {

constexpr uint32_t kMaxRanks = 100'000;

Result<TypeClass> parse_type(const std::string& text) {
  for (size_t t = 0; t < kTypeClassCount; ++t) {
    if (name(static_cast<TypeClass>(t)) == text) return static_cast<TypeClass>(t);
  }
  const Result<DType> dtype = parse_dtype(text);
  if (!dtype.ok())
    return error(TUTTI_ERR_ARGUMENT, "--type: {}; classes are int, float, small_float, user", dtype.status().message());
  return type_class(*dtype);
}

Result<std::shared_ptr<const TuningTable>> load(const std::string& path) {
  if (path.empty()) return std::shared_ptr<const TuningTable>();
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(TUTTI_ERR_CONFIG, "cannot read {}: {}", path, std::strerror(errno));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Result<TuningTable> table = TuningTable::parse(text, path);
  if (!table.ok()) return table.status();
  return std::make_shared<const TuningTable>(std::move(*table));
}

Shape shape_of(const ChooseRequest& request) {
  Shape shape = Shape::flat(request.rank_count);
  if (request.node_count == 1) return shape;
  shape.group_of.emplace_back();
  for (uint64_t r = 0; r < request.rank_count; ++r)
    shape.group_of[0].push_back(static_cast<uint32_t>(r * request.node_count / request.rank_count));
  return shape;
}

double cpus_per_rank(const ChooseRequest& request) {
  const uint32_t ranks_per_node = (request.rank_count + request.node_count - 1) / request.node_count;
  return request.cpu_count == 0 ? INFINITY : static_cast<double>(request.cpu_count) / ranks_per_node;
}

std::string links_of(const ChooseRequest& request) {
  if (!request.links.empty()) return request.links;
  return links_text(request.node_count == request.rank_count ? "" : "shm", request.node_count == 1 ? "" : "tcp");
}

/// The measured size that says most of `bytes`; 0: none was measured.
uint64_t nearest_size(const TuningSection* section, uint64_t bytes) {
  uint64_t best = 0;
  double least = INFINITY;
  if (section == nullptr) return 0;
  for (const TuningTime& time : section->times) {
    const double distance = std::fabs(std::log2(static_cast<double>(std::max<uint64_t>(time.bytes, 1))) -
                                      std::log2(static_cast<double>(std::max<uint64_t>(bytes, 1))));
    if (distance >= least) continue;
    least = distance;
    best = time.bytes;
  }
  return best;
}

struct Row {
  std::string text;
  double predicted_ns = 0;
  double measured_ns = INFINITY;
};

std::string candidates_text(const ChooseRequest& request, const std::vector<Contender>& contenders, const Choice& choice,
                            const TuningSection* section, const CostModel& model) {
  const uint64_t size = nearest_size(section, request.bytes);
  const Shape shape = shape_of(request);
  std::vector<Row> rows;
  const auto row_of = [&](const AlgorithmInfo& algorithm, const Parameters& parameters) -> Row& {
    const std::string text = describe(algorithm, parameters);
    const auto known = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.text == text; });
    if (known != rows.end()) return *known;
    rows.push_back({text, algorithm.cost_ns(shape, request.bytes, parameters, model)});
    return rows.back();
  };
  for (const Contender& one : contenders) {
    if (one.excluded.empty()) row_of(*one.algorithm, one.parameters);
  }
  for (size_t n = 0; section != nullptr && n < section->times.size(); ++n) {
    const TuningTime& time = section->times[n];
    if (time.bytes == size) row_of(*time.algorithm, time.parameters).measured_ns = time.ns;
  }
  row_of(*choice.algorithm, choice.parameters);
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.measured_ns != b.measured_ns ? a.measured_ns < b.measured_ns : a.predicted_ns < b.predicted_ns;
  });
  const std::string chosen = describe(*choice.algorithm, choice.parameters);
  std::string text = fmt::format("  candidates{:<40} {:>12}{}\n", "", "predicted",
                                 size == 0 ? "" : fmt::format("   measured at {}", format_bytes(size)));
  for (const Row& row : rows) {
    text += fmt::format("  {} {:<48} {:>9.1f} us", row.text == chosen ? '*' : ' ', row.text, row.predicted_ns / 1000);
    if (std::isfinite(row.measured_ns)) text += fmt::format("   {:>9.1f} us", row.measured_ns / 1000);
    text += '\n';
  }
  return text;
}

}  // namespace

Result<std::string> choose_page(const ChooseRequest& request) {
  if (request.rank_count == 0 || request.rank_count > kMaxRanks)
    return error(TUTTI_ERR_ARGUMENT, "--ranks: {} is not from 1 to {}", request.rank_count, kMaxRanks);
  if (request.node_count == 0 || request.node_count > request.rank_count)
    return error(TUTTI_ERR_ARGUMENT, "--nodes: {} is not from 1 to {}", request.node_count, request.rank_count);
  const Result<TypeClass> type = parse_type(request.type);
  if (!type.ok()) return type.status();
  const Result<std::shared_ptr<const TuningTable>> tuning = load(request.tuning_file);
  if (!tuning.ok()) return tuning.status();
  const bool canonical = request.config.flag(Setting::deterministic) && reduces(request.collective);
  const Requirements required{request.uneven, request.ordered, canonical,
                              reduces(request.collective) ? *type : TypeClass::integers};
  const Shape shape = shape_of(request);
  const std::string links = links_of(request);
  const CostModel model = cost_model(shape.group_of.empty() ? std::vector<uint32_t>(shape.size, 0) : shape.group_of[0],
                                     links.find("shm") != links.npos, cpus_per_rank(request));
  Selector::Overrides overrides;
  const auto collective = static_cast<size_t>(request.collective);
  overrides[collective] = *request.config.lookup(name(request.collective));
  Selector selector(shape, model, std::move(overrides));
  TUTTI_TRY(selector.check());
  TuningTable::Match match;
  if (*tuning != nullptr) {
    selector.set_tuning(*tuning, request.node_count, links);
    match = (*tuning)->match({request.collective, required.type, request.rank_count, request.node_count, links});
  }
  const auto table = selector.table(request.collective, required);
  if (!table.ok()) return table.status();
  const Choice& choice = select(*table, request.bytes).choice;
  std::string text =
      fmt::format("{} of {} on {} ranks, {} node{}, over {}\n  choice: {}\n  why:    {}\n", name(request.collective),
                  format_bytes(request.bytes), request.rank_count, request.node_count, request.node_count == 1 ? "" : "s",
                  links.empty() ? "nothing" : links, describe(*choice.algorithm, choice.parameters), choice.reason);
  const std::vector<Contender> contenders = rank_contenders(request.collective, shape, request.bytes, model, required);
  text += candidates_text(request, contenders, choice, match.section, model);
  for (const Contender& one : contenders) {
    if (!one.excluded.empty()) text += fmt::format("  - {:<48} left out: {}\n", one.algorithm->name, one.excluded);
  }
  return text;
}

}  // namespace tutti::info
