// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "select/select.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/types.hpp"
#include "override.hpp"
#include "tuned.hpp"

namespace tutti {
namespace {

/// Beyond this the last row goes on: costs grow in proportion to the size long before.
constexpr uint64_t kLargestProbeBytes = uint64_t{1} << 40;

/// Segments that stay in a core's caches, while messages are still few.
constexpr uint64_t kCachedSegmentBytes = 256 << 10;

/// info.parameters.size(): there is none.
size_t segment_parameter(const AlgorithmInfo& info) {
  const auto is_segment = [](const ParameterInfo& parameter) { return parameter.name == "segment_bytes"; };
  return static_cast<size_t>(std::find_if(info.parameters.begin(), info.parameters.end(), is_segment) - info.parameters.begin());
}

struct Candidate {
  const AlgorithmInfo* algorithm;
  Parameters parameters;
};

/// Compares the candidates at one size.
class Ranking {
 public:
  Ranking(std::vector<Candidate> candidates, const Shape& shape, const CostModel& model)
      : candidates_(std::move(candidates)), shape_(shape), model_(model) {}

  const Candidate& operator[](size_t index) const { return candidates_[index]; }
  double cost_ns(size_t index, uint64_t bytes) const {
    return candidates_[index].algorithm->cost_ns(shape_, bytes, candidates_[index].parameters, model_);
  }
  /// The cheapest but for those of `except`; of equals the first registered. candidates.size() when there is none.
  size_t best(uint64_t bytes, const AlgorithmInfo* except = nullptr) const {
    size_t winner = candidates_.size();
    for (size_t n = 0; n < candidates_.size(); ++n) {
      if (candidates_[n].algorithm == except) continue;
      if (winner == candidates_.size() || cost_ns(n, bytes) < cost_ns(winner, bytes)) winner = n;
    }
    return winner;
  }
  size_t size() const { return candidates_.size(); }

 private:
  std::vector<Candidate> candidates_;
  const Shape& shape_;
  const CostModel& model_;
};

struct Range {
  uint64_t first_bytes;
  uint64_t last_bytes;
  size_t winner;
};

/// Appends the ranges of [low, high]. Where the winners at the ends differ the range is halved until they are neighbours, so that
/// a third one that wins in between is found too.
void divide(const Ranking& ranking, uint64_t low, size_t low_winner, uint64_t high, size_t high_winner,
            std::vector<Range>& ranges) {
  if (low_winner == high_winner) {
    if (!ranges.empty() && ranges.back().winner == low_winner) {
      ranges.back().last_bytes = high;
    } else {
      ranges.push_back({low, high, low_winner});
    }
    return;
  }
  if (high - low == 1) {
    divide(ranking, low, low_winner, low, low_winner, ranges);
    divide(ranking, high, high_winner, high, high_winner, ranges);
    return;
  }
  const uint64_t middle = low + (high - low) / 2;
  const size_t middle_winner = ranking.best(middle);
  divide(ranking, low, low_winner, middle, middle_winner, ranges);
  divide(ranking, middle, middle_winner, high, high_winner, ranges);
}

std::string format_time(double ns) {
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.3g} s", ns / 1e9);
}

/// A power of two in the middle of the range (on a logarithmic scale), or its end: the size that the reason speaks of.
uint64_t typical_bytes(const Range& range) {
  const uint64_t last = std::min(range.last_bytes, std::max<uint64_t>(range.first_bytes * 16, uint64_t{1} << 20));
  const double middle = std::sqrt(static_cast<double>(std::max<uint64_t>(range.first_bytes, 1)) * static_cast<double>(last));
  uint64_t power = 1;
  while (power < range.first_bytes || static_cast<double>(power * 2) <= middle) power *= 2;
  return power <= range.last_bytes ? power : range.last_bytes;
}

std::string reason(const Ranking& ranking, const Range& range) {
  const std::string_view winner = ranking[range.winner].algorithm->name;
  const uint64_t bytes = typical_bytes(range);
  const size_t second = ranking.best(bytes, ranking[range.winner].algorithm);
  const std::string predicted = format_time(ranking.cost_ns(range.winner, bytes));
  if (second == ranking.size()) return fmt::format("{}: the only one for this shape, {} predicted", winner, predicted);
  return fmt::format("{}: {} predicted at {}, next best {} {}", winner, predicted, format_bytes(bytes),
                     ranking[second].algorithm->name, format_time(ranking.cost_ns(second, bytes)));
}

}  // namespace

