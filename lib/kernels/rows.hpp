// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of a level, a row a type. Each level includes this last, after its element types, operations and loops, which have
// the same names in each, and a flag kHasWidePairs: whether it has folds for pairs of 16 bytes.
#pragma once

#include "table.hpp"

namespace tutti {
namespace {

struct Row {
  KernelTable& table;
  size_t dtype;

  constexpr FoldFunction& operator[](Op op) const { return table.fold[dtype][static_cast<size_t>(op)]; }
};

template <class Element>
constexpr void add_field(Row row) {
  row[Op::sum] = &fold<Element, Sum>;
  row[Op::avg] = &fold<Element, Average>;
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

/// A type and its unsigned twin share what does not look at the sign.
template <class T>
constexpr void add_integer(Row row) {
  using Unsigned = Integer<std::make_unsigned_t<T>>;
  row[Op::sum] = &fold<Unsigned, Sum>;
  row[Op::prod] = &fold<Unsigned, Prod>;
  row[Op::avg] = &fold<Integer<T>, Average>;
  add_extremes<Integer<T>>(row);
  add_bitwise<Unsigned>(row);
  add_logical<Unsigned>(row);
}

template <class Element>
constexpr void add_float(Row row) {
  add_field<Element>(row);
  add_extremes<Element>(row);
  row.table.scale[row.dtype] = &scale_elements<Element>;
}

/// A float that is folded in f32.
template <class Element>
constexpr void add_small_float(Row row) {
  add_float<Element>(row);
  row.table.widen[row.dtype] = &widen_elements<Element>;
  row.table.narrow[row.dtype] = &narrow_elements<Element>;
}

template <class Element>
constexpr void add_complex(Row row) {
  add_field<Element>(row);
  row.table.scale[row.dtype] = &scale_elements<Element>;
}

/// The truth values are the bytes 0 and 1: sums and maxima are "or", products and minima "and".
constexpr void add_bool(Row row) {
  add_logical<Integer<uint8_t>>(row);
  row[Op::sum] = row[Op::max] = row[Op::lor];
  row[Op::prod] = row[Op::min] = row[Op::land];
}

template <class T>
constexpr void add_pair(Row row) {
  if constexpr (sizeof(T) == 8 && !kHasWidePairs) return;  // those of the level below are taken
  row[Op::minloc] = &fold<Pair<T>, ExtremeLocation<true>>;
  row[Op::maxloc] = &fold<Pair<T>, ExtremeLocation<false>>;
}

constexpr KernelTable make_table() {
  KernelTable table{};
  const auto row = [&](DType dtype) { return Row{table, static_cast<size_t>(dtype)}; };
  add_integer<int8_t>(row(DType::i8));
  add_integer<uint8_t>(row(DType::u8));
  add_integer<int16_t>(row(DType::i16));
  add_integer<uint16_t>(row(DType::u16));
  add_integer<int32_t>(row(DType::i32));
  add_integer<uint32_t>(row(DType::u32));
  add_integer<int64_t>(row(DType::i64));
  add_integer<uint64_t>(row(DType::u64));
  add_small_float<Float16>(row(DType::f16));
  add_small_float<Bfloat16>(row(DType::bf16));
  add_float<Float<float>>(row(DType::f32));
  add_float<Float<double>>(row(DType::f64));
  add_small_float<Float8E4m3>(row(DType::f8e4m3));
  add_small_float<Float8E5m2>(row(DType::f8e5m2));
  add_complex<Complex<float>>(row(DType::c64));
  add_complex<Complex<double>>(row(DType::c128));
  add_bool(row(DType::boolean));
  add_bitwise<Integer<uint8_t>>(row(DType::byte));
  add_pair<float>(row(DType::f32_i32));
  add_pair<double>(row(DType::f64_i32));
  add_pair<int16_t>(row(DType::i16_i32));
  add_pair<int32_t>(row(DType::i32_i32));
  add_pair<int64_t>(row(DType::i64_i32));
  return table;
}

}  // namespace
}  // namespace tutti
