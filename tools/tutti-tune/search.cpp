// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "search.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

namespace tutti::tune {
namespace {

/// So many times the best's time is too much, by round. Few measurements say little: at first only what is hopeless goes.
constexpr double kTooSlow[] = {6, 4, 2.5, 1.8, 1.5, 1.35, 1.25};
/// Among the faster half, or so near to the best, nobody goes after few rounds.
constexpr double kNear = 1.08;
constexpr size_t kFewest = 3;
constexpr size_t kFirstHalving = 3;  // round

double too_slow(size_t round) { return kTooSlow[std::min(round, std::size(kTooSlow) - 1)]; }

}  // namespace

Search::Search(const std::vector<bool>& takes_part) : contenders_(takes_part.size()) {
  for (size_t n = 0; n < takes_part.size(); ++n) {
    if (takes_part[n]) alive_.push_back(n);
  }
}

void Search::withdraw(size_t contender) {
  std::erase(alive_, contender);
  contenders_[contender] = Contender();
}

void Search::prune(size_t round) {
  std::vector<size_t> order = alive_;
  if (order.empty()) return;
  std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) { return least_ns(a) < least_ns(b); });
  const size_t faster_half = std::max(kFewest, (order.size() + 1) / 2);
  for (size_t place = 1; place < order.size(); ++place) {
    const double behind = least_ns(order[place]) / least_ns(order[0]);
    const bool halved = round >= kFirstHalving && place >= faster_half && behind > kNear;
    if (!contenders_[order[place]].kept && (behind > too_slow(round) || halved)) std::erase(alive_, order[place]);
  }
}

// Of few times most may be disturbed: the least tells the most of them.
double Search::least_ns(size_t contender) const {
  const Contender& one = contenders_[contender];
  const double first_ns = one.first_ns > 0 ? one.first_ns : std::numeric_limits<double>::infinity();
  return one.ns[0].empty() ? first_ns : std::min(first_ns, *std::min_element(one.ns[0].begin(), one.ns[0].end()));
}

// A time is the contender's own, times what the round is slower than others, times what met it alone. The first two are estimated
// in turn, once: a round is as slow as it is for who is slowed down the least.
std::vector<double> Search::slowness_of_rounds(size_t half) const {
  std::vector<double> slowness;
  for (const Contender& one : contenders_) {
    const double own_ns = mean_of_lowest(one.ns[half]);
    if (slowness.size() < one.ns[half].size()) slowness.resize(one.ns[half].size(), std::numeric_limits<double>::infinity());
    for (size_t round = 0; round < one.ns[half].size(); ++round)
      slowness[round] = std::min(slowness[round], one.ns[half][round] / own_ns);
  }
  return slowness;
}

double Search::ns(size_t contender, size_t half) const {
  const Contender& one = contenders_[contender];
  if (one.ns[half].empty()) return one.first_ns > 0 ? one.first_ns : std::numeric_limits<double>::infinity();
  const std::vector<double> slowness = slowness_of_rounds(half);
  std::vector<double> own_ns;
  for (size_t round = 0; round < one.ns[half].size(); ++round) own_ns.push_back(one.ns[half][round] / slowness[round]);
  return mean_of_lowest(std::move(own_ns));
}

size_t Search::best(size_t half) const {
  size_t winner = SIZE_MAX;
  for (const size_t n : alive_) {
    if (winner == SIZE_MAX || ns(n, half) < ns(winner, half)) winner = n;
  }
  return winner;
}

double mean_of_lowest(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::infinity();
  std::sort(values.begin(), values.end());
  const size_t count = (values.size() + 2) / 3;
  return std::accumulate(values.begin(), values.begin() + static_cast<ptrdiff_t>(count), 0.0) / static_cast<double>(count);
}

bool worth_a_try(const Past& past) {
  constexpr double kFarBehind = 3;
  constexpr double kCatchingUp = 0.8;  // of the size before
  if (past.last < kFarBehind) return true;
  return past.before > 0 && past.last < kCatchingUp * past.before;
}

}  // namespace tutti::tune
