// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/cost_model.hpp"
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

/// What an algorithm needs, and what it keeps.
enum Trait : uint32_t {
  kNoTraits = 0,
  kPowerOfTwoRanks = 1,  ///< works for such numbers of ranks only
  kEqualBlocks = 2,      ///< counts on blocks being as long as each other
  kRankOrdered = 4,      ///< folds contributions in rank order: fit for operations that do not commute
  kCanonical = 8,        ///< folds in the association of deterministic mode; so kRankOrdered too
  kNested = 16           ///< looks at how ranks nest in groups; of no use where they do not
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
  uint32_t traits = kNoTraits;
  /// Estimated time for a vector of `bytes` (all blocks together; alltoall: all that one rank sends) on `shape`; what lib/select
  /// compares.
  double (*cost_ns)(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model);
  /// Pure: the same request gives the same schedule, no I/O, no lock.
  Schedule (*build)(const PlanRequest& request);
  /// Whether it does for how the ranks nest, beside their number; nullptr: always.
  bool (*fits)(const Shape& shape) = nullptr;

  bool has(Trait trait) const noexcept { return (traits & trait) != 0; }
};

/// Every algorithm, in a fixed order (algorithms/registry.cpp).
std::span<const AlgorithmInfo* const> all_algorithms() noexcept;
/// nullptr when there is none of that name.
const AlgorithmInfo* find_algorithm(Collective collective, std::string_view name) noexcept;

}  // namespace tutti
