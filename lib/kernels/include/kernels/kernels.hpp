// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace tutti {

/// A fold's result of so many bytes goes past the caches, where the processor can: no cache keeps all operands of such a call, and
/// a store through it reads what it overwrites first. Two operands, of a copy, fit up to twice the size. Measured: docs/kernels.md.
inline constexpr uint64_t kStreamedBytes = 16ull << 20;
inline constexpr uint64_t kStreamedCopyBytes = 2 * kStreamedBytes;

/// destinations[j][i] = sources[0][i] op sources[1][i] op ... (in this order); for avg the sum, divided by `divisor`.
/// Any alignment. A destination may be exactly one of the sources; else nothing overlaps.
struct FoldCall {
  void* const* destinations;
  const void* const* sources;
  uint32_t destination_count;  ///< >= 1
  uint32_t source_count;       ///< >= 1
  uint64_t count;              ///< elements
  uint64_t divisor = 1;        ///< op avg alone looks at it
  const void* context = nullptr;  ///< for an operation that the caller defined; those of this library do not look at it
  uint64_t streamed_bytes = kStreamedBytes;  ///< out of place to one destination: a result of at least so many bytes is streamed
};

/// When it returns all that it wrote is ordered before what the caller writes next, streamed or not.
///
/// 8- and 16-bit floats are folded in f32 and rounded once a call; integer sums wrap; min and max propagate NaN, -0 < +0. One
/// source and no divisor above 1: a copy, which changes no bit.
using FoldFunction = void (*)(const FoldCall& call) noexcept;

/// Each architecture has its own, in ascending order. 3 is kept for AVX-512.
enum class CpuLevel : uint8_t { scalar = 0, sse4 = 1, avx2 = 2, neon = 16 };

/// What this machine can run, detected once (the CPU feature mask: one of the three globals).
CpuLevel detected_cpu_level() noexcept;

/// The kernel for (dtype, op) at `level` or the next lower one that exists; nullptr exactly where defined(dtype, op) is false.
FoldFunction fold_function(DType dtype, Op op, CpuLevel level) noexcept;

/// Between f32 and a type that is folded in f32 (f16, bf16, f8e4m3, f8e5m2; others may not be given): for partial results that
/// travel as f32, so that they are rounded once. Narrowing rounds to nearest, ties to even; NaN come out canonical in both.
/// narrow_from_f32 may work in place.
void widen_to_f32(DType dtype, float* to, const void* from, uint64_t count, CpuLevel level) noexcept;
void narrow_from_f32(DType dtype, void* to, const float* from, uint64_t count, CpuLevel level) noexcept;

/// Floats and complex numbers.
bool can_scale(DType dtype) noexcept;
/// to[i] = from[i] * factor, for a type that can_scale: in the type's own precision, or in f32 and rounded once for those that
/// fold in f32. `to` may be `from`.
void scale(DType dtype, void* to, const void* from, uint64_t count, double factor, CpuLevel level) noexcept;

/// memcpy to one or more destinations; to a single one past the caches from streamed_bytes on. Ordered as a fold's result.
void copy_bytes(void* const* destinations, uint32_t destination_count, const void* source, uint64_t bytes,
                uint64_t streamed_bytes = kStreamedCopyBytes) noexcept;

}  // namespace tutti
