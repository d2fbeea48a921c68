// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

namespace {
constexpr size_t kVectorBytes = 16;
}

#define TUTTI_KERNELS_X86 1
#include "fold_vector.hpp"

namespace tutti {
namespace {

/// binary16 without F16C, in integers. The branches of the scalar code become masks.
struct Float16Conversion {
  typedef uint16_t Stored __attribute__((vector_size(kVectorBytes / 2)));
  using Bits = Vector<uint32_t>;

  static Vector<float> widen(Stored stored) noexcept {
    const Bits half = __builtin_convertvector(stored, Bits);
    const Bits sign = (half & 0x8000u) << 16;
    const Bits magnitude = half & 0x7fffu;
    // Normal numbers: exponent bias 127 instead of 15. Infinity and NaN: the highest exponent of binary32.
    Bits wide = (magnitude << 13) + (112u << 23);
    wide += cast_bits<Bits>(magnitude >= 0x7c00u) & (112u << 23);
    // Denormal numbers: the fraction counts units of 2^-24; its conversion to float and the product are exact.
    const auto units = __builtin_convertvector(cast_bits<Vector<int32_t>>(magnitude), Vector<float>);
    const Bits denormal = cast_bits<Bits>(units * broadcast(0x1p-24f));
    return cast_bits<Vector<float>>(sign | select(cast_bits<Bits>(magnitude < 0x400u), denormal, wide));
  }

  static Stored narrow(Vector<float> finished) noexcept {
    const Bits bits = cast_bits<Bits>(finished);
    const Bits sign = (bits >> 16) & 0x8000u;
    const Bits magnitude = bits & 0x7fffffffu;
    // Normal results: rebias, add half a unit less one, plus one where the kept part is odd: to nearest, ties to even.
    const Bits normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Denormal results: adding 0.5 leaves units of 2^-24 in the fraction, rounded by the addition itself.
    const Bits shifted = cast_bits<Bits>(cast_bits<Vector<float>>(magnitude) + broadcast(0.5f));
    const Bits denormal = shifted - 0x3f000000u;
    Bits half = select(cast_bits<Bits>(magnitude < 0x38800000u), denormal, normal);
    half = select(cast_bits<Bits>(magnitude >= 0x47800000u), broadcast(0x7c00u), half);
    half = select(cast_bits<Bits>(magnitude > 0x7f800000u), broadcast(kFloat16.quiet_nan()), half);
    return __builtin_convertvector(half | sign, Stored);
  }
};

}  // namespace

const FoldTable kSse4Folds = TUTTI_VECTOR_FOLDS(Float16Conversion);

}  // namespace tutti
