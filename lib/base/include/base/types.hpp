// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.hpp"

namespace tutti {

enum class DType : uint8_t {
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f8e4m3,
  f8e5m2,
  c64,
  c128,
  boolean,
  byte,
  f32_i32,
  f64_i32,
  i16_i32,
  i32_i32,
  i64_i32
};
inline constexpr size_t kDTypeCount = 23;

enum class Op : uint8_t { sum, prod, min, max, avg, band, bor, bxor, land, lor, lxor, minloc, maxloc };
inline constexpr size_t kOpCount = 13;

size_t size_bytes(DType dtype) noexcept;
std::string_view name(DType dtype) noexcept;       // "f32"
std::string_view name(Op op) noexcept;             // "sum"
const char* c_name(DType dtype) noexcept;          // "float32"
const char* c_name(Op op) noexcept;                // "sum"
Result<DType> parse_dtype(std::string_view text);  // "f32" or "float32"
Result<Op> parse_op(std::string_view text);
/// From the C ABI's numbers; an error names the value and the range.
Result<DType> to_dtype(tutti_dtype_t dtype);
Result<Op> to_op(tutti_op_t op);

/// The table of tutti.h: is `op` defined for `dtype`?
bool defined(DType dtype, Op op) noexcept;
/// TUTTI_ERR_OP if it is not, with both names and what is defined.
Status check_defined(DType dtype, Op op);

/// count * element_bytes, or TUTTI_ERR_SIZE if it does not fit into 63 bits.
Result<uint64_t> checked_bytes(uint64_t count, uint64_t element_bytes);

/// "4096", "64K", "1M", "2GiB" -> bytes; and back ("64K", "1M", "1000").
Result<uint64_t> parse_bytes(std::string_view text);
std::string format_bytes(uint64_t bytes);
/// "500us", "20ms", "60s", "2m" or a plain number of seconds ("1.5") -> nanoseconds.
Result<uint64_t> parse_duration_ns(std::string_view text);
std::string format_duration_ns(uint64_t duration_ns);

}  // namespace tutti
