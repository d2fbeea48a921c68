// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "base/status.hpp"
#include "schedule/simulate.hpp"

/// Which prices explain what was measured.
namespace tutti::simulator {

struct Point {
  uint32_t ranks = 1;
  const AlgorithmInfo* algorithm = nullptr;
  Parameters parameters;
  uint64_t bytes = 0;
  double measured_ns = 0;
  double predicted_ns = 0;
  bool judges = false;  ///< not fitted to
};

/// All ranks on one node of the spec.
Result<double> predict_ns(NetworkSpec spec, const Point& point);

/// The spec whose predictions are nearest to those of `points` that do not judge, by the mean of |ln(predicted / measured)|: each
/// price in turn is made a little larger or smaller as long as that helps, in ever smaller steps. `progress` is told how far off
/// the points still are, as a factor.
Result<NetworkSpec> fit_prices(NetworkSpec start, const std::vector<Point>& points, const std::function<void(double)>& progress);

}  // namespace tutti::simulator
