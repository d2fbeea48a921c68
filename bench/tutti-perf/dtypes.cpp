// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "dtypes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "errors.hpp"

namespace tutti_perf {

const std::vector<DTypeInfo>& all_dtypes() {
  static const std::vector<DTypeInfo> table = {
      {TUTTI_INT8, "int8", "i8", "char", 1, Kind::integer, 0},
      {TUTTI_UINT8, "uint8", "u8", "", 1, Kind::integer, 0},
      {TUTTI_INT16, "int16", "i16", "", 2, Kind::integer, 0},
      {TUTTI_UINT16, "uint16", "u16", "", 2, Kind::integer, 0},
      {TUTTI_INT32, "int32", "i32", "int", 4, Kind::integer, 0},
      {TUTTI_UINT32, "uint32", "u32", "", 4, Kind::integer, 0},
      {TUTTI_INT64, "int64", "i64", "", 8, Kind::integer, 0},
      {TUTTI_UINT64, "uint64", "u64", "", 8, Kind::integer, 0},
      {TUTTI_FLOAT16, "float16", "f16", "half", 2, Kind::real, 11},
      {TUTTI_BFLOAT16, "bfloat16", "bf16", "", 2, Kind::real, 8},
      {TUTTI_FLOAT32, "float32", "f32", "float", 4, Kind::real, 24},
      {TUTTI_FLOAT64, "float64", "f64", "double", 8, Kind::real, 53},
      {TUTTI_FLOAT8_E4M3, "float8_e4m3", "f8e4m3", "", 1, Kind::real, 4},
      {TUTTI_FLOAT8_E5M2, "float8_e5m2", "f8e5m2", "", 1, Kind::real, 3},
      {TUTTI_COMPLEX64, "complex64", "c64", "", 8, Kind::complex, 24},
      {TUTTI_COMPLEX128, "complex128", "c128", "", 16, Kind::complex, 53},
      {TUTTI_BOOL, "bool", "bool", "", 1, Kind::boolean, 0},
      {TUTTI_BYTE, "byte", "byte", "", 1, Kind::bytes, 0},
      {TUTTI_FLOAT32_INT32, "float32_int32", "f32_i32", "", 8, Kind::pair, 24},
      {TUTTI_FLOAT64_INT32, "float64_int32", "f64_i32", "", 16, Kind::pair, 53},
      {TUTTI_INT16_INT32, "int16_int32", "i16_i32", "", 8, Kind::pair, 0},
      {TUTTI_INT32_INT32, "int32_int32", "i32_i32", "", 8, Kind::pair, 0},
      {TUTTI_INT64_INT32, "int64_int32", "i64_i32", "", 16, Kind::pair, 0},
  };
  return table;
}

const std::vector<OpInfo>& all_ops() {
  static const std::vector<OpInfo> table = {
      {TUTTI_SUM, "sum"},   {TUTTI_PROD, "prod"},     {TUTTI_MIN, "min"},       {TUTTI_MAX, "max"},    {TUTTI_AVG, "avg"},
      {TUTTI_BAND, "band"}, {TUTTI_BOR, "bor"},       {TUTTI_BXOR, "bxor"},     {TUTTI_LAND, "land"},  {TUTTI_LOR, "lor"},
      {TUTTI_LXOR, "lxor"}, {TUTTI_MINLOC, "minloc"}, {TUTTI_MAXLOC, "maxloc"}, {kScaledSum, "scaled"}};
  return table;
}

bool defined(tutti_dtype_t dtype, tutti_op_t op) {
  const Kind kind = info(dtype).kind;
  switch (op) {
    case TUTTI_SUM:
    case TUTTI_PROD:
      return kind != Kind::bytes && kind != Kind::pair;
    case TUTTI_AVG:
      return kind == Kind::integer || kind == Kind::real || kind == Kind::complex;
    case TUTTI_MIN:
    case TUTTI_MAX:
      return kind == Kind::integer || kind == Kind::real || kind == Kind::boolean;
    case TUTTI_BAND:
    case TUTTI_BOR:
    case TUTTI_BXOR:
      return kind == Kind::integer || kind == Kind::bytes;
    case TUTTI_LAND:
    case TUTTI_LOR:
    case TUTTI_LXOR:
      return kind == Kind::integer || kind == Kind::boolean;
    case TUTTI_MINLOC:
    case TUTTI_MAXLOC:
      return kind == Kind::pair;
    default:
      return kind == Kind::real || kind == Kind::complex;
  }
}

double scale_factor(uint32_t rank) { return rank % 2 == 0 ? 1 : 2; }

const DTypeInfo& info(tutti_dtype_t dtype) { return all_dtypes().at(static_cast<size_t>(dtype)); }

std::string_view op_name(tutti_op_t op) { return all_ops().at(static_cast<size_t>(op)).name; }

std::string join(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> words;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

namespace {

/// The numbers behind the words of `text`; `code_of` gives -1 for a word that it does not know.
template <class CodeOf>
std::vector<int32_t> parse_words(std::string_view text, std::string_view option, size_t table_size, CodeOf code_of,
                                 const std::string& known) {
  std::vector<int32_t> codes;
  for (const std::string& word : split_list(text)) {
    if (word == "all") {
      codes.clear();
      for (size_t code = 0; code < table_size; ++code) codes.push_back(static_cast<int32_t>(code));
      return codes;
    }
    const int32_t code = code_of(word);
    if (code < 0) throw UsageError(fmt::format("{}: '{}' is unknown; known are {}, all", option, word, known));
    if (std::find(codes.begin(), codes.end(), code) == codes.end()) codes.push_back(code);
  }
  return codes;
}

}  // namespace

std::vector<tutti_dtype_t> parse_dtypes(std::string_view text) {
  std::vector<std::string_view> names;
  for (const DTypeInfo& type : all_dtypes()) names.push_back(type.brief);
  const auto code_of = [](std::string_view word) {
    for (const DTypeInfo& type : all_dtypes()) {
      if (word == type.name || word == type.brief || (!type.alias.empty() && word == type.alias)) return type.dtype;
    }
    return tutti_dtype_t{-1};
  };
  return parse_words(text, "-d", all_dtypes().size(), code_of, join(names));
}

std::vector<tutti_op_t> parse_ops(std::string_view text) {
  std::vector<std::string_view> names;
  for (const OpInfo& op : all_ops()) names.push_back(op.name);
  const auto code_of = [](std::string_view word) {
    for (const OpInfo& op : all_ops()) {
      if (word == op.name) return op.op;
    }
    return word == "mulsum" ? kScaledSum : tutti_op_t{-1};  // the word of nccl-tests
  };
  return parse_words(text, "-o", all_ops().size(), code_of, join(names));
}

float widen_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t narrow_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float widen_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
  const uint32_t rebiased = exponent == 0x1f ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | rebiased << 23 | fraction << 13);
}

