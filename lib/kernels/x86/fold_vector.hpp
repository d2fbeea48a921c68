// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The folds of lib/kernels/scalar.cpp a vector at a time, in the compiler's generic vectors. Included by one file per
// instruction set, which defines kVectorBytes and the conversions of 16-bit floats first. Everything here has internal linkage:
// a helper compiled for AVX2 must never be the copy that the linker keeps for a machine without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../formats.hpp"
#include "../table.hpp"

namespace tutti {
namespace {

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
Vector<T> broadcast(T value) noexcept {
  return value - Vector<T>{};
}

template <class To, class From>
To cast_bits(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return reinterpret_cast<To>(from);  // between vectors: a change of type, not of bits
}

/// mask ? a : b, a lane at a time; mask is all ones or all zeros.
template <class V>
V select(V mask, V a, V b) noexcept {
  return (a & mask) | (b & ~mask);
}

// ---- element types

template <class T, class UnsignedT>
struct Integer {
  using Folded = Vector<T>;
  using Unsigned = Vector<UnsignedT>;
  static constexpr size_t kBytes = sizeof(T);
  static constexpr size_t kLanes = kVectorBytes / sizeof(T);

  static Folded load(const std::byte* from) noexcept {
    Folded vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
  }
  static void store(std::byte* to, Folded vector) noexcept { std::memcpy(to, &vector, sizeof vector); }

  static Folded sum(Folded a, Folded b) noexcept { return cast_bits<Folded>(cast_bits<Unsigned>(a) + cast_bits<Unsigned>(b)); }
  static Folded prod(Folded a, Folded b) noexcept { return cast_bits<Folded>(cast_bits<Unsigned>(a) * cast_bits<Unsigned>(b)); }
  template <bool kMin>
  static Folded extreme(Folded a, Folded b) noexcept {
    const auto first = kMin ? a < b : a > b;
    return first ? a : b;
  }
  /// There is no vector instruction for this; it is met once per element of a whole collective.
  static Folded divide(Folded sum, uint64_t divisor) noexcept {
    T lanes[kLanes];
    std::memcpy(lanes, &sum, sizeof lanes);
    for (T& lane : lanes) {
      if constexpr (static_cast<T>(-1) < T{0}) {
        lane = static_cast<T>(static_cast<int64_t>(lane) / static_cast<int64_t>(divisor));
      } else {
        lane = static_cast<T>(lane / divisor);
      }
    }
    std::memcpy(&sum, lanes, sizeof lanes);
    return sum;
  }
  static Folded finish(Folded vector) noexcept { return vector; }
};

/// Arithmetic of f32 and f64, also for the 16-bit floats that fold in f32.
template <class T, class BitsT, BitsT kNan>
struct FloatArithmetic {
  using Folded = Vector<T>;
  using Bits = Vector<BitsT>;

  static Folded sum(Folded a, Folded b) noexcept { return a + b; }
  static Folded prod(Folded a, Folded b) noexcept { return a * b; }
  template <bool kMin>
  static Folded extreme(Folded a, Folded b) noexcept {
    const Bits bits_a = cast_bits<Bits>(a);
    const Bits bits_b = cast_bits<Bits>(b);
    const Bits first = cast_bits<Bits>(kMin ? a < b : a > b);
    const Bits equal = cast_bits<Bits>(a == b);
    const Bits unordered = cast_bits<Bits>(a != a) | cast_bits<Bits>(b != b);
    // Equal values differ at most in the sign of zero: "or" of the bits is the smaller, "and" the larger.
    const Bits second = kMin ? bits_b | (bits_a & equal) : bits_b & (bits_a | ~equal);
    return cast_bits<Folded>(select(unordered, broadcast<BitsT>(kNan), select(first, bits_a, second)));
  }
  static Folded divide(Folded sum, uint64_t divisor) noexcept { return sum / broadcast(static_cast<T>(divisor)); }
  static Folded finish(Folded vector) noexcept {
    const Bits is_nan = cast_bits<Bits>(vector != vector);
    return cast_bits<Folded>(select(is_nan, broadcast<BitsT>(kNan), cast_bits<Bits>(vector)));
  }
};

template <class T, class BitsT, BitsT kNan>
struct Float : FloatArithmetic<T, BitsT, kNan> {
  using Folded = Vector<T>;
  static constexpr size_t kBytes = sizeof(T);
  static constexpr size_t kLanes = kVectorBytes / sizeof(T);
  static Folded load(const std::byte* from) noexcept {
    Folded vector;
    std::memcpy(&vector, from, sizeof vector);
    return vector;
  }
  static void store(std::byte* to, Folded vector) noexcept { std::memcpy(to, &vector, sizeof vector); }
};

/// kLanes 16-bit elements; Conversion widens them to f32 and narrows a finished vector (whose NaN are canonical).
template <class Conversion>
struct Half : FloatArithmetic<float, uint32_t, kNanF32> {
  using Folded = Vector<float>;
  using Stored = typename Conversion::Stored;
  static constexpr size_t kBytes = 2;
  static constexpr size_t kLanes = kVectorBytes / sizeof(float);
  static_assert(sizeof(Stored) == kLanes * kBytes);
  static Folded load(const std::byte* from) noexcept {
    Stored stored;
    std::memcpy(&stored, from, sizeof stored);
    return Conversion::widen(stored);
  }
  static void store(std::byte* to, Folded vector) noexcept {
    const Stored stored = Conversion::narrow(vector);
    std::memcpy(to, &stored, sizeof stored);
  }
};

/// bfloat16 is the upper half of a binary32; to nearest, ties to even.
struct Bfloat16Conversion {
  typedef uint16_t Stored __attribute__((vector_size(kVectorBytes / 2)));
  static Vector<float> widen(Stored stored) noexcept {
    return cast_bits<Vector<float>>(__builtin_convertvector(stored, Vector<uint32_t>) << 16);
  }
  static Stored narrow(Vector<float> finished) noexcept {
    const auto bits = cast_bits<Vector<uint32_t>>(finished);
    // The canonical NaN has zeros below: the rounding leaves it as it is.
    return __builtin_convertvector((bits + 0x7fff + ((bits >> 16) & 1)) >> 16, Stored);
  }
};

// ---- operations

struct Sum {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::sum(a, b);
  }
};
struct Prod {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::prod(a, b);
  }
};
template <bool kMin>
struct Extreme {
  template <class Element>
  static auto apply(typename Element::Folded a, typename Element::Folded b) noexcept {
    return Element::template extreme<kMin>(a, b);
  }
};

