// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The compiler's generic vectors. Each level includes this folder's files after it has defined kVectorBytes. Everything here has
// internal linkage: a helper compiled for AVX2 must never be the copy that the linker keeps for a machine without it.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tutti {
namespace {

template <class T, size_t kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes)));
};
template <class T>
using Vector = typename VectorOf<T, kVectorBytes>::Type;

template <class T>
constexpr size_t kLanesOf = kVectorBytes / sizeof(T);

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
  return mask != 0 ? a : b;
}

template <class V>
V load_vector(const std::byte* from) noexcept {
  V vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}

template <class V>
void store_vector(std::byte* to, V vector) noexcept {
  std::memcpy(to, &vector, sizeof vector);
}

// ---- stores past the caches; each level says whether it has them

#if defined(__x86_64__)
constexpr bool kCanStream = true;
/// 16 bytes or a multiple; `to` is aligned to as many as the vector has.
template <size_t kBytes>
void stream_bytes(std::byte* to, const std::byte* from) noexcept {
#ifdef __AVX__
  if constexpr (kBytes % 32 == 0) {
    for (size_t at = 0; at < kBytes; at += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)));
    }
    return;
  }
#endif
  for (size_t at = 0; at < kBytes; at += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
}
/// What was streamed is ordered before all later stores.
inline void end_streaming() noexcept { _mm_sfence(); }
#else
constexpr bool kCanStream = false;
template <size_t kBytes>
void stream_bytes(std::byte*, const std::byte*) noexcept {}
inline void end_streaming() noexcept {}
#endif

// ---- lanes in pairs: (even, odd) are (real, imaginary) or (value, index)

template <class T>
struct Lanes {
  using V = Vector<T>;
  using All = std::make_index_sequence<kLanesOf<T>>;

  /// Each lane's neighbour in its pair.
  static V swapped(V v) noexcept { return swapped(v, All()); }
  static V evens(V v) noexcept { return evens(v, All()); }
  static V odds(V v) noexcept { return odds(v, All()); }
  /// All ones in the even lanes.
  static V even_mask() noexcept {
    V mask{};
    for (size_t i = 0; i < kLanesOf<T>; i += 2) mask[i] = static_cast<T>(-1);
    return mask;
  }

 private:
  template <size_t... kLane>
  static V swapped(V v, std::index_sequence<kLane...>) noexcept {
    return __builtin_shufflevector(v, v, (kLane ^ 1)...);
  }
  template <size_t... kLane>
  static V evens(V v, std::index_sequence<kLane...>) noexcept {
    return __builtin_shufflevector(v, v, (kLane & ~size_t{1})...);
  }
  template <size_t... kLane>
  static V odds(V v, std::index_sequence<kLane...>) noexcept {
    return __builtin_shufflevector(v, v, (kLane | 1)...);
  }
};

// ---- 8- and 16-bit elements in lanes of 32 bits

template <class T>
Vector<uint32_t> load_lanes(const std::byte* from) noexcept {
  constexpr size_t kLanes = kLanesOf<uint32_t>;
  if constexpr (sizeof(T) == 2) {
    using Halves = typename VectorOf<uint16_t, kLanes * 2>::Type;
    return __builtin_convertvector(load_vector<Halves>(from), Vector<uint32_t>);
  } else {
    // By shuffles: gcc takes vectors of less than 16 bytes apart.
    using Bytes = typename VectorOf<uint8_t, 16>::Type;
    const Bytes zero{};
    Bytes bytes{};
    std::memcpy(&bytes, from, kLanes);
    if constexpr (kLanes == 4) {
      return cast_bits<Vector<uint32_t>>(
          __builtin_shufflevector(bytes, zero, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16, 16, 16, 3, 16, 16, 16));
    } else {
      using Halves = typename VectorOf<uint16_t, 16>::Type;
      const auto halves =
          cast_bits<Halves>(__builtin_shufflevector(bytes, zero, 0, 16, 1, 16, 2, 16, 3, 16, 4, 16, 5, 16, 6, 16, 7, 16));
      using Words = typename VectorOf<uint32_t, 32 * sizeof(T)>::Type;
      return cast_bits<Vector<uint32_t>>(__builtin_convertvector(halves, Words));
    }
  }
}

/// The lanes' values fit into T.
template <class T>
void store_lanes(std::byte* to, Vector<uint32_t> lanes) noexcept {
  constexpr size_t kLanes = kLanesOf<uint32_t>;
  using Halves = typename VectorOf<uint16_t, kLanes * 2>::Type;
  using Bytes = typename VectorOf<uint8_t, kLanes>::Type;
  if constexpr (sizeof(T) == 2) {
    store_vector(to, __builtin_convertvector(lanes, Halves));
  } else if constexpr (kLanes >= 8) {
    // In two steps, since gcc takes the vector apart for one.
    store_vector(to, __builtin_convertvector(__builtin_convertvector(lanes, Halves), Bytes));
  } else {
    const auto bytes = cast_bits<Vector<uint8_t>>(lanes);
    const auto packed = __builtin_shufflevector(bytes, bytes, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    std::memcpy(to, &packed, kLanes);
  }
}

}  // namespace
}  // namespace tutti
