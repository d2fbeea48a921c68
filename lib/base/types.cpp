// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "base/types.hpp"

#include <array>
#include <charconv>

namespace tutti {
namespace {

struct DTypeInfo {
  std::string_view name;
  std::string_view long_name;
  size_t bytes;
};
// Indexed by DType, whose numbers are those of tutti.h.
constexpr std::array<DTypeInfo, kDTypeCount> kDTypes{{
    {"i8", "int8", 1},
    {"u8", "uint8", 1},
    {"i16", "int16", 2},
    {"u16", "uint16", 2},
    {"i32", "int32", 4},
    {"u32", "uint32", 4},
    {"i64", "int64", 8},
    {"u64", "uint64", 8},
    {"f16", "float16", 2},
    {"bf16", "bfloat16", 2},
    {"f32", "float32", 4},
    {"f64", "float64", 8},
}};
constexpr std::array<std::string_view, kOpCount> kOps{"sum", "prod", "min", "max", "avg"};

static_assert(static_cast<int>(DType::f16) == TUTTI_FLOAT16 && static_cast<int>(DType::f64) == TUTTI_FLOAT64);
static_assert(static_cast<int>(Op::sum) == TUTTI_SUM && static_cast<int>(Op::avg) == TUTTI_AVG);

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr Unit kByteUnits[] = {
    {"T", uint64_t{1} << 40}, {"G", uint64_t{1} << 30}, {"M", uint64_t{1} << 20}, {"K", uint64_t{1} << 10}};
constexpr Unit kTimeUnits[] = {{"h", 3'600'000'000'000}, {"m", 60'000'000'000}, {"s", 1'000'000'000},
                               {"ms", 1'000'000},        {"us", 1'000},         {"ns", 1}};

/// "K", "k", "KB", "KiB" -> 1024; "", "B" -> 1; 0 for anything else.
uint64_t byte_factor(std::string_view suffix) {
  if (suffix.empty() || suffix == "B") return 1;
  for (const Unit& unit : kByteUnits) {
    const bool letter = suffix[0] == unit.name[0] || suffix[0] == unit.name[0] + ('a' - 'A');
    if (letter && (suffix.size() == 1 || suffix.substr(1) == "B" || suffix.substr(1) == "iB")) return unit.factor;
  }
  return 0;
}

Status bad_duration(std::string_view text) {
  return error(TUTTI_ERR_CONFIG, "'{}' is not a duration; write a number and a unit, as 500us, 20ms, 60s, 2m", text);
}

}  // namespace

size_t size_bytes(DType dtype) noexcept { return kDTypes[static_cast<size_t>(dtype)].bytes; }
std::string_view name(DType dtype) noexcept { return kDTypes[static_cast<size_t>(dtype)].name; }
std::string_view name(Op op) noexcept { return kOps[static_cast<size_t>(op)]; }

Result<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (text == kDTypes[i].name || text == kDTypes[i].long_name) return static_cast<DType>(i);
  }
  std::string known;
  for (const DTypeInfo& info : kDTypes) known.append(known.empty() ? "" : " ").append(info.name);
  return error(TUTTI_ERR_TYPE, "unknown data type '{}'; known: {}", text, known);
}

Result<Op> parse_op(std::string_view text) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (text == kOps[i]) return static_cast<Op>(i);
  }
  return error(TUTTI_ERR_OP, "unknown operation '{}'; known: sum prod min max avg", text);
}

Result<DType> to_dtype(tutti_dtype_t dtype) {
  if (dtype >= 0 && static_cast<size_t>(dtype) < kDTypeCount) return static_cast<DType>(dtype);
  return error(TUTTI_ERR_TYPE, "data type {} is outside 0..{} (TUTTI_INT8..TUTTI_FLOAT64)", dtype, kDTypeCount - 1);
}

Result<Op> to_op(tutti_op_t op) {
  if (op >= 0 && static_cast<size_t>(op) < kOpCount) return static_cast<Op>(op);
  return error(TUTTI_ERR_OP, "operation {} is outside 0..{} (TUTTI_SUM..TUTTI_AVG)", op, kOpCount - 1);
}

Result<uint64_t> checked_bytes(uint64_t count, uint64_t element_bytes) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes > uint64_t{INT64_MAX}) {
    return error(TUTTI_ERR_SIZE, "{} elements of {} bytes do not fit into 63 bits", count, element_bytes);
  }
  return bytes;
}

Result<uint64_t> parse_bytes(std::string_view text) {
  uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const size_t digits = static_cast<size_t>(end - text.data());
  const uint64_t factor = byte_factor(text.substr(digits));
  if (failure == std::errc::result_out_of_range) {
    return error(TUTTI_ERR_CONFIG, "'{}' bytes do not fit into 63 bits", text);
  }
  if (failure != std::errc() || factor == 0) {
    return error(TUTTI_ERR_CONFIG, "'{}' is not a size; write a whole number of bytes, with K, M, G or T for powers of 1024",
                 text);
  }
  Result<uint64_t> bytes = checked_bytes(number, factor);
  if (!bytes) return error(TUTTI_ERR_CONFIG, "'{}' bytes do not fit into 63 bits", text);
  return bytes;
}

std::string format_bytes(uint64_t bytes) {
  for (const Unit& unit : kByteUnits) {
    if (bytes != 0 && bytes % unit.factor == 0) return fmt::format("{}{}", bytes / unit.factor, unit.name);
  }
  return fmt::format("{}", bytes);
}

Result<uint64_t> parse_duration_ns(std::string_view text) {
  // By hand, not by strtod: that follows the process's locale, and gcc 12 alone has from_chars for floating point.
  const size_t digits_end = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, digits_end);
  const std::string_view unit_name = digits_end == std::string_view::npos ? "s" : text.substr(digits_end);
  const size_t point = number.find('.');
  const std::string_view whole = number.substr(0, point);
  const std::string_view fraction = point == std::string_view::npos ? std::string_view() : number.substr(point + 1);
  if (whole.empty() || fraction.find('.') != std::string_view::npos || whole.size() > 18) return bad_duration(text);
  uint64_t factor = 0;
  for (const Unit& unit : kTimeUnits) {
    if (unit_name == unit.name) factor = unit.factor;
  }
  if (factor == 0) return bad_duration(text);
  uint64_t units = 0;
  std::from_chars(whole.data(), whole.data() + whole.size(), units);
  uint64_t total = 0;
  if (__builtin_mul_overflow(units, factor, &total) || total > uint64_t{INT64_MAX}) {
    return error(TUTTI_ERR_CONFIG, "duration '{}' is longer than 292 years", text);
  }
  for (uint64_t place = factor / 10; const char digit : fraction) {
    total += static_cast<uint64_t>(digit - '0') * place;
    place /= 10;
  }
  return total;
}

std::string format_duration_ns(uint64_t duration_ns) {
  if (duration_ns == 0) return "0";
  for (const Unit& unit : kTimeUnits) {
    const bool readable = unit.name != "h" && (unit.name != "m" || duration_ns / unit.factor >= 2);
    if (readable && duration_ns % unit.factor == 0) return fmt::format("{}{}", duration_ns / unit.factor, unit.name);
  }
  return fmt::format("{}ns", duration_ns);
}

}  // namespace tutti
