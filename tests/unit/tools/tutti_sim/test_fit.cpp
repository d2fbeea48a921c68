// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "fit.hpp"

using namespace tutti;
using namespace tutti::simulator;

namespace {

/// What a machine with these prices would have been measured to take.
std::vector<Point> measured_on(const NetworkSpec& spec) {
  std::vector<Point> points;
  for (const uint32_t ranks : {2u, 4u}) {
    for (const char* const name : {"ring", "recursive_doubling", "tree", "flat"}) {
      const AlgorithmInfo* algorithm = find_algorithm(Collective::allreduce, name);
      REQUIRE(algorithm != nullptr);
      Parameters defaults;
      for (const ParameterInfo& parameter : algorithm->parameters) defaults.push_back(parameter.default_value);
      for (const uint64_t bytes : {8u, 512u, 4096u, 65536u, 524288u}) {
        Point point{ranks, algorithm, defaults, bytes, 0, 0, bytes == 512 || bytes == 65536};
        const Result<double> time = predict_ns(spec, point);
        REQUIRE(time.ok());
        point.measured_ns = *time;
        points.push_back(point);
      }
    }
  }
  return points;
}

}  // namespace

TEST_CASE("prices that made the times are found again, near enough to predict what they were not fitted to") {
  NetworkSpec truth;
  truth.cores_per_node = 2;
  truth.prices.node = {700, 150, 0.12, 8};
  truth.prices.step_ns = 80;
  truth.prices.reduce_ns_per_byte = 0.2;
  truth.prices.switch_ns = 2500;
  const std::vector<Point> points = measured_on(truth);
  NetworkSpec start;
  start.cores_per_node = 2;
  start.prices.node.slots = 8;
  double last = 1e9;
  const Result<NetworkSpec> fitted = fit_prices(start, points, [&](double factor) {
    CHECK(factor <= last);
    last = factor;
  });
  REQUIRE(fitted.ok());
  CHECK(last < 1.1);
  for (const Point& point : points) {
    if (!point.judges) continue;
    const Result<double> predicted = predict_ns(*fitted, point);
    REQUIRE(predicted.ok());
    CAPTURE(point.ranks, point.algorithm->name, point.bytes);
    CHECK(*predicted < 1.4 * point.measured_ns);
    CHECK(*predicted > point.measured_ns / 1.4);
  }
}

TEST_CASE("what cannot be simulated cannot be fitted to") {
  Point point{3, find_algorithm(Collective::allreduce, "swing"), {0}, 8, 1000, 0, false};
  const Result<NetworkSpec> fitted = fit_prices(NetworkSpec(), {point}, [](double) {});
  REQUIRE_FALSE(fitted.ok());
  CHECK(fitted.status().message().find("swing") != std::string::npos);
}
