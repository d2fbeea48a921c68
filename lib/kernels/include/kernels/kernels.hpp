// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace tutti {

/// destinations[j][i] = sources[0][i] op sources[1][i] op ... (in this order), then divided by `divisor` if it is above 1 (avg).
/// Any alignment. A destination may be exactly one of the sources; else nothing overlaps.
struct FoldCall {
  void* const* destinations;
  const void* const* sources;
  uint32_t destination_count;  ///< >= 1
  uint32_t source_count;       ///< >= 1
  uint64_t count;              ///< elements
  uint64_t divisor = 1;
  const void* context = nullptr;  ///< for an operation that the caller defined; those of this library do not look at it
};

/// 8- and 16-bit floats are folded in f32 and rounded once a call; integer sums wrap; min and max propagate NaN, -0 < +0. For op
/// avg the fold is a sum. One source and no divisor: a copy, which changes no bit.
using FoldFunction = void (*)(const FoldCall& call) noexcept;

/// Each architecture has its levels in ascending order. 3 is kept for AVX-512.
enum class CpuLevel : uint8_t { scalar = 0, sse4 = 1, avx2 = 2 };

/// What this machine can run, detected once (the CPU feature mask: one of the three globals).
CpuLevel detected_cpu_level() noexcept;

/// The kernel for (dtype, op) at `level` or the next lower one that exists; nullptr exactly where defined(dtype, op) is false.
FoldFunction fold_function(DType dtype, Op op, CpuLevel level) noexcept;

/// memcpy to one or more destinations.
void copy_bytes(void* const* destinations, uint32_t destination_count, const void* source, uint64_t bytes) noexcept;

}  // namespace tutti