CostModel cost_model(std::span<const uint32_t> node_of, bool node_slots, double cpus_per_rank) {
  // Within a node processors copy, to and from; where there are no slots, each message costs both ends system calls. Fitted to
  // what tutti-tune measured with 2 to 8 ranks on 2 processors.
  constexpr Price kSlots = {200, 0.04, 45, 2, 0.004};
  constexpr Price kLoopback = {1000, 0.2, 4400, 1.75, 0.02};
  constexpr Price kNetwork = {8000, 0.5, 2500, 1, 0.1};
  constexpr double kStepNs = 20;
  if (node_slots) return {node_of, kSlots, kNetwork, kStepNs, {cpus_per_rank, 600, 2000}};
  return {node_of, kLoopback, kNetwork, kStepNs, {cpus_per_rank, 500, 10000}};
}

bool nests(const Shape& shape) {
  return std::any_of(shape.group_of.begin(), shape.group_of.end(), [&](const std::vector<uint32_t>& level) {
    const uint32_t last = level.empty() ? 0 : *std::max_element(level.begin(), level.end());
    return last > 0 && last + 1 < shape.size;
  });
}

Result<std::vector<SelectionRow>> selection_table(Collective collective, const Shape& shape, std::string_view override_text,
                                                  const CostModel& model, const Requirements& required) {
  std::vector<SelectionRow> table;
  std::string passed_over;
  if (!override_text.empty()) {
    Result<Choice> forced = parse_override(collective, shape, override_text);
    if (!forced) return forced.status();
    const char* lack = lacks(*forced->algorithm, required);
    if (lack == nullptr) {
      table.push_back({UINT64_MAX, std::move(*forced)});
      return table;
    }
    passed_over = fmt::format(" (not {}, which the setting {} asks for: {})", forced->algorithm->name, name(collective), lack);
  }
  std::vector<Candidate> candidates;
  for (const AlgorithmInfo* info : all_algorithms()) {
    if (info->collective != collective || unusable(*info, shape, required) != nullptr) continue;
    candidates.push_back({info, default_parameters(*info)});
    const size_t segment = segment_parameter(*info);
    if (segment == info->parameters.size()) continue;
    candidates.push_back(candidates.back());
    candidates.back().parameters[segment] = kCachedSegmentBytes;
  }
  if (candidates.empty()) {
    return error(TUTTI_ERR_UNSUPPORTED, "there is no {} algorithm for {} ranks{}{}{}", name(collective), shape.size,
                 required.uneven ? ", uneven blocks" : "", required.ordered ? ", operations that do not commute" : "",
                 required.canonical ? ", deterministic mode" : "");
  }
  const Ranking ranking(std::move(candidates), shape, model);
  std::vector<Range> ranges;
  uint64_t low = 0;
  size_t low_winner = ranking.best(low);
  // Between neighbouring powers of two costs hardly bend: a winner of a part of such an interval only is not worth a row.
  for (uint64_t high = 1; high <= kLargestProbeBytes; high *= 2) {
    const size_t high_winner = ranking.best(high);
    divide(ranking, low, low_winner, high, high_winner, ranges);
    low = high;
    low_winner = high_winner;
  }
  ranges.back().last_bytes = UINT64_MAX;
  for (const Range& range : ranges) {
    const Candidate& winner = ranking[range.winner];
    table.push_back({range.last_bytes, {winner.algorithm, winner.parameters, reason(ranking, range) + passed_over}});
  }
  return table;
}

const SelectionRow& select(std::span<const SelectionRow> table, uint64_t bytes) {
  const auto row = std::partition_point(table.begin(), table.end(),
                                        [bytes](const SelectionRow& candidate) { return candidate.up_to_bytes < bytes; });
  return row == table.end() ? table.back() : *row;
}

}  // namespace tutti
