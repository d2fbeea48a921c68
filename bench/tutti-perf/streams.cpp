// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "streams.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "dtypes.hpp"
#include "floats.hpp"

namespace tutti_perf {
namespace {

uint64_t mix(uint64_t value) {  // splitmix64
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

uint64_t random_bits(uint32_t rank, uint64_t index) { return mix(mix(rank) + index); }

/// In [0, 1), of 53 bits.
double fraction_of(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// Bits of which so few are 1 that about half of those of all ranks, one "or"-ed with another, are.
uint64_t sparse_bits(uint32_t rank_count, uint32_t rank, uint64_t index) {
  uint64_t bits = random_bits(rank, index);
  for (unsigned word = 0; word < static_cast<unsigned>(std::bit_width(rank_count)); ++word) bits &= mix(bits + word + index);
  return bits;
}

uint32_t contributors_of(const CheckCase& check_case) {
  return check_case.contributors == 0 ? check_case.rank_count : check_case.contributors;
}

// ---- integers, bool, bytes

/// Truth values have names of their own for the operations.
tutti_op_t logical_op(const CheckCase& check_case) {
  if (check_case.dtype != TUTTI_BOOL) return check_case.op;
  if (check_case.op == TUTTI_SUM || check_case.op == TUTTI_MAX) return TUTTI_LOR;
  if (check_case.op == TUTTI_PROD || check_case.op == TUTTI_MIN) return TUTTI_LAND;
  return check_case.op;
}

template <class T>
T combine_integers(tutti_op_t op, T a, T b) {
  switch (op) {
    case TUTTI_PROD:
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case TUTTI_MIN:
      return std::min(a, b);
    case TUTTI_MAX:
      return std::max(a, b);
    case TUTTI_BAND:
      return static_cast<T>(a & b);
    case TUTTI_BOR:
      return static_cast<T>(a | b);
    case TUTTI_BXOR:
      return static_cast<T>(a ^ b);
    case TUTTI_LAND:
      return a != 0 && b != 0;
    case TUTTI_LOR:
      return a != 0 || b != 0;
    case TUTTI_LXOR:
      return (a != 0) != (b != 0);
    default:
      return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
}

/// Any bits, as far as the operation leaves something of them: for products odd numbers, of which none is zero however many there
/// are; for "and" few zeros and for "or" few ones.
template <class T>
T integer_input(const CheckCase& check_case, uint32_t rank, uint64_t index) {
  const uint64_t bits = random_bits(rank, index);
  const auto some = static_cast<T>(bits | 1);
  switch (logical_op(check_case)) {
    case TUTTI_PROD:
      return some;
    case TUTTI_BAND:
      return static_cast<T>(~sparse_bits(check_case.rank_count, rank, index));
    case TUTTI_BOR:
      return static_cast<T>(sparse_bits(check_case.rank_count, rank, index));
    case TUTTI_LAND:
      return (sparse_bits(check_case.rank_count, rank, index) & 1) != 0 ? T{0} : some;
    case TUTTI_LOR:
      return (sparse_bits(check_case.rank_count, rank, index) & 1) != 0 ? some : T{0};
    case TUTTI_LXOR:
      return (bits >> 32 & 1) != 0 ? some : T{0};
    default:
      return static_cast<T>(bits);
  }
}

template <class T>
T reduced_integer(const CheckCase& check_case, uint64_t index) {
  const tutti_op_t op = logical_op(check_case);
  T value = integer_input<T>(check_case, 0, index);  // alone it stays as it is, even if it is a truth value
  for (uint32_t rank = 1; rank < contributors_of(check_case); ++rank) {
    value = combine_integers(op, value, integer_input<T>(check_case, rank, index));
  }
  if (op == TUTTI_AVG) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    value = static_cast<T>(static_cast<Wide>(value) / static_cast<Wide>(check_case.rank_count));
  }
  return value;
}

template <class Visit>
auto visit_integer(tutti_dtype_t dtype, Visit visit) {
  switch (dtype) {
    case TUTTI_INT8:
      return visit(int8_t{});
    case TUTTI_INT16:
      return visit(int16_t{});
    case TUTTI_UINT16:
      return visit(uint16_t{});
    case TUTTI_INT32:
      return visit(int32_t{});
    case TUTTI_UINT32:
      return visit(uint32_t{});
    case TUTTI_INT64:
      return visit(int64_t{});
    case TUTTI_UINT64:
      return visit(uint64_t{});
    default:
      return visit(uint8_t{});
  }
}

// ---- pairs of a value and an index

template <class T>
struct Located {
  T value;
  int32_t index;
};

/// As it lies in memory; the padding is zero.
template <class T>
std::array<std::byte, sizeof(Located<T>)> packed(const Located<T>& pair) {
  std::array<std::byte, sizeof(Located<T>)> bytes{};
  std::memcpy(bytes.data() + offsetof(Located<T>, value), &pair.value, sizeof pair.value);
  std::memcpy(bytes.data() + offsetof(Located<T>, index), &pair.index, sizeof pair.index);
  return bytes;
}

/// Few values, so that several ranks have the same and the index decides.
template <class T>
Located<T> located_input(uint32_t rank, uint64_t index) {
  const uint64_t bits = random_bits(rank, index);
  return {static_cast<T>(static_cast<int>(bits & 15) - 8), static_cast<int32_t>(bits >> 40)};
}

template <class T>
Located<T> reduced_pair(const CheckCase& check_case, uint64_t index) {
  Located<T> best = located_input<T>(0, index);
  for (uint32_t rank = 1; rank < contributors_of(check_case); ++rank) {
    const Located<T> next = located_input<T>(rank, index);
    const bool better = check_case.op == TUTTI_MINLOC ? next.value < best.value : next.value > best.value;
    if (better || (next.value == best.value && next.index < best.index)) best = next;
  }
  return best;
}

template <class Visit>
auto visit_pair(tutti_dtype_t dtype, Visit visit) {
  switch (dtype) {
    case TUTTI_FLOAT32_INT32:
      return visit(float{});
    case TUTTI_FLOAT64_INT32:
      return visit(double{});
    case TUTTI_INT16_INT32:
      return visit(int16_t{});
    case TUTTI_INT64_INT32:
      return visit(int64_t{});
    default:
      return visit(int32_t{});
  }
}

// ---- floats

/// Of the floats of 8 and 16 bits so many ranks contribute to one element that all partial results are exact; the others give 0
/// (a product's 1).
template <class Type>
typename Type::Stored small_input(const CheckCase& check_case, uint32_t rank, uint64_t index) {
  const uint64_t bits = random_bits(rank, index);
  const uint32_t ranks = check_case.rank_count;
  const bool product = check_case.op == TUTTI_PROD;
  // Integers up to this are exact, and the products of so many powers of two; the exponents of e4m3 reach from -9 to 8.
  uint32_t limit = 1u << info(check_case.dtype).significand_bits;
  if (check_case.op == kScaledSum) limit /= 2;
  if (product) limit = check_case.dtype == TUTTI_FLOAT8_E4M3 ? 8 : 12;
  const uint32_t stride = (ranks + limit - 1) / limit;
  const bool active = (rank + index) % stride == 0;
  if (product) return Type::narrow(!active ? 1.0 : (bits & 1) != 0 ? 2.0 : 0.5);
  const uint32_t largest = std::clamp<uint32_t>(limit / ranks, 1, 8);
  return Type::narrow(active ? static_cast<double>(1 + bits % largest) : 0.0);
}

/// Positive, so that no sum loses its leading digits.
template <class Type>
typename Type::Stored rounded_input(const CheckCase& check_case, uint32_t rank, uint64_t index) {
  using Exact = typename Type::Exact;
  if constexpr (sizeof(typename Type::Stored) <= 2) {
    return small_input<Type>(check_case, rank, index);
  } else {
    const auto fraction = static_cast<Exact>(fraction_of(random_bits(rank, index)));
    if (check_case.op != TUTTI_PROD) return Type::narrow(1 + fraction);
    return Type::narrow(1 + (fraction - static_cast<Exact>(0.5)) / static_cast<Exact>(check_case.rank_count));
  }
}

bool is_extreme(tutti_op_t op) { return op == TUTTI_MIN || op == TUTTI_MAX; }

template <class Type>
typename Type::Stored float_input(const CheckCase& check_case, uint32_t rank, uint64_t index) {
  if (!is_extreme(check_case.op)) return rounded_input<Type>(check_case, rank, index);
  return Type::narrow((fraction_of(random_bits(rank, index)) - 0.5) * 800);
}

/// The smaller or larger; -0 is below +0.
template <class Exact>
Exact extreme(tutti_op_t op, Exact a, Exact b) {
  const bool a_below = a != b ? a < b : std::signbit(a);
  return (op == TUTTI_MIN) == a_below ? a : b;
}

/// Of small floats the sum is exact, so that the one rounding of the quotient, which tutti.h describes, is known as well.
template <class Type>
typename Type::Exact average(typename Type::Exact sum, uint32_t rank_count) {
  if constexpr (sizeof(typename Type::Stored) <= 2) {
    return Type::widen(Type::narrow(static_cast<float>(sum) / static_cast<float>(rank_count)));
  } else {
    return sum / static_cast<typename Type::Exact>(rank_count);
  }
}

template <class Type>
typename Type::Exact reduced_float(const CheckCase& check_case, uint64_t index) {
  using Exact = typename Type::Exact;
  const tutti_op_t op = check_case.op;
  Exact value = Type::widen(float_input<Type>(check_case, 0, index));
  for (uint32_t rank = 1; rank < contributors_of(check_case); ++rank) {
    const Exact term = Type::widen(float_input<Type>(check_case, rank, index));
    if (is_extreme(op)) {
      value = extreme(op, value, term);
    } else if (op == TUTTI_PROD) {
      value *= term;
    } else {
      value += op == kScaledSum ? term * static_cast<Exact>(scale_factor(rank)) : term;
    }
  }
  return op == TUTTI_AVG ? average<Type>(value, check_case.rank_count) : value;
}

// ---- complex numbers

template <class Exact>
struct ComplexValue {
  Exact real;
  Exact imaginary;
};

/// For products a unit times a power of two, of at most 100 ranks; else two real numbers.
template <class Type>
ComplexValue<typename Type::Exact> complex_input(const CheckCase& check_case, uint32_t rank, uint64_t index) {
  using Exact = typename Type::Exact;
  if (check_case.op != TUTTI_PROD) {
    return {Type::widen(rounded_input<Type>(check_case, rank, 2 * index)),
            Type::widen(rounded_input<Type>(check_case, rank, 2 * index + 1))};
  }
  const uint64_t bits = random_bits(rank, index);
  const uint32_t stride = (check_case.rank_count + 99) / 100;
  if ((rank + index) % stride != 0) return {1, 0};
  const Exact length = static_cast<Exact>((bits & 1) != 0 ? 2 : 0.5);
  const Exact signed_length = (bits & 2) != 0 ? length : -length;
  if ((bits & 4) != 0) return {signed_length, 0};
  return {0, signed_length};
}

template <class Type>
ComplexValue<typename Type::Exact> reduced_complex(const CheckCase& check_case, uint64_t index) {
  using Exact = typename Type::Exact;
  auto value = complex_input<Type>(check_case, 0, index);
  for (uint32_t rank = 1; rank < contributors_of(check_case); ++rank) {
    const auto term = complex_input<Type>(check_case, rank, index);
    if (check_case.op == TUTTI_PROD) {
      value = {value.real * term.real - value.imaginary * term.imaginary,
               value.real * term.imaginary + value.imaginary * term.real};
    } else {
      const auto factor = static_cast<Exact>(check_case.op == kScaledSum ? scale_factor(rank) : 1);
      value = {value.real + factor * term.real, value.imaginary + factor * term.imaginary};
    }
  }
  if (check_case.op != TUTTI_AVG) return value;
  return {average<Type>(value.real, check_case.rank_count), average<Type>(value.imaginary, check_case.rank_count)};
}

// ---- arrays of them

template <class ElementAt>
std::vector<std::byte> array_of(size_t count, ElementAt element_at) {
  using Stored = decltype(element_at(uint64_t{0}));
  std::vector<std::byte> bytes(count * sizeof(Stored));
  for (size_t i = 0; i < count; ++i) store_at(bytes.data(), i, element_at(i));
  return bytes;
}

/// Any bits.
std::vector<std::byte> make_random_stream(uint32_t rank, uint32_t element_bytes, uint64_t first, size_t count) {
  std::vector<std::byte> bytes(count * element_bytes);
  for (size_t i = 0; i < count; ++i) {
    for (uint32_t at = 0; at < element_bytes; at += sizeof(uint64_t)) {
      const uint64_t word = random_bits(rank, (first + i) % kPeriod) + at * 0x9e3779b97f4a7c15;
      std::memcpy(bytes.data() + i * element_bytes + at, &word, std::min<size_t>(sizeof word, element_bytes - at));
    }
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> make_stream(const CheckCase& check_case, uint32_t rank, uint64_t first, size_t count) {
  const DTypeInfo& type = info(check_case.dtype);
  if (check_case.pattern == Pattern::copy) return make_random_stream(rank, type.size_bytes, first, count);
  switch (type.kind) {
    case Kind::real:
      return visit_float(type.dtype, [&](auto one) {
        return array_of(count, [&](uint64_t i) { return float_input<decltype(one)>(check_case, rank, (first + i) % kPeriod); });
      });
    case Kind::complex:
      return visit_float(type.dtype, [&](auto one) {
        using Type = decltype(one);
        return array_of(count, [&](uint64_t i) {
          const auto value = complex_input<Type>(check_case, rank, (first + i) % kPeriod);
          return ComplexValue<typename Type::Stored>{Type::narrow(value.real), Type::narrow(value.imaginary)};
        });
      });
    case Kind::pair:
      return visit_pair(type.dtype, [&](auto value) {
        return array_of(count, [&](uint64_t i) { return packed(located_input<decltype(value)>(rank, (first + i) % kPeriod)); });
      });
    default:
      return visit_integer(type.dtype, [&](auto value) {
        return array_of(count,
                        [&](uint64_t i) { return integer_input<decltype(value)>(check_case, rank, (first + i) % kPeriod); });
      });
  }
}

bool is_exact(tutti_dtype_t dtype, tutti_op_t op) {
  const DTypeInfo& type = info(dtype);
  return type.kind != Kind::complex && (type.kind != Kind::real || type.size_bytes == 1 || is_extreme(op));
}

std::vector<std::byte> make_exact_reduction(const CheckCase& check_case, size_t count) {
  const DTypeInfo& type = info(check_case.dtype);
  switch (type.kind) {
    case Kind::real:
      return visit_float(type.dtype, [&](auto one) {
        using Type = decltype(one);
        return array_of(count, [&](uint64_t i) { return Type::narrow(reduced_float<Type>(check_case, i)); });
      });
    case Kind::pair:
      return visit_pair(type.dtype, [&](auto value) {
        return array_of(count, [&](uint64_t i) { return packed(reduced_pair<decltype(value)>(check_case, i)); });
      });
    default:
      return visit_integer(type.dtype, [&](auto value) {
        return array_of(count, [&](uint64_t i) { return reduced_integer<decltype(value)>(check_case, i); });
      });
  }
}

std::vector<long double> make_rounded_reduction(const CheckCase& check_case, size_t count) {
  std::vector<long double> values;
  visit_float(check_case.dtype, [&](auto one) {
    using Type = decltype(one);
    for (size_t i = 0; i < count; ++i) {
      if (info(check_case.dtype).kind == Kind::complex) {
        const auto value = reduced_complex<Type>(check_case, i);
        values.push_back(value.real);
        values.push_back(value.imaginary);
      } else {
        values.push_back(reduced_float<Type>(check_case, i));
      }
    }
  });
  return values;
}

}  // namespace tutti_perf
