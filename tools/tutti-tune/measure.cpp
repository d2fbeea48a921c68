// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <algorithm>

#include "base/types.hpp"

namespace tutti::tune {
namespace {

constexpr uint64_t kLargeBytes = 1 << 20;  // here the first call costs hardly more than the next
constexpr uint64_t kMostCalls = 1000;

uint64_t calls_in(double block_ns, double call_ns) {
  return static_cast<uint64_t>(std::clamp(block_ns / std::max(call_ns, 1.0), 1.0, static_cast<double>(kMostCalls)));
}

}  // namespace

void measure(Bench& bench, const Point& point, const std::vector<std::string>& contenders, const Effort& effort, bool judge,
             Search& search) {
  const std::vector<size_t> everybody = search.alive();
  for (const size_t one : everybody) {
    if (!bench.force(contenders[one])) {
      search.withdraw(one);
      continue;
    }
    if (point.bytes < kLargeBytes) bench.warm_up(point);
    search.record_first(one, bench.time(point, 1));
  }
  search.prune(0);
  double spent_ns = 0;
  const size_t halves = judge ? 2 : 1;
  for (size_t round = 1; round <= effort.most_rounds * halves; ++round) {
    const size_t half = judge ? (round + 1) % 2 : 0;
    std::vector<size_t> order = search.alive();
    if (order.empty()) return;
    // Nobody always follows the same one.
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(round / halves % order.size()), order.end());
    for (const size_t one : order) {
      bench.force(contenders[one]);
      const uint64_t calls = calls_in(effort.block_ns, search.ns(one));
      if (calls > 1 || point.bytes < kLargeBytes) bench.warm_up(point);
      const double ns = bench.time(point, calls);
      search.record(one, ns, half);
      spent_ns += ns * static_cast<double>(calls);
    }
    if (half == 0) search.prune((round + 1) / halves);
    const bool even = round % halves == 0;
    if (even && round >= effort.least_rounds * halves && spent_ns >= effort.point_ns * static_cast<double>(halves)) return;
    if (!judge && search.alive().size() == 1 && round >= 2) return;
  }
}

std::vector<std::string> texts_of(const std::vector<Contender>& contenders) {
  std::vector<std::string> texts;
  for (const Contender& one : contenders) texts.push_back(describe(*one.algorithm, one.parameters));
  return texts;
}

}  // namespace tutti::tune
