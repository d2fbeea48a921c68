// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "base/types.hpp"

#include <array>
#include <charconv>

namespace tutti {
namespace {

/// Bit i: Op number i.
using OpSet = uint16_t;

template <class... Ops>
constexpr OpSet set_of(Ops... ops) {
  return static_cast<OpSet>(((1u << static_cast<unsigned>(ops)) | ...));
}
constexpr OpSet kField = set_of(Op::sum, Op::prod, Op::avg);
constexpr OpSet kExtremes = set_of(Op::min, Op::max);
constexpr OpSet kBitwise = set_of(Op::band, Op::bor, Op::bxor);
constexpr OpSet kLogical = set_of(Op::land, Op::lor, Op::lxor);
constexpr OpSet kOfIntegers = kField | kExtremes | kBitwise | kLogical;
constexpr OpSet kOfFloats = kField | kExtremes;
constexpr OpSet kOfComplex = kField;
constexpr OpSet kOfBool = set_of(Op::sum, Op::prod) | kExtremes | kLogical;
constexpr OpSet kOfPairs = set_of(Op::minloc, Op::maxloc);

struct DTypeInfo {
  std::string_view name;
  const char* c_name;
  size_t bytes;
  OpSet ops;
};
// Indexed by DType, whose numbers are those of tutti.h.
constexpr std::array<DTypeInfo, kDTypeCount> kDTypes{{
    {"i8", "int8", 1, kOfIntegers},
    {"u8", "uint8", 1, kOfIntegers},
    {"i16", "int16", 2, kOfIntegers},
    {"u16", "uint16", 2, kOfIntegers},
    {"i32", "int32", 4, kOfIntegers},
    {"u32", "uint32", 4, kOfIntegers},
    {"i64", "int64", 8, kOfIntegers},
    {"u64", "uint64", 8, kOfIntegers},
    {"f16", "float16", 2, kOfFloats},
    {"bf16", "bfloat16", 2, kOfFloats},
    {"f32", "float32", 4, kOfFloats},
    {"f64", "float64", 8, kOfFloats},
    {"f8e4m3", "float8_e4m3", 1, kOfFloats},
    {"f8e5m2", "float8_e5m2", 1, kOfFloats},
    {"c64", "complex64", 8, kOfComplex},
    {"c128", "complex128", 16, kOfComplex},
    {"bool", "bool", 1, kOfBool},
    {"byte", "byte", 1, kBitwise},
    {"f32_i32", "float32_int32", 8, kOfPairs},
    {"f64_i32", "float64_int32", 16, kOfPairs},
    {"i16_i32", "int16_int32", 8, kOfPairs},
    {"i32_i32", "int32_int32", 8, kOfPairs},
    {"i64_i32", "int64_int32", 16, kOfPairs},
}};
constexpr std::array<const char*, kOpCount> kOps{"sum",  "prod", "min", "max",  "avg",    "band",  "bor",
                                                 "bxor", "land", "lor", "lxor", "minloc", "maxloc"};

static_assert(static_cast<int>(DType::f16) == TUTTI_FLOAT16 && static_cast<int>(DType::f64) == TUTTI_FLOAT64);
static_assert(static_cast<int>(DType::f8e4m3) == TUTTI_FLOAT8_E4M3 && static_cast<int>(DType::byte) == TUTTI_BYTE);
static_assert(static_cast<int>(DType::i64_i32) == TUTTI_INT64_INT32 && kDTypeCount == TUTTI_INT64_INT32 + 1);
static_assert(static_cast<int>(Op::sum) == TUTTI_SUM && static_cast<int>(Op::avg) == TUTTI_AVG);
static_assert(static_cast<int>(Op::maxloc) == TUTTI_MAXLOC && kOpCount == TUTTI_MAXLOC + 1);

/// "sum prod min": the names of those that `wanted` holds.
std::string op_names(OpSet wanted) {
  std::string names;
  for (size_t i = 0; i < kOps.size(); ++i) {
    if ((wanted >> i & 1) != 0) names.append(names.empty() ? "" : " ").append(kOps[i]);
  }
  return names;
}

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
const char* c_name(DType dtype) noexcept { return kDTypes[static_cast<size_t>(dtype)].c_name; }
const char* c_name(Op op) noexcept { return kOps[static_cast<size_t>(op)]; }

Result<DType> parse_dtype(std::string_view text) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (text == kDTypes[i].name || text == kDTypes[i].c_name) return static_cast<DType>(i);
  }
  std::string known;
  for (const DTypeInfo& info : kDTypes) known.append(known.empty() ? "" : " ").append(info.name);
  return error(TUTTI_ERR_TYPE, "unknown data type '{}'; known: {}", text, known);
}

Result<Op> parse_op(std::string_view text) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (text == kOps[i]) return static_cast<Op>(i);
  }
  return error(TUTTI_ERR_OP, "unknown operation '{}'; known: {}", text, op_names(static_cast<OpSet>(~0u)));
}

Result<DType> to_dtype(tutti_dtype_t dtype) {
  if (dtype >= 0 && static_cast<size_t>(dtype) < kDTypeCount) return static_cast<DType>(dtype);
  return error(TUTTI_ERR_TYPE, "data type {} is outside 0..{} (TUTTI_INT8..TUTTI_INT64_INT32)", dtype, kDTypeCount - 1);
}

Result<Op> to_op(tutti_op_t op) {
  if (op >= 0 && static_cast<size_t>(op) < kOpCount) return static_cast<Op>(op);
  return error(TUTTI_ERR_OP, "operation {} is outside 0..{} (TUTTI_SUM..TUTTI_MAXLOC)", op, kOpCount - 1);
}

bool defined(DType dtype, Op op) noexcept {
  return (kDTypes[static_cast<size_t>(dtype)].ops >> static_cast<unsigned>(op) & 1) != 0;
}

Status check_defined(DType dtype, Op op) {
  if (defined(dtype, op)) return Status();
  const DTypeInfo& info = kDTypes[static_cast<size_t>(dtype)];
  return error(TUTTI_ERR_OP, "operation {} is not defined for data type {}; defined: {}", name(op), info.c_name,
               op_names(info.ops));
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
