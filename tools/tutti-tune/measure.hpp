// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "bench.hpp"
#include "search.hpp"
#include "select/contenders.hpp"

namespace tutti::tune {

/// How much time a point may take.
struct Effort {
  double point_ns = 500e6;  ///< spent in calls; a little more where few rounds take longer
  double block_ns = 300e3;  ///< calls one after another that are timed as one
  size_t least_rounds = 9;  ///< whatever they take
  size_t most_rounds = 60;
};

/// Measures contenders in turn, round for round, so that what else the machine does meets all alike. With judge, times of every
/// second round are in half 1, from which nothing is concluded here. Throws
/// Interrupted.
void measure(Bench& bench, const Point& point, const std::vector<std::string>& contenders, const Effort& effort, bool judge,
             Search& search);

/// As an override.
std::vector<std::string> texts_of(const std::vector<Contender>& contenders);

}  // namespace tutti::tune
