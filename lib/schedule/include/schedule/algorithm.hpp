// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/schedule.hpp"

namespace tutti {

/// A parameter of an algorithm: `ring:segment_bytes=256K,channels=2`.
struct ParameterInfo {
  std::string_view name;
  uint64_t default_value;
  uint64_t min;
  uint64_t max;
  bool bytes;  ///< takes "256K"
  std::string_view doc;
};

/// Values in the order of AlgorithmInfo::parameters.
using Parameters = std::vector<uint64_t>;

/// All that a plan depends on; equal on all ranks but for `rank`.
struct PlanRequest {
  Shape shape;
  uint32_t rank = 0;
  uint32_t root = 0;
  bool in_place = false;  ///< input and output are the same memory
  Parameters parameters;
};

/// Prices of the network for the cost formulas (alpha-beta-gamma).
struct CostModel {
  double latency_ns = 1000;         ///< one message
  double ns_per_byte = 0.2;         ///< transfer
  double reduce_ns_per_byte = 0.1;  ///< fold
  double step_ns = 50;              ///< the engine's own cost a step
};

/// What an algorithm says about itself. Lives beside its build function, in the algorithm's one file.
struct AlgorithmInfo {
  Collective collective;
  std::string_view name;
  std::string_view summary;
  std::string_view source;  ///< paper or place that describes it
  std::span<const ParameterInfo> parameters;
  uint32_t min_ranks = 1;
  uint32_t max_ranks = UINT32_MAX;
  bool power_of_two_only = false;
  bool rank_ordered = false;  ///< folds contributions in rank order: fit for non-commutative operations
  /// Estimated time for `bytes` on `shape`; what lib/select compares.
  double (*cost_ns)(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model);
  /// Pure: the same request gives the same schedule, no I/O, no lock.
  Schedule (*build)(const PlanRequest& request);
};

/// Every algorithm, in a fixed order (algorithms/registry.cpp).
std::span<const AlgorithmInfo* const> all_algorithms() noexcept;
/// nullptr when there is none of that name.
const AlgorithmInfo* find_algorithm(Collective collective, std::string_view name) noexcept;

}  // namespace tutti
