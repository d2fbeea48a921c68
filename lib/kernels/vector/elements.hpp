// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The element types of lib/kernels/scalar/elements.hpp, a vector at a time. An element type has kLanes elements of kBytes in what
// it folds in, loads and stores those, and finishes a result before it is stored. kLong: so many instructions that unrolling a
// loop only costs memory.
#pragma once

#include "../formats.hpp"
#include "vector.hpp"

namespace tutti {
namespace {

template <class T>
struct Integer {
  using Folded = Vector<T>;
  using Unsigned = Vector<std::make_unsigned_t<T>>;
  static constexpr size_t kBytes = sizeof(T);
  static constexpr size_t kLanes = kLanesOf<T>;
  static constexpr bool kLong = false;

  static Folded load(const std::byte* from) noexcept { return load_vector<Folded>(from); }
  static void store(std::byte* to, Folded vector) noexcept { store_vector(to, vector); }
  static Folded finish(Folded vector) noexcept { return vector; }

  static Folded sum(Folded a, Folded b) noexcept { return cast_bits<Folded>(cast_bits<Unsigned>(a) + cast_bits<Unsigned>(b)); }
  static Folded prod(Folded a, Folded b) noexcept { return cast_bits<Folded>(cast_bits<Unsigned>(a) * cast_bits<Unsigned>(b)); }
  template <bool kMin>
  static Folded extreme(Folded a, Folded b) noexcept {
    const auto first = kMin ? a < b : a > b;
    return first ? a : b;
  }
  /// All ones where the element is true.
  static Folded truth(Folded vector) noexcept { return cast_bits<Folded>(vector != 0); }
  /// There is no vector instruction for this; it is met once per element of a whole collective.
  [[gnu::noinline]] static Folded divide(Folded sum, uint64_t divisor) noexcept {
    T lanes[kLanes];
    std::memcpy(lanes, &sum, sizeof lanes);
#pragma GCC unroll 1
    for (T& lane : lanes) {
      if constexpr (std::is_signed_v<T>) {
        lane = static_cast<T>(static_cast<int64_t>(lane) / static_cast<int64_t>(divisor));
      } else {
        lane = static_cast<T>(lane / divisor);
      }
    }
    std::memcpy(&sum, lanes, sizeof lanes);
    return sum;
  }
};

/// Arithmetic of f32 and f64, also for the small floats that fold in f32 and for the parts of complex numbers.
template <class T>
struct FloatArithmetic {
  using Folded = Vector<T>;
  using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Bits = Vector<BitsOf>;
  static constexpr BitsOf kNan = sizeof(T) == 4 ? BitsOf{kNanF32} : static_cast<BitsOf>(kNanF64);

  static Folded sum(Folded a, Folded b) noexcept { return a + b; }
  static Folded prod(Folded a, Folded b) noexcept { return a * b; }
  template <bool kMin>
  static Folded extreme(Folded a, Folded b) noexcept {
    const Bits bits_a = cast_bits<Bits>(a);
    const Bits bits_b = cast_bits<Bits>(b);
    const Bits first = cast_bits<Bits>(kMin ? a < b : a > b) | cast_bits<Bits>(a != a);
    const Bits equal = cast_bits<Bits>(a == b);
    // Equal values differ at most in the sign of zero: "or" of the bits is the smaller, "and" the larger. With NaN in b nothing
    // holds, and the second is b.
    const Bits second = kMin ? bits_b | (bits_a & equal) : bits_b & (bits_a | ~equal);
    return cast_bits<Folded>(select(first, bits_a, second));
  }
  static Folded divide(Folded sum, uint64_t divisor) noexcept { return sum / broadcast(static_cast<T>(divisor)); }
  static Folded scale(Folded vector, double factor) noexcept { return vector * broadcast(static_cast<T>(factor)); }
  static Folded finish(Folded vector) noexcept {
    const Bits is_nan = cast_bits<Bits>(vector != vector);
    return cast_bits<Folded>(select(is_nan, broadcast(kNan), cast_bits<Bits>(vector)));
  }
};

template <class T>
struct Float : FloatArithmetic<T> {
  using Folded = Vector<T>;
  static constexpr size_t kBytes = sizeof(T);
  static constexpr size_t kLanes = kLanesOf<T>;
  static constexpr bool kLong = false;
  static Folded load(const std::byte* from) noexcept { return load_vector<Folded>(from); }
  static void store(std::byte* to, Folded vector) noexcept { store_vector(to, vector); }
};

template <class T>
struct Complex : Float<T> {
  using Folded = Vector<T>;
  using Bits = typename Float<T>::Bits;
  using Pairs = Lanes<T>;
  static constexpr size_t kBytes = 2 * sizeof(T);
  static constexpr size_t kLanes = kVectorBytes / kBytes;

