// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace tutti::tune {

/// Finds the fastest of several by successive halving: who is far behind after few measurements is not measured again. Times are
/// kept in two halves, so that what was found by one can be judged by the other. Pure: the same times give the same course on all
/// ranks.
class Search {
 public:
  /// takes_part[i]: whether contender i does from the beginning.
  explicit Search(const std::vector<bool>& takes_part);

  /// Those still measured, in the order of their numbers.
  const std::vector<size_t>& alive() const noexcept { return alive_; }
  /// Measured to the end, however slow.
  void keep(size_t contender) { contenders_[contender].kept = true; }
  /// Takes no part any more, and has no time.
  void withdraw(size_t contender);
  /// A first call, in which much is done for the first time: counts until there is something better.
  void record_first(size_t contender, double ns) { contenders_[contender].first_ns = ns; }
  /// Once a round for each that is alive.
  void record(size_t contender, double ns, size_t half = 0) { contenders_[contender].ns[half].push_back(ns); }
  /// After a round (0: the first calls) whose times are in half 0: drops those behind.
  void prune(size_t round);

  /// The mean of the lowest third of the times, each without what slows all of its round down. Infinity where nothing was
  /// recorded.
  double ns(size_t contender, size_t half = 0) const;
  /// The fastest of those that were not dropped. SIZE_MAX: none.
  size_t best(size_t half = 0) const;
  size_t size() const noexcept { return contenders_.size(); }

 private:
  double least_ns(size_t contender) const;
  std::vector<double> slowness_of_rounds(size_t half) const;
  struct Contender {
    double first_ns = 0;
    std::array<std::vector<double>, 2> ns;
    bool kept = false;
  };
  std::vector<Contender> contenders_;
  std::vector<size_t> alive_;
};

/// Of a third of the values. On a quiet machine a median would do; where others use it too, more than half of the times may be
/// theirs, while the very least is luck. Infinity for none.
double mean_of_lowest(std::vector<double> values);

/// What was found at the sizes before, for one contender: how many times the best's time it took; 0: not measured.
struct Past {
  double last = 0;
  double before = 0;
};
/// Whether it is worth a try at the next size: it is not where it was far behind, and was not catching up.
bool worth_a_try(const Past& past);

}  // namespace tutti::tune
