// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include <cstddef>

namespace {
constexpr size_t kVectorBytes = 32;
}

#include "../vector/fold.hpp"

namespace tutti {
namespace {

/// F16C. The rounding is part of the instruction, so that a caller's rounding mode changes nothing here.
struct Float16Conversion {
  static constexpr size_t kBytes = 2;
  static constexpr bool kLong = false;
  static Vector<float> load(const std::byte* from) noexcept { return _mm256_cvtph_ps(load_vector<__m128i>(from)); }
  static void store(std::byte* to, Vector<float> finished) noexcept {
    store_vector(to, _mm256_cvtps_ph(finished, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

/// The 8-bit formats by way of binary16, of which e5m2 is the upper half, and e4m3, times 2^8, bits 7 to 13 with the sign at 15:
/// both have the same distances between their numbers, denormal ones included. f32 is cut to binary16, with the lowest bit set
/// where something was lost ("round to odd"), so that the one rounding that follows sees which side of a tie the number is on.
struct HalfWay {
  static constexpr size_t kBytes = 1;
  static constexpr bool kLong = false;

  static __m128i load_bytes(const std::byte* from) noexcept {
    return _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  }
  static void store_bytes(std::byte* to, __m128i words) noexcept {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
  }
  static __m128i cut_to_half(__m256 wide) noexcept {
    const __m128i half = _mm256_cvtps_ph(wide, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256i lost = _mm256_castps_si256(_mm256_cmp_ps(_mm256_cvtph_ps(half), wide, _CMP_NEQ_UQ));
    const __m128i lost_words = _mm_packs_epi32(_mm256_castsi256_si128(lost), _mm256_extracti128_si256(lost, 1));
    return _mm_or_si128(half, _mm_srli_epi16(lost_words, 15));
  }
  /// To nearest, ties to even, without the lowest `kDropped` bits.
  template <int kDropped>
  static __m128i rounded(__m128i words) noexcept {
    const __m128i odd = _mm_and_si128(_mm_srli_epi16(words, kDropped), _mm_set1_epi16(1));
    const __m128i half_less_one = _mm_set1_epi16((1 << (kDropped - 1)) - 1);
    return _mm_srli_epi16(_mm_add_epi16(words, _mm_add_epi16(half_less_one, odd)), kDropped);
  }
};

struct E5m2Conversion : HalfWay {
  static Vector<float> load(const std::byte* from) noexcept { return _mm256_cvtph_ps(_mm_slli_epi16(load_bytes(from), 8)); }
  /// A carry gives infinity where that is the nearest; the canonical NaN stays as it is.
  static void store(std::byte* to, Vector<float> finished) noexcept { store_bytes(to, rounded<8>(cut_to_half(finished))); }
};

struct E4m3Conversion : HalfWay {
  static Vector<float> load(const std::byte* from) noexcept {
    const __m128i codes = load_bytes(from);
    const __m128i magnitude = _mm_and_si128(_mm_slli_epi16(codes, 7), _mm_set1_epi16(0x3f80));
    const __m128i sign = _mm_slli_epi16(_mm_srli_epi16(codes, 7), 15);
    const __m256 wide = _mm256_mul_ps(_mm256_cvtph_ps(_mm_or_si128(magnitude, sign)), _mm256_set1_ps(0x1p8f));
    // The highest pattern, which would be 480, is NaN: as all ones are.
    const __m256 without_sign = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), wide);
    return _mm256_or_ps(wide, _mm256_cmp_ps(without_sign, _mm256_set1_ps(480.0f), _CMP_EQ_OQ));
  }
  static void store(std::byte* to, Vector<float> finished) noexcept {
    const __m128i half = cut_to_half(_mm256_mul_ps(finished, _mm256_set1_ps(0x1p-8f)));
    const __m128i nan = _mm_set1_epi16(0x7f);
    const __m128i magnitude = _mm_min_epu16(rounded<7>(_mm_and_si128(half, _mm_set1_epi16(0x7fff))), nan);
    const __m128i sign = _mm_andnot_si128(_mm_cmpeq_epi16(magnitude, nan), _mm_slli_epi16(_mm_srli_epi16(half, 15), 7));
    store_bytes(to, _mm_or_si128(magnitude, sign));
  }
};

using Float16 = Widened<Float16Conversion>;
using Float8E4m3 = Widened<E4m3Conversion>;
using Float8E5m2 = Widened<E5m2Conversion>;
constexpr bool kHasWidePairs = true;

}  // namespace
}  // namespace tutti

#include "../rows.hpp"

namespace tutti {

constinit const KernelTable kAvx2Kernels = make_table();

}  // namespace tutti
