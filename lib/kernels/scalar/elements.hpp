// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Element types of the reference: how an element is stored, what it is folded in, how a sum of it is divided.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "../formats.hpp"

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

inline float canonical(float value) noexcept { return std::isnan(value) ? std::bit_cast<float>(kNanF32) : value; }
inline double canonical(double value) noexcept { return std::isnan(value) ? std::bit_cast<double>(kNanF64) : value; }

template <class T>
struct Float {
  using Stored = T;
  using Folded = T;
  static T widen(T stored) noexcept { return stored; }
  static T narrow(T folded) noexcept { return canonical(folded); }
  static T divide(T sum, uint64_t divisor) noexcept { return sum / static_cast<T>(divisor); }
  static T scale(T value, double factor) noexcept { return value * static_cast<T>(factor); }
};

/// bfloat16 is the upper half of a binary32.
struct Bfloat16 : Float<float> {
  using Stored = uint16_t;
  static float widen(uint16_t stored) noexcept { return std::bit_cast<float>(static_cast<uint32_t>(stored) << 16); }
  static uint16_t narrow(float folded) noexcept {
    if (std::isnan(folded)) return kNanBf16;
    const auto bits = std::bit_cast<uint32_t>(folded);
    const uint32_t lowest_kept = (bits >> 16) & 1;
    return static_cast<uint16_t>((bits + 0x7fff + lowest_kept) >> 16);  // to nearest, ties to even; may carry to infinity
  }
};

/// binary16 and the two formats of 8 bits.
template <class StoredT, SmallFloat kFormat>
struct Small : Float<float> {
  using Stored = StoredT;
  static constexpr uint32_t kFraction = kFormat.fraction_bits;

  static float widen(Stored stored) noexcept {
    const uint32_t sign = (stored & kFormat.sign()) != 0 ? 0x80000000 : 0;
    const uint32_t magnitude = stored & (kFormat.sign() - 1);
    const uint32_t exponent = magnitude >> kFraction;
    const uint32_t fraction = magnitude & ((1u << kFraction) - 1);
    if (!kFormat.has_infinity && magnitude == kFormat.quiet_nan()) return std::bit_cast<float>(sign | kNanF32);
    if (kFormat.has_infinity && exponent == kFormat.largest_exponent()) {
      return std::bit_cast<float>(sign | 0x7f800000 | fraction << (23 - kFraction));
    }
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 127 - kFormat.bias()) << 23 | fraction << (23 - kFraction));
    constexpr float kUnit = kFormat.denormal_unit();
    const float denormal = static_cast<float>(fraction) * kUnit;  // exact
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(denormal));
  }

  static Stored narrow(float folded) noexcept {
    if (std::isnan(folded)) return static_cast<Stored>(kFormat.quiet_nan());
    const auto bits = std::bit_cast<uint32_t>(folded);
    const uint32_t sign = (bits >> 31) != 0 ? kFormat.sign() : 0;
    const uint32_t exponent = (bits >> 23) & 0xff;
    const uint32_t significand = (bits & 0x7fffff) | 0x800000;
    constexpr uint32_t kNormal = kFormat.smallest_normal_exponent();
    // How many low bits of the significand do not fit: the same for all normal results, more for denormal ones.
    const uint32_t dropped = 23 - kFraction + (exponent < kNormal ? kNormal - exponent : 0);
    if (dropped > 24) return static_cast<Stored>(sign);  // below half of the smallest denormal
    // The leading one of a normal significand, and a carry of the rounding, add one to the exponent field: which is right.
    const uint32_t kept = (exponent < kNormal ? 0 : (exponent - kNormal) << kFraction) + (significand >> dropped);
    const uint32_t rest = significand & ((1u << dropped) - 1);
    const uint32_t half = 1u << (dropped - 1);
    const bool up = rest > half || (rest == half && (kept & 1) != 0);
    const uint32_t rounded = kept + (up ? 1 : 0);
    if (rounded >= kFormat.overflow())
      return static_cast<Stored>(kFormat.has_infinity ? sign | kFormat.overflow() : kFormat.quiet_nan());
    return static_cast<Stored>(sign | rounded);
  }
};

template <class T>
struct ComplexNumber {
  T real;
  T imaginary;
};

template <class T>
struct Complex {
  using Stored = ComplexNumber<T>;
  using Folded = ComplexNumber<T>;
  static Folded widen(Stored stored) noexcept { return stored; }
  static Stored narrow(Folded folded) noexcept { return {canonical(folded.real), canonical(folded.imaginary)}; }
  static Folded divide(Folded sum, uint64_t divisor) noexcept {
    return {sum.real / static_cast<T>(divisor), sum.imaginary / static_cast<T>(divisor)};
  }
  static Folded scale(Folded value, double factor) noexcept {
    return {value.real * static_cast<T>(factor), value.imaginary * static_cast<T>(factor)};
  }
};

/// A value and where it was found, as the compiler lays it out.
template <class T>
struct Located {
  T value;
  int32_t index;
};

/// The padding of a result is zero, so that ranks agree in every bit of it.
template <class T>
void store(void* base, uint64_t index, Located<T> located) noexcept {
  auto* to = static_cast<std::byte*>(base) + index * sizeof(Located<T>);
  std::memset(to, 0, sizeof(Located<T>));
  std::memcpy(to + offsetof(Located<T>, value), &located.value, sizeof(T));
  std::memcpy(to + offsetof(Located<T>, index), &located.index, sizeof located.index);
}

template <class T>
struct Pair {
  using Stored = Located<T>;
  using Folded = Located<T>;
  static Folded widen(Stored stored) noexcept { return stored; }
  static Stored narrow(Folded folded) noexcept {
    if constexpr (std::is_floating_point_v<T>) folded.value = canonical(folded.value);
    return folded;
  }
};

}  // namespace
}  // namespace tutti