// ---- the fold

inline const std::byte* source(const FoldCall& call, uint32_t index) noexcept {
  return static_cast<const std::byte*>(call.sources[index]);
}
inline std::byte* destination(const FoldCall& call, uint32_t index) noexcept {
  return static_cast<std::byte*>(call.destinations[index]);
}

/// The hot case: two sources, one destination, which may be one of the sources. Returns the elements done.
template <class Element, class Operation>
uint64_t fold_pair(const FoldCall& call) noexcept {
  const std::byte* a = source(call, 0);
  const std::byte* b = source(call, 1);
  std::byte* to = destination(call, 0);
  constexpr uint64_t kStep = Element::kLanes * Element::kBytes;
  const uint64_t end = call.count / Element::kLanes * kStep;
#pragma GCC unroll 4
  for (uint64_t at = 0; at < end; at += kStep) {
    const auto value = Operation::template apply<Element>(Element::load(a + at), Element::load(b + at));
    Element::store(to + at, Element::finish(value));
  }
  return call.count / Element::kLanes * Element::kLanes;
}

template <class Element, class Operation, class Load, class Store>
void fold_one(const FoldCall& call, Load load, Store store) noexcept {
  auto value = load(0);
  for (uint32_t s = 1; s < call.source_count; ++s) value = Operation::template apply<Element>(value, load(s));
  if (call.divisor > 1) value = Element::divide(value, call.divisor);
  value = Element::finish(value);
  for (uint32_t d = 0; d < call.destination_count; ++d) store(d, value);
}

/// Any numbers of sources and destinations, whole vectors. Returns the elements done.
template <class Element, class Operation>
uint64_t fold_whole(const FoldCall& call) noexcept {
  uint64_t first = 0;
  for (; call.count - first >= Element::kLanes; first += Element::kLanes) {
    const uint64_t at = first * Element::kBytes;
    fold_one<Element, Operation>(
        call, [&](uint32_t s) { return Element::load(source(call, s) + at); },
        [&](uint32_t d, typename Element::Folded value) { Element::store(destination(call, d) + at, value); });
  }
  return first;
}

/// The last elements, fewer than a vector: through a vector in memory, so that nothing beyond the buffers is touched.
template <class Element, class Operation>
void fold_tail(const FoldCall& call, uint64_t first) noexcept {
  const uint64_t at = first * Element::kBytes;
  const auto bytes = static_cast<size_t>((call.count - first) * Element::kBytes);
  fold_one<Element, Operation>(
      call,
      [&](uint32_t s) {
        std::byte padded[Element::kLanes * Element::kBytes] = {};
        std::memcpy(padded, source(call, s) + at, bytes);
        return Element::load(padded);
      },
      [&](uint32_t d, typename Element::Folded value) {
        std::byte padded[Element::kLanes * Element::kBytes];
        Element::store(padded, value);
        std::memcpy(destination(call, d) + at, padded, bytes);
      });
}

template <class Element, class Operation>
void fold(const FoldCall& call) noexcept {
  if (call.source_count == 1 && call.divisor <= 1) {
    copy_bytes(call.destinations, call.destination_count, call.sources[0], call.count * Element::kBytes);
    return;
  }
  uint64_t done = 0;
  if (call.source_count == 2 && call.destination_count == 1 && call.divisor <= 1) {
    done = fold_pair<Element, Operation>(call);
  } else {
    done = fold_whole<Element, Operation>(call);
  }
  if (done < call.count) fold_tail<Element, Operation>(call, done);
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
/// The table of this instruction set; F16 names its conversion of binary16.
#define TUTTI_VECTOR_FOLDS(F16)                                                                                                  \
  {                                                                                                                              \
    {                                                                                                                            \
      TUTTI_ROW(Integer<int8_t, uint8_t>), TUTTI_ROW(Integer<uint8_t, uint8_t>), TUTTI_ROW(Integer<int16_t, uint16_t>),          \
          TUTTI_ROW(Integer<uint16_t, uint16_t>), TUTTI_ROW(Integer<int32_t, uint32_t>), TUTTI_ROW(Integer<uint32_t, uint32_t>), \
          TUTTI_ROW(Integer<int64_t, uint64_t>), TUTTI_ROW(Integer<uint64_t, uint64_t>), TUTTI_ROW(Half<F16>),                   \
          TUTTI_ROW(Half<Bfloat16Conversion>), TUTTI_ROW(Float<float, uint32_t, kNanF32>),                                       \
          TUTTI_ROW(Float<double, uint64_t, kNanF64>),                                                                           \
    }                                                                                                                            \
  }

}  // namespace tutti
