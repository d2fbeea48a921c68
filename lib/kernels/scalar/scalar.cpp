// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The reference: one element at a time, written to be read. Every other level is tested against it, bit by bit.
#include <algorithm>

#include "elements.hpp"
#include "kernels/kernels.hpp"

namespace tutti {
namespace {

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
  template <class T>
  static ComplexNumber<T> apply(ComplexNumber<T> a, ComplexNumber<T> b) noexcept {
    return {a.real + b.real, a.imaginary + b.imaginary};
  }
};

/// A sum that is divided at the end.
struct Average : Sum {};

struct Prod {
  template <class T>
  static T apply(T a, T b) noexcept {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
  template <class T>
  static ComplexNumber<T> apply(ComplexNumber<T> a, ComplexNumber<T> b) noexcept {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
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

/// The extreme value with the lowest index that it stands at; all NaN count as the same value.
template <bool kMin>
struct ExtremeLocation {
  template <class T>
  static bool same(T a, T b) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
    }
    return a == b;
  }
  template <class T>
  static Located<T> apply(Located<T> a, Located<T> b) noexcept {
    if (same(a.value, b.value)) return {a.value, std::min(a.index, b.index)};
    return same(Extreme<kMin>::apply(a.value, b.value), a.value) ? a : b;
  }
};

struct BitAnd {
  template <class T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  static T apply(T a, T b) noexcept {
    return static_cast<T>(a ^ b);
  }
};

struct LogicalAnd {
  template <class T>
  static T apply(T a, T b) noexcept {
    return a != 0 && b != 0;
  }
};
struct LogicalOr {
  template <class T>
  static T apply(T a, T b) noexcept {
    return a != 0 || b != 0;
  }
};
struct LogicalXor {
  template <class T>
  static T apply(T a, T b) noexcept {
    return (a != 0) != (b != 0);
  }
};

// ---- the fold

template <class Element, class Operation>
void fold(const FoldCall& call) noexcept {
  using Stored = typename Element::Stored;
  constexpr bool kDivides = std::is_same_v<Operation, Average>;
  if (call.source_count == 1 && !(kDivides && call.divisor > 1)) {
    copy_bytes(call.destinations, call.destination_count, call.sources[0], call.count * sizeof(Stored));
    return;
  }
  for (uint64_t i = 0; i < call.count; ++i) {
    auto value = Element::widen(load<Stored>(call.sources[0], i));
    for (uint32_t s = 1; s < call.source_count; ++s) {
      value = Operation::apply(value, Element::widen(load<Stored>(call.sources[s], i)));
    }
    if constexpr (kDivides) {
      if (call.divisor > 1) value = Element::divide(value, call.divisor);
    }
    const Stored result = Element::narrow(value);
    for (uint32_t d = 0; d < call.destination_count; ++d) store(call.destinations[d], i, result);
  }
}

// ---- conversions

template <class Element>
void widen_elements(float* to, const void* from, uint64_t count) noexcept {
  for (uint64_t i = 0; i < count; ++i) store(to, i, canonical(Element::widen(load<typename Element::Stored>(from, i))));
}

template <class Element>
void narrow_elements(void* to, const float* from, uint64_t count) noexcept {
  for (uint64_t i = 0; i < count; ++i) store(to, i, Element::narrow(load<float>(from, i)));
}

template <class Element>
void scale_elements(void* to, const void* from, uint64_t count, double factor) noexcept {
  using Stored = typename Element::Stored;
  for (uint64_t i = 0; i < count; ++i) {
    store(to, i, Element::narrow(Element::scale(Element::widen(load<Stored>(from, i)), factor)));
  }
}

using Float16 = Small<uint16_t, kFloat16>;
using Float8E4m3 = Small<uint8_t, kFloat8E4m3>;
using Float8E5m2 = Small<uint8_t, kFloat8E5m2>;
constexpr bool kHasWidePairs = true;

}  // namespace
}  // namespace tutti

#include "../rows.hpp"

namespace tutti {

constinit const KernelTable kScalarKernels = make_table();

}  // namespace tutti