uint16_t narrow_f16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7e00);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // from 65520 on
  if (magnitude < 0x38800000) {                                              // below 2^-14: units of 2^-24
    const float units = std::nearbyint(std::fabs(value) * 0x1p24f);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(units));
  }
  // A carry runs into the exponent, which is right.
  const uint32_t rounded = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  return static_cast<uint16_t>(sign | rounded);
}

namespace {

struct SmallFormat {
  int fraction_bits;
  int smallest_exponent;  // of normal numbers
  uint32_t overflow;      // the pattern after the largest finite number
  uint32_t nan;
};
constexpr SmallFormat kE4m3{3, -6, 0x7f, 0x7f};
constexpr SmallFormat kE5m2{2, -14, 0x7c, 0x7e};

float widen_small(const SmallFormat& format, uint8_t bits) {
  const uint32_t magnitude = bits & 0x7f;
  const float sign = (bits & 0x80) != 0 ? -1.0f : 1.0f;
  if (magnitude > format.overflow || magnitude == format.nan) return NAN;
  if (magnitude == format.overflow) return sign * INFINITY;
  const auto fraction = static_cast<float>(magnitude & ((1u << format.fraction_bits) - 1));
  const int exponent = static_cast<int>(magnitude >> format.fraction_bits);
  const float significand = std::ldexp(fraction, -format.fraction_bits) + (exponent == 0 ? 0.0f : 1.0f);
  return sign * std::ldexp(significand, format.smallest_exponent + (exponent == 0 ? 0 : exponent - 1));
}

uint8_t narrow_small(const SmallFormat& format, float value) {
  if (std::isnan(value)) return static_cast<uint8_t>(format.nan);
  const uint32_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  if (magnitude == 0) return static_cast<uint8_t>(sign);
  if (magnitude >= 0x1p20f) return static_cast<uint8_t>(format.overflow | (format.overflow == format.nan ? 0 : sign));
  const int exponent = std::max(std::ilogb(magnitude), format.smallest_exponent);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, format.fraction_bits - exponent)));
  // A carry runs into the exponent, which is right.
  const uint32_t bits = units + (static_cast<uint32_t>(exponent - format.smallest_exponent) << format.fraction_bits);
  if (bits < format.overflow) return static_cast<uint8_t>(sign | bits);
  return static_cast<uint8_t>(format.overflow | (format.overflow == format.nan ? 0 : sign));
}

}  // namespace

float widen_e4m3(uint8_t bits) { return widen_small(kE4m3, bits); }
uint8_t narrow_e4m3(float value) { return narrow_small(kE4m3, value); }
float widen_e5m2(uint8_t bits) { return widen_small(kE5m2, bits); }
uint8_t narrow_e5m2(float value) { return narrow_small(kE5m2, value); }

}  // namespace tutti_perf
