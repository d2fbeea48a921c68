// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/tutti.h"

namespace tutti_perf {

/// What this program knows of a data type without asking the library, so that its pure parts need none.
struct DTypeInfo {
  tutti_dtype_t dtype;
  std::string_view name;   // as tutti_dtype_name
  std::string_view brief;  // "f32"
  std::string_view alias;  // as nccl-tests calls it; "" if it has no other word
  uint32_t size_bytes;
  bool is_float;
  uint32_t significand_bits;  // of floats, the leading one included
};

struct OpInfo {
  tutti_op_t op;
  std::string_view name;
};

const std::vector<DTypeInfo>& all_dtypes();
const std::vector<OpInfo>& all_ops();
const DTypeInfo& info(tutti_dtype_t dtype);
std::string_view op_name(tutti_op_t op);

/// "f32,bf16" or "all"; a word that comes twice counts once. Throws UsageError, which lists the words.
std::vector<tutti_dtype_t> parse_dtypes(std::string_view text);
std::vector<tutti_op_t> parse_ops(std::string_view text);

/// "a, b, c"
std::string join(const std::vector<std::string_view>& words);
/// Words between commas.
std::vector<std::string> split_list(std::string_view text);

/// 16-bit floats as bits; to nearest, ties to even.
float widen_f16(uint16_t bits);
uint16_t narrow_f16(float value);
float widen_bf16(uint16_t bits);
uint16_t narrow_bf16(float value);

}  // namespace tutti_perf
