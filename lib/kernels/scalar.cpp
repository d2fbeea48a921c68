// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The reference: one element at a time, written to be read. Every other level is tested against it, bit by bit.
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "table.hpp"

namespace tutti {
namespace {

template <class T>
T load(const void* base, uint64_t index) noexcept {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(void* base, uint64_t index, T value) noexcept {
  std::memcpy(static_cast<std::byte*>(base) + index * sizeof(T), &value, sizeof(T));
}

// ---- element types: how an element is stored, and what it is folded in

/// Integers fold as themselves.
template <class T>
struct Integer {
  using Stored = T;
  using Folded = T;
  static T widen(T stored) noexcept { return stored; }
  static T narrow(T folded) noexcept { return folded; }
  static T divide(T sum, uint64_t divisor) noexcept {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(static_cast<int64_t>(sum) / static_cast<int64_t>(divisor));
    } else {
      return static_cast<T>(sum / divisor);
    }
  }
};

template <class T, class Bits, Bits kNan>
struct Float {
  using Stored = T;
  using Folded = T;
  static T widen(T stored) noexcept { return stored; }
  static T narrow(T folded) noexcept { return std::isnan(folded) ? std::bit_cast<T>(kNan) : folded; }
  static T divide(T sum, uint64_t divisor) noexcept { return sum / static_cast<T>(divisor); }
};

/// bfloat16 is the upper half of a binary32.
struct Bfloat16 {
  using Stored = uint16_t;
  using Folded = float;
  static float widen(uint16_t stored) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(stored) << 16); }
  static uint16_t narrow(float folded) noexcept {
    if (std::isnan(folded)) return kNanBf16;
    const auto bits = std::bit_cast<uint32_t>(folded);
    const uint32_t lowest_kept = (bits >> 16) & 1;
    return static_cast<uint16_t>((bits + 0x7fff + lowest_kept) >> 16);  // to nearest, ties to even; may carry to infinity
  }
  static float divide(float sum, uint64_t divisor) noexcept { return sum / static_cast<float>(divisor); }
};

/// binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
struct Float16 {
  using Stored = uint16_t;
  using Folded = float;
  static float widen(uint16_t stored) noexcept {
    const uint32_t sign = static_cast<uint32_t>(stored & 0x8000) << 16;
    const uint32_t exponent = (stored >> 10) & 0x1f;
    const uint32_t fraction = stored & 0x3ff;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  static uint16_t narrow(float folded) noexcept {
    if (std::isnan(folded)) return kNanF16;
    const auto bits = std::bit_cast<uint32_t>(folded);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude >= 0x47800000) return sign | 0x7c00;  // 65536 and above, infinity included
    const uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return sign;  // below half of the smallest denormal
    // The significand, and how many of its low bits do not fit: 13 for normal results, more for denormal ones.
    const uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
    const uint32_t dropped = exponent >= 113 ? 13 : 126 - exponent;
    // A rounding carry runs into the exponent field, which is right: 0x3ff + 1 is the next binade, 0x7bff + 1 infinity.
    const uint32_t kept = exponent >= 113 ? ((exponent - 112) << 10) + ((significand >> 13) & 0x3ff) : significand >> dropped;
    const uint32_t rest = significand & ((1u << dropped) - 1);
    const uint32_t half = 1u << (dropped - 1);
    const bool up = rest > half || (rest == half && (kept & 1) != 0);
    return static_cast<uint16_t>(sign | (kept + (up ? 1 : 0)));
  }
  static float divide(float sum, uint64_t divisor) noexcept { return sum / static_cast<float>(divisor); }
};

// ---- operations

struct Sum {
  template <class T>
  static T apply(T a, T b) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
};

struct Prod {
  template <class T>
  static T apply(T a, T b) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
};

/// The smaller (Min) or larger; NaN if one is NaN; -0 below +0.
template <bool kMin>
struct Extreme {
  template <class T>
  static T apply(T a, T b) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      if (std::isnan(a)) return a;
      if (std::isnan(b)) return b;
      if (a == b) return std::signbit(a) == kMin ? a : b;
    }
    return (a < b) == kMin ? a : b;
  }
};

// ---- the fold

template <class Element, class Operation>
void fold(void* const* destinations, uint32_t destination_count, const void* const* sources, uint32_t source_count,
          uint64_t count, uint64_t divisor) noexcept {
  using Stored = typename Element::Stored;
  if (source_count == 1 && divisor <= 1) {
    copy_bytes(destinations, destination_count, sources[0], count * sizeof(Stored));
    return;
  }
  for (uint64_t i = 0; i < count; ++i) {
    auto value = Element::widen(load<Stored>(sources[0], i));
    for (uint32_t s = 1; s < source_count; ++s) {
      value = Operation::apply(value, Element::widen(load<Stored>(sources[s], i)));
    }
    if (divisor > 1) value = Element::divide(value, divisor);
    const Stored result = Element::narrow(value);
    for (uint32_t d = 0; d < destination_count; ++d) store(destinations[d], i, result);
  }
}

template <class Element>
struct Row {
  static constexpr FoldFunction kSum = &fold<Element, Sum>;
  static constexpr FoldFunction kProd = &fold<Element, Prod>;
  static constexpr FoldFunction kMin = &fold<Element, Extreme<true>>;
  static constexpr FoldFunction kMax = &fold<Element, Extreme<false>>;
};

}  // namespace

#define TUTTI_ROW(...) \
  { Row<__VA_ARGS__>::kSum, Row<__VA_ARGS__>::kProd, Row<__VA_ARGS__>::kMin, Row<__VA_ARGS__>::kMax, Row<__VA_ARGS__>::kSum }
const FoldTable kScalarFolds = {{
    TUTTI_ROW(Integer<int8_t>),
    TUTTI_ROW(Integer<uint8_t>),
    TUTTI_ROW(Integer<int16_t>),
    TUTTI_ROW(Integer<uint16_t>),
    TUTTI_ROW(Integer<int32_t>),
    TUTTI_ROW(Integer<uint32_t>),
    TUTTI_ROW(Integer<int64_t>),
    TUTTI_ROW(Integer<uint64_t>),
    TUTTI_ROW(Float16),
    TUTTI_ROW(Bfloat16),
    TUTTI_ROW(Float<float, uint32_t, kNanF32>),
    TUTTI_ROW(Float<double, uint64_t, kNanF64>),
}};
#undef TUTTI_ROW

}  // namespace tutti
