// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tutti {

/// The one NaN that folds produce, as bits of each type. A fold whose result is NaN gives this one, positive and quiet, without
/// payload. Which NaN survives an addition otherwise depends on the instruction set and on the compiler's choice of operand
/// order; with one canonical NaN all levels, algorithms and ranks agree in every bit. A copy (one source) changes no bit.
inline constexpr uint16_t kNanBf16 = 0x7fc0;
inline constexpr uint32_t kNanF32 = 0x7fc00000;
inline constexpr uint64_t kNanF64 = 0x7ff8000000000000;

/// A binary floating-point format with fewer exponent and fraction bits than binary32. Without infinity only the pattern of all
/// ones is NaN, and the rest of its binade are numbers.
struct SmallFloat {
  uint32_t exponent_bits;
  uint32_t fraction_bits;
  bool has_infinity;

  constexpr uint32_t bias() const { return (1u << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign() const { return 1u << (exponent_bits + fraction_bits); }
  constexpr uint32_t largest_exponent() const { return (1u << exponent_bits) - 1; }
  constexpr uint32_t quiet_nan() const {
    return has_infinity ? largest_exponent() << fraction_bits | 1u << (fraction_bits - 1) : sign() - 1;
  }
  /// The pattern after the largest finite number, to which overflow is rounded: infinity, or NaN where there is none.
  constexpr uint32_t overflow() const { return has_infinity ? largest_exponent() << fraction_bits : sign() - 1; }
  /// The exponent field of binary32 for the smallest normal number of this format.
  constexpr uint32_t smallest_normal_exponent() const { return 127 + 1 - bias(); }
  /// The value of the lowest fraction bit of a denormal number: a power of two, so this is exact.
  constexpr float denormal_unit() const {
    float unit = 1;
    for (uint32_t i = 0; i < bias() - 1 + fraction_bits; ++i) unit /= 2;
    return unit;
  }
};

inline constexpr SmallFloat kFloat16{5, 10, true};
inline constexpr SmallFloat kFloat8E4m3{4, 3, false};
inline constexpr SmallFloat kFloat8E5m2{5, 2, true};

}  // namespace tutti
