// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace tutti::tune {
namespace {

/// What a change of algorithm from one size to the next has to win, over all sizes that follow, as a share of one size's time.
constexpr double kPriceOfChange = 0.03;

bool same(const TuningTime& a, const TuningTime& b) { return a.algorithm == b.algorithm && a.parameters == b.parameters; }

/// Losses by (size, contender): the logarithm of how many times the best's time it takes; infinite where not measured.
struct Losses {
  std::vector<uint64_t> sizes;
  std::vector<TuningTime> contenders;  // one time of each
  std::vector<std::vector<double>> at;

  explicit Losses(std::span<const TuningTime> times) {
    std::set<uint64_t> all_sizes;
    for (const TuningTime& time : times) all_sizes.insert(time.bytes);
    sizes.assign(all_sizes.begin(), all_sizes.end());
    for (const TuningTime& time : times) {
      const auto known = [&](const TuningTime& one) { return same(one, time); };
      if (std::none_of(contenders.begin(), contenders.end(), known)) contenders.push_back(time);
    }
    at.assign(sizes.size(), std::vector<double>(contenders.size(), std::numeric_limits<double>::infinity()));
    for (size_t s = 0; s < sizes.size(); ++s) fill(times, s);
  }

 private:
  void fill(std::span<const TuningTime> times, size_t s) {
    double best_ns = std::numeric_limits<double>::infinity();
    for (const TuningTime& time : times) {
      if (time.bytes == sizes[s]) best_ns = std::min(best_ns, time.ns);
    }
    for (const TuningTime& time : times) {
      if (time.bytes != sizes[s]) continue;
      for (size_t c = 0; c < contenders.size(); ++c) {
        if (same(contenders[c], time)) at[s][c] = std::log(std::max(time.ns, 1e-3) / std::max(best_ns, 1e-3));
      }
    }
  }
};

/// Which contender at which size, at the least total loss, changes included (dynamic programming).
std::vector<size_t> cheapest(const Losses& losses) {
  const size_t count = losses.contenders.size();
  std::vector<double> total = losses.at[0];
  std::vector<std::vector<size_t>> from(losses.sizes.size(), std::vector<size_t>(count, 0));
  for (size_t s = 1; s < losses.sizes.size(); ++s) {
    const auto least = static_cast<size_t>(std::min_element(total.begin(), total.end()) - total.begin());
    std::vector<double> next(count);
    for (size_t c = 0; c < count; ++c) {
      const bool stays = total[c] <= total[least] + kPriceOfChange;
      from[s][c] = stays ? c : least;
      next[c] = losses.at[s][c] + (stays ? total[c] : total[least] + kPriceOfChange);
    }
    total = std::move(next);
  }
  std::vector<size_t> path(losses.sizes.size());
  path.back() = static_cast<size_t>(std::min_element(total.begin(), total.end()) - total.begin());
  for (size_t s = path.size() - 1; s > 0; --s) path[s - 1] = from[s][path[s]];
  return path;
}

}  // namespace

std::vector<TuningRow> rows_of(std::span<const TuningTime> times) {
  std::vector<TuningRow> rows;
  if (times.empty()) return rows;
  const Losses losses(times);
  const std::vector<size_t> path = cheapest(losses);
  for (size_t s = 0; s < path.size(); ++s) {
    const bool last = s + 1 == path.size();
    if (!last && path[s] == path[s + 1]) continue;
    const double middle = last ? 0 : std::sqrt(static_cast<double>(losses.sizes[s]) * static_cast<double>(losses.sizes[s + 1]));
    const TuningTime& winner = losses.contenders[path[s]];
    rows.push_back({last ? UINT64_MAX : static_cast<uint64_t>(std::llround(middle)), winner.algorithm, winner.parameters, 0});
  }
  return rows;
}

void put_times(TuningSection& section, std::span<const TuningTime> times) {
  for (const TuningTime& time : times) {
    std::erase_if(section.times, [&](const TuningTime& old) { return old.bytes == time.bytes; });
  }
  section.times.insert(section.times.end(), times.begin(), times.end());
  std::stable_sort(section.times.begin(), section.times.end(),
                   [](const TuningTime& a, const TuningTime& b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.ns < b.ns; });
  section.rows = rows_of(section.times);
}

}  // namespace tutti::tune
