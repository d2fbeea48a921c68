// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/tutti.h"

namespace tutti_perf {

enum class Kind : uint8_t { integer, real, complex, boolean, bytes, pair };

/// What this program knows of a data type without asking the library, so that its pure parts need none.
struct DTypeInfo {
  tutti_dtype_t dtype;
  std::string_view name;   // as tutti_dtype_name
  std::string_view brief;  // "f32"
  std::string_view alias;  // as nccl-tests calls it; "" if it has no other word
  uint32_t size_bytes;
  Kind kind;
  uint32_t significand_bits;  // of floats and the parts of complex numbers, the leading one included
};

/// The sum of contributions that each rank multiplies by a factor of its own first: tutti_op_create_scaled_sum. A number of this
/// program's; the library gives its own.
inline constexpr tutti_op_t kScaledSum = TUTTI_MAXLOC + 1;
/// A power of two, so that the products are exact.
double scale_factor(uint32_t rank);

struct OpInfo {
  tutti_op_t op;
  std::string_view name;
};

const std::vector<DTypeInfo>& all_dtypes();
const std::vector<OpInfo>& all_ops();
const DTypeInfo& info(tutti_dtype_t dtype);
std::string_view op_name(tutti_op_t op);
/// Whether the library reduces this type with this operation: the table of tutti.h.
bool defined(tutti_dtype_t dtype, tutti_op_t op);

/// "f32,bf16" or "all"; a word that comes twice counts once. Throws UsageError, which lists the words.
std::vector<tutti_dtype_t> parse_dtypes(std::string_view text);
std::vector<tutti_op_t> parse_ops(std::string_view text);

/// "a, b, c"
std::string join(const std::vector<std::string_view>& words);
/// Words between commas.
std::vector<std::string> split_list(std::string_view text);

/// 16- and 8-bit floats as bits; to nearest, ties to even.
float widen_f16(uint16_t bits);
uint16_t narrow_f16(float value);
float widen_bf16(uint16_t bits);
uint16_t narrow_bf16(float value);
float widen_e4m3(uint8_t bits);
uint8_t narrow_e4m3(float value);
float widen_e5m2(uint8_t bits);
uint8_t narrow_e5m2(float value);

}  // namespace tutti_perf
