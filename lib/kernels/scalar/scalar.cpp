// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The reference: one element at a time, written to be read. Every other level is tested against it, bit by bit.
#include "../table.hpp"
#include "elements.hpp"

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
  if (call.source_count == 1 && call.divisor <= 1) {
    copy_bytes(call.destinations, call.destination_count, call.sources[0], call.count * sizeof(Stored));
    return;
  }
  for (uint64_t i = 0; i < call.count; ++i) {
    auto value = Element::widen(load<Stored>(call.sources[0], i));
    for (uint32_t s = 1; s < call.source_count; ++s) {
      value = Operation::apply(value, Element::widen(load<Stored>(call.sources[s], i)));
    }
    if constexpr (requires { Element::divide(value, call.divisor); }) {
      if (call.divisor > 1) value = Element::divide(value, call.divisor);
    }
    const Stored result = Element::narrow(value);
    for (uint32_t d = 0; d < call.destination_count; ++d) store(call.destinations[d], i, result);
  }
}

// ---- the table, a row a type

struct Row {
  FoldFunction* fold;
  constexpr FoldFunction& operator[](Op op) const { return fold[static_cast<size_t>(op)]; }
};

template <class Element>
constexpr void add_field(Row row) {
  row[Op::sum] = row[Op::avg] = &fold<Element, Sum>;
  row[Op::prod] = &fold<Element, Prod>;
}

template <class Element>
constexpr void add_extremes(Row row) {
  row[Op::min] = &fold<Element, Extreme<true>>;
  row[Op::max] = &fold<Element, Extreme<false>>;
}

template <class Element>
constexpr void add_bitwise(Row row) {
  row[Op::band] = &fold<Element, BitAnd>;
  row[Op::bor] = &fold<Element, BitOr>;
  row[Op::bxor] = &fold<Element, BitXor>;
}

template <class Element>
constexpr void add_logical(Row row) {
  row[Op::land] = &fold<Element, LogicalAnd>;
  row[Op::lor] = &fold<Element, LogicalOr>;
  row[Op::lxor] = &fold<Element, LogicalXor>;
}

template <class T>
constexpr void add_integer(Row row) {
  add_field<Integer<T>>(row);
  add_extremes<Integer<T>>(row);
  add_bitwise<Integer<T>>(row);
  add_logical<Integer<T>>(row);
}

template <class Element>
constexpr void add_float(Row row) {
  add_field<Element>(row);
  add_extremes<Element>(row);
}

template <class T>
constexpr void add_pair(Row row) {
  row[Op::minloc] = &fold<Pair<T>, ExtremeLocation<true>>;
  row[Op::maxloc] = &fold<Pair<T>, ExtremeLocation<false>>;
}

constexpr FoldTable make_table() {
  FoldTable table{};
  const auto row = [&](DType dtype) { return Row{table.fold[static_cast<size_t>(dtype)]}; };
  add_integer<int8_t>(row(DType::i8));
  add_integer<uint8_t>(row(DType::u8));
  add_integer<int16_t>(row(DType::i16));
  add_integer<uint16_t>(row(DType::u16));
  add_integer<int32_t>(row(DType::i32));
  add_integer<uint32_t>(row(DType::u32));
  add_integer<int64_t>(row(DType::i64));
  add_integer<uint64_t>(row(DType::u64));
  add_float<Small<uint16_t, kFloat16>>(row(DType::f16));
  add_float<Bfloat16>(row(DType::bf16));
  add_float<Float<float>>(row(DType::f32));
  add_float<Float<double>>(row(DType::f64));
  add_float<Small<uint8_t, kFloat8E4m3>>(row(DType::f8e4m3));
  add_float<Small<uint8_t, kFloat8E5m2>>(row(DType::f8e5m2));
  add_field<Complex<float>>(row(DType::c64));
  add_field<Complex<double>>(row(DType::c128));
  add_logical<Bool>(row(DType::boolean));
  const Row boolean = row(DType::boolean);
  boolean[Op::sum] = boolean[Op::max] = boolean[Op::lor];
  boolean[Op::prod] = boolean[Op::min] = boolean[Op::land];
  add_bitwise<Integer<uint8_t>>(row(DType::byte));
  add_pair<float>(row(DType::f32_i32));
  add_pair<double>(row(DType::f64_i32));
  add_pair<int16_t>(row(DType::i16_i32));
  add_pair<int32_t>(row(DType::i32_i32));
  add_pair<int64_t>(row(DType::i64_i32));
  return table;
}

}  // namespace

constinit const FoldTable kScalarFolds = make_table();

}  // namespace tutti
