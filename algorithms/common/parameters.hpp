// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/algorithm.hpp"

namespace tutti {

/// Chunk length of the lanes of an algorithm.
constexpr ParameterInfo segment_bytes(uint64_t default_bytes) {
  return {"segment_bytes", default_bytes, 8, uint64_t{1} << 30, true, "length of a chunk; 0: as long as the transport allows"};
}

/// A chunk of a vector of `bytes`, for cost formulas.
inline double chunk_bytes(uint64_t bytes, uint64_t segment_bytes) {
  return static_cast<double>(segment_bytes == 0 || bytes < segment_bytes ? bytes : segment_bytes);
}

/// Algorithms whose steps grow with the ranks stop here: lags have 16 bits, and a plan of more steps is no longer a small
/// program.
inline constexpr uint32_t kMaxRanksOfLinearSteps = 8192;
/// A step has 64 operands at most: a fold of one from each rank, its own and the result.
inline constexpr uint32_t kMaxRanksOfOneStep = 60;

}  // namespace tutti