  static Folded prod(Folded a, Folded b) noexcept {
    const Folded by_real = a * Pairs::evens(b);                      // (ar br, ai br)
    const Folded by_imaginary = Pairs::swapped(a) * Pairs::odds(b);  // (ai bi, ar bi)
    constexpr auto kSign = static_cast<typename Float<T>::BitsOf>(1) << (8 * sizeof(T) - 1);
    const Bits minus_at_real = Lanes<typename Float<T>::BitsOf>::even_mask() & kSign;
    return by_real + cast_bits<Folded>(cast_bits<Bits>(by_imaginary) ^ minus_at_real);
  }
};

/// Elements that Conversion loads as f32 and stores from a finished vector (whose NaN are canonical).
template <class Conversion>
struct Widened : FloatArithmetic<float> {
  using Folded = Vector<float>;
  static constexpr size_t kBytes = Conversion::kBytes;
  static constexpr size_t kLanes = kLanesOf<float>;
  static constexpr bool kLong = Conversion::kLong;
  static Folded load(const std::byte* from) noexcept { return Conversion::load(from); }
  static void store(std::byte* to, Folded finished) noexcept { Conversion::store(to, finished); }
};

/// bfloat16 is the upper half of a binary32; to nearest, ties to even.
struct Bfloat16Conversion {
  static constexpr size_t kBytes = 2;
  static constexpr bool kLong = false;
  static Vector<float> load(const std::byte* from) noexcept { return cast_bits<Vector<float>>(load_lanes<uint16_t>(from) << 16); }
  static void store(std::byte* to, Vector<float> finished) noexcept {
    const auto bits = cast_bits<Vector<uint32_t>>(finished);
    // The canonical NaN has zeros below: the rounding leaves it as it is.
    store_lanes<uint16_t>(to, (bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};
using Bfloat16 = Widened<Bfloat16Conversion>;

/// The formats of fewer than 16 bits, and binary16 where there are no instructions for it, in integers. The branches of the
/// scalar code become masks.
template <class Stored, SmallFloat kFormat>
struct SmallConversion {
  static constexpr size_t kBytes = sizeof(Stored);
  static constexpr bool kLong = true;
  using Bits = Vector<uint32_t>;
  static constexpr uint32_t kDropped = 23 - kFormat.fraction_bits;
  static constexpr uint32_t kRebias = (127 - kFormat.bias()) << 23;
  static constexpr float kUnit = kFormat.denormal_unit();

  static Vector<float> load(const std::byte* from) noexcept {
    const Bits stored = load_lanes<Stored>(from);
    const Bits sign = (stored & kFormat.sign()) << (31 - kFormat.exponent_bits - kFormat.fraction_bits);
    const Bits magnitude = stored & (kFormat.sign() - 1);
    Bits wide = (magnitude << kDropped) + kRebias;
    if constexpr (kFormat.has_infinity) {
      // Infinity and NaN: the highest exponent of binary32.
      constexpr uint32_t kToHighest = (255u << 23) - (kFormat.largest_exponent() << 23) - kRebias;
      wide += cast_bits<Bits>(magnitude >= kFormat.overflow()) & kToHighest;
    } else {
      wide = select(cast_bits<Bits>(magnitude == kFormat.quiet_nan()), broadcast(kNanF32), wide);
    }
    // Denormal numbers: the fraction counts units; its conversion to float and the product are exact.
    const auto units = __builtin_convertvector(cast_bits<Vector<int32_t>>(magnitude), Vector<float>);
    const Bits denormal = cast_bits<Bits>(units * broadcast(kUnit));
    const Bits is_denormal = cast_bits<Bits>(magnitude < (1u << kFormat.fraction_bits));
    return cast_bits<Vector<float>>(sign | select(is_denormal, denormal, wide));
  }

  static void store(std::byte* to, Vector<float> finished) noexcept {
    const Bits bits = cast_bits<Bits>(finished);
    const Bits sign = (bits >> (31 - kFormat.exponent_bits - kFormat.fraction_bits)) & kFormat.sign();
    const Bits magnitude = bits & 0x7fffffffu;
    // Normal results: rebias, add half a unit less one, plus one where the kept part is odd: to nearest, ties to even.
    constexpr uint32_t kHalfLessOne = (1u << (kDropped - 1)) - 1;
    const Bits normal = (magnitude - kRebias + kHalfLessOne + ((magnitude >> kDropped) & 1u)) >> kDropped;
    // Denormal results: in the binade of this number a unit of binary32 is theirs: the addition itself rounds.
    const Vector<float> binade = broadcast(kUnit * 0x1p23f);
    const Bits denormal = cast_bits<Bits>(cast_bits<Vector<float>>(magnitude) + binade) - cast_bits<Bits>(binade);
    constexpr uint32_t kSmallestNormal = kFormat.smallest_normal_exponent() << 23;
    Bits small = select(cast_bits<Bits>(magnitude < kSmallestNormal), denormal, normal);
    if constexpr (kFormat.has_infinity) {
      // A carry of the rounding gives the overflow pattern, infinity; what is larger would give one above it.
      small = select(cast_bits<Bits>(small > kFormat.overflow()), broadcast(kFormat.overflow()), small);
      small = select(cast_bits<Bits>(magnitude > 0x7f800000u), broadcast(kFormat.quiet_nan()), small | sign);
    } else {
      small = select(cast_bits<Bits>(small >= kFormat.quiet_nan()), broadcast(kFormat.quiet_nan()), small | sign);
    }
    store_lanes<Stored>(to, small);
  }
};

/// (value, index) in lanes of one width, as a key whose integer order is the order of values. The reference compares; here it
/// takes one comparison of all lanes, in which the values' and the indices' results are then combined.
template <class T>
struct Pair {
  using Lane = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  using UnsignedLane = std::make_unsigned_t<Lane>;
  using Folded = Vector<Lane>;
  using Pairs = Lanes<Lane>;
  static constexpr size_t kBytes = 2 * sizeof(Lane);
  static constexpr size_t kLanes = kVectorBytes / kBytes;
  static constexpr bool kLong = true;
  static constexpr Lane kHighest = static_cast<Lane>(static_cast<UnsignedLane>(-1) >> 1);

  static Folded load(const std::byte* from) noexcept {
    const auto raw = load_vector<Folded>(from);
    return select(Pairs::even_mask(), value_key(raw), index_key(raw));
  }
  static void store(std::byte* to, Folded key) noexcept {
    const Folded index = sizeof(Lane) == 8 ? cast_bits<Folded>(cast_bits<Vector<UnsignedLane>>(key) >> kIndexShift) : key;
    store_vector(to, select(Pairs::even_mask(), value_of(key), index));
  }
  static Folded finish(Folded key) noexcept { return key; }

  template <bool kMin>
  static Folded extreme_location(Folded a, Folded b) noexcept {
    const Folded rank_a = rank<kMin>(a);
    const Folded rank_b = rank<kMin>(b);
    const Folded less = cast_bits<Folded>(rank_a < rank_b);
    const Folded equal = cast_bits<Folded>(rank_a == rank_b);
    const Folded first = less | (equal & Pairs::swapped(less));  // counts in the value's lane
    return select(Pairs::evens(first), a, b);
  }

 private:
  static constexpr int kIndexShift = sizeof(Lane) == 8 ? 32 : 0;

  /// In a lane of 64 bits the padding goes.
  static Folded index_key(Folded raw) noexcept { return raw << kIndexShift; }
  static Folded value_key(Folded raw) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      const auto value = cast_bits<Vector<T>>(raw);
      return select(cast_bits<Folded>(value != value), broadcast(kHighest), turned(raw));
    } else {
      return (raw << kValueShift) >> kValueShift;
    }
  }
  static Folded value_of(Folded key) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
      const auto nan = static_cast<Lane>(FloatArithmetic<T>::kNan);
      return select(cast_bits<Folded>(key == kHighest), broadcast(nan), turned(key));
    } else {
      return cast_bits<Folded>((cast_bits<Vector<UnsignedLane>>(key) << kValueShift) >> kValueShift);
    }
  }
  static constexpr int kValueShift = 8 * (sizeof(Lane) - sizeof(T));

  /// Negative numbers have the sign and the magnitude: their order is turned round. Its own inverse.
  static Folded turned(Folded bits) noexcept { return bits ^ (cast_bits<Folded>(bits < 0) & kHighest); }

  /// The order in which the smallest wins, then the lowest index. Key kHighest, NaN, wraps round or is complemented to the
  /// lowest.
  template <bool kMin>
  static Folded rank(Folded key) noexcept {
    if constexpr (!kMin) return key ^ Pairs::even_mask();
    if constexpr (!std::is_floating_point_v<T>) return key;
    using Unsigned = Vector<UnsignedLane>;
    return cast_bits<Folded>(cast_bits<Unsigned>(key) - cast_bits<Unsigned>(Pairs::even_mask()));
  }
};

}  // namespace
}  // namespace tutti
