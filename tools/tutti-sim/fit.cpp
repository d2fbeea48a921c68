// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "fit.hpp"

#include <cmath>

namespace tutti::simulator {
namespace {

/// What is fitted, and where it begins if it is 0.
struct Price {
  double& (*of)(NetworkSpec& spec);
  double least;
};

constexpr Price kPrices[] = {
    {[](NetworkSpec& spec) -> double& { return spec.prices.node.latency_ns; }, 1},
    {[](NetworkSpec& spec) -> double& { return spec.prices.node.overhead_ns; }, 1},
    {[](NetworkSpec& spec) -> double& { return spec.prices.node.copy_ns_per_byte; }, 0.001},
    {[](NetworkSpec& spec) -> double& { return spec.prices.step_ns; }, 1},
    {[](NetworkSpec& spec) -> double& { return spec.prices.reduce_ns_per_byte; }, 0.001},
    {[](NetworkSpec& spec) -> double& { return spec.prices.copy_ns_per_byte; }, 0.001},
    {[](NetworkSpec& spec) -> double& { return spec.prices.switch_ns; }, 1},
};

Result<double> distance(const NetworkSpec& spec, const std::vector<Point>& points) {
  double total = 0;
  double count = 0;
  for (const Point& point : points) {
    if (point.judges) continue;
    const Result<double> predicted = predict_ns(spec, point);
    if (!predicted.ok()) return predicted.status();
    total += std::abs(std::log(*predicted / point.measured_ns));
    count += 1;
  }
  return total / count;
}

}  // namespace

Result<double> predict_ns(NetworkSpec spec, const Point& point) {
  spec.ranks_per_node = point.ranks;
  const Result<Network> network = Network::make(std::move(spec), point.ranks);
  if (!network.ok()) return network.status();
  SimulationRequest request;
  request.algorithm = point.algorithm;
  request.parameters = point.parameters;
  request.bytes = point.bytes;
  request.method = WalkMethod::every_event;
  const Result<Prediction> prediction = simulate(*network, request);
  if (!prediction.ok()) return prediction.status();
  return std::max(1.0, prediction->time_ns);
}

Result<NetworkSpec> fit_prices(NetworkSpec start, const std::vector<Point>& points, const std::function<void(double)>& progress) {
  constexpr double kFactors[] = {3, 1.5, 1.15, 1.04};
  constexpr int kMaxTurns = 12;  // of each factor
  for (const Price& price : kPrices) price.of(start) = std::max(price.of(start), price.least);
  Result<double> first = distance(start, points);
  if (!first.ok()) return first.status();
  double best = *first;
  const auto improves = [&](const Price& price, double factor) -> Result<bool> {
    NetworkSpec changed = start;
    price.of(changed) *= factor;
    const Result<double> now = distance(changed, points);
    if (!now.ok()) return now.status();
    if (*now >= best) return false;
    best = *now;
    start = std::move(changed);
    return true;
  };
  for (const double factor : kFactors) {
    bool moved = true;
    for (int turn = 0; moved && turn < kMaxTurns; ++turn) {
      moved = false;
      for (const Price& price : kPrices) {
        for (const double way : {factor, 1 / factor}) {
          const Result<bool> better = improves(price, way);
          if (!better.ok()) return better.status();
          moved |= *better;
          if (*better) break;
        }
      }
      progress(std::exp(best));
    }
  }
  return start;
}

}  // namespace tutti::simulator
