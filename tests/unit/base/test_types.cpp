// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/types.hpp"

using tutti::DType;
using tutti::Op;

TEST_CASE("data types: numbers, names and sizes agree with tutti.h") {
  const std::vector<std::pair<const char*, size_t>> expected{
      {"i8", 1},   {"u8", 1},   {"i16", 2},     {"u16", 2},      {"i32", 4},     {"u32", 4},     {"i64", 8},     {"u64", 8},
      {"f16", 2},  {"bf16", 2}, {"f32", 4},     {"f64", 8},      {"f8e4m3", 1},  {"f8e5m2", 1},  {"c64", 8},     {"c128", 16},
      {"bool", 1}, {"byte", 1}, {"f32_i32", 8}, {"f64_i32", 16}, {"i16_i32", 8}, {"i32_i32", 8}, {"i64_i32", 16}};
  REQUIRE(expected.size() == tutti::kDTypeCount);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    INFO(expected[i].first);
    CHECK(tutti::name(dtype) == expected[i].first);
    CHECK(tutti::size_bytes(dtype) == expected[i].second);
    CHECK(tutti::parse_dtype(expected[i].first).value() == dtype);
    CHECK(tutti::to_dtype(static_cast<tutti_dtype_t>(i)).value() == dtype);
  }
  CHECK(tutti::to_dtype(TUTTI_BFLOAT16).value() == DType::bf16);
  CHECK(tutti::parse_dtype("bfloat16").value() == DType::bf16);
  CHECK(tutti::parse_dtype("float64").value() == DType::f64);
  CHECK(tutti::parse_dtype("int32").value() == DType::i32);
  CHECK(tutti::parse_dtype("float8_e5m2").value() == DType::f8e5m2);
  CHECK(tutti::to_dtype(TUTTI_COMPLEX128).value() == DType::c128);
  CHECK(tutti::to_dtype(TUTTI_BOOL).value() == DType::boolean);
  CHECK(tutti::to_dtype(TUTTI_INT16_INT32).value() == DType::i16_i32);
}

TEST_CASE("pairs are laid out as the C structures that tutti.h promises") {
  struct F64I32 {
    double value;
    int32_t index;
  };
  struct I16I32 {
    int16_t value;
    int32_t index;
  };
  struct I64I32 {
    int64_t value;
    int32_t index;
  };
  CHECK(tutti::size_bytes(DType::f64_i32) == sizeof(F64I32));
  CHECK(tutti::size_bytes(DType::i16_i32) == sizeof(I16I32));
  CHECK(tutti::size_bytes(DType::i64_i32) == sizeof(I64I32));
}

TEST_CASE("unknown types and operations are errors that name the value") {
  for (const tutti_dtype_t number : {-1, 23, 255, INT32_MAX, INT32_MIN}) {
    const auto result = tutti::to_dtype(number);
    CHECK(result.status().code() == TUTTI_ERR_TYPE);
    CHECK(std::string(result.status().message()).find(std::to_string(number)) != std::string::npos);
  }
  for (const tutti_op_t number : {-1, 13, INT32_MAX, INT32_MIN}) CHECK(tutti::to_op(number).status().code() == TUTTI_ERR_OP);
  for (const char* text : {"", "F32", "float", "f32 ", "i128"}) CHECK(tutti::parse_dtype(text).status().code() == TUTTI_ERR_TYPE);
  for (const char* text : {"", "SUM", "mean", "sum "}) CHECK(tutti::parse_op(text).status().code() == TUTTI_ERR_OP);
}

TEST_CASE("operations: numbers and names agree with tutti.h") {
  const std::vector<std::pair<const char*, tutti_op_t>> expected{
      {"sum", TUTTI_SUM},   {"prod", TUTTI_PROD},     {"min", TUTTI_MIN},      {"max", TUTTI_MAX},   {"avg", TUTTI_AVG},
      {"band", TUTTI_BAND}, {"bor", TUTTI_BOR},       {"bxor", TUTTI_BXOR},    {"land", TUTTI_LAND}, {"lor", TUTTI_LOR},
      {"lxor", TUTTI_LXOR}, {"minloc", TUTTI_MINLOC}, {"maxloc", TUTTI_MAXLOC}};
  REQUIRE(expected.size() == tutti::kOpCount);
  for (const auto& [text, number] : expected) {
    CHECK(tutti::name(tutti::to_op(number).value()) == text);
    CHECK(tutti::parse_op(text).value() == tutti::to_op(number).value());
  }
}

TEST_CASE("operations are defined for types as the table in tutti.h says") {
  const auto ops_of = [](DType dtype) {
    std::string ops;
    for (size_t op = 0; op < tutti::kOpCount; ++op) {
      if (tutti::defined(dtype, static_cast<Op>(op))) ops.append(tutti::name(static_cast<Op>(op))).append(" ");
    }
    return ops;
  };
  for (tutti_dtype_t dtype = TUTTI_INT8; dtype <= TUTTI_UINT64; ++dtype)
    CHECK(ops_of(tutti::to_dtype(dtype).value()) == "sum prod min max avg band bor bxor land lor lxor ");
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2})
    CHECK(ops_of(dtype) == "sum prod min max avg ");
  for (const DType dtype : {DType::c64, DType::c128}) CHECK(ops_of(dtype) == "sum prod avg ");
  CHECK(ops_of(DType::boolean) == "sum prod min max land lor lxor ");
  CHECK(ops_of(DType::byte) == "band bor bxor ");
  for (tutti_dtype_t dtype = TUTTI_FLOAT32_INT32; dtype <= TUTTI_INT64_INT32; ++dtype)
    CHECK(ops_of(tutti::to_dtype(dtype).value()) == "minloc maxloc ");
  CHECK(tutti::check_defined(DType::c64, Op::avg).ok());
  const auto status = tutti::check_defined(DType::c64, Op::max);
  CHECK(status.code() == TUTTI_ERR_OP);
  for (const char* part : {"max", "complex64", "sum prod avg"})
    CHECK(std::string(status.message()).find(part) != std::string::npos);
}

TEST_CASE("sizes are checked at 63 bits") {
  CHECK(tutti::checked_bytes(0, 8).value() == 0);
  CHECK(tutti::checked_bytes(uint64_t{1} << 60, 4).value() == uint64_t{1} << 62);
  CHECK(tutti::checked_bytes(INT64_MAX, 1).value() == uint64_t{INT64_MAX});
  CHECK(tutti::checked_bytes(uint64_t{1} << 63, 1).status().code() == TUTTI_ERR_SIZE);
  CHECK(tutti::checked_bytes(uint64_t{1} << 60, 8).status().code() == TUTTI_ERR_SIZE);
  CHECK(tutti::checked_bytes(uint64_t{1} << 61, 8).status().code() == TUTTI_ERR_SIZE);  // 2^64: zero, if nobody looks
  CHECK(tutti::checked_bytes(UINT64_MAX, UINT64_MAX).status().code() == TUTTI_ERR_SIZE);
}

TEST_CASE("bytes: units, and what is none") {
  const std::vector<std::pair<const char*, uint64_t>> good{
      {"0", 0},        {"4096", 4096},       {"64K", 65536},        {"64k", 65536}, {"64KB", 65536}, {"64KiB", 65536},
      {"1M", 1048576}, {"2GiB", 2147483648}, {"1T", 1099511627776}, {"12B", 12},    {"007", 7}};
  for (const auto& [text, bytes] : good) {
    INFO(text);
    const auto parsed = tutti::parse_bytes(text);
    REQUIRE(parsed.ok());
    CHECK(parsed.value() == bytes);
  }
  CHECK(tutti::parse_bytes("9223372036854775807").value() == uint64_t{INT64_MAX});
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1 K", "1.5M", "1KK", "1KiBs", "0x10", "1e3", "nan", "1P"}) {
    INFO(text);
    CHECK(tutti::parse_bytes(text).status().code() == TUTTI_ERR_CONFIG);
  }
  for (const char* text : {"9223372036854775808", "99999999999999999999999", "9999999999T", "16777216T"}) {
    INFO(text);
    const auto status = tutti::parse_bytes(text).status();
    CHECK(status.code() == TUTTI_ERR_CONFIG);
    CHECK(std::string(status.message()).find("63 bits") != std::string::npos);
  }
}

TEST_CASE("bytes are written so that they read back") {
  CHECK(tutti::format_bytes(0) == "0");
  CHECK(tutti::format_bytes(1000) == "1000");
  CHECK(tutti::format_bytes(65536) == "64K");
  CHECK(tutti::format_bytes(1536 * 1024) == "1536K");
  CHECK(tutti::format_bytes(uint64_t{3} << 40) == "3T");
  for (uint64_t bytes = 1; bytes < uint64_t{1} << 62; bytes = bytes * 3 + 1) {
    for (const uint64_t value : {bytes, bytes << (bytes % 2)})
      CHECK(tutti::parse_bytes(tutti::format_bytes(value)).value() == value);
  }
  for (int shift = 0; shift < 63; ++shift) {
    CHECK(tutti::parse_bytes(tutti::format_bytes(uint64_t{1} << shift)).value() == uint64_t{1} << shift);
  }
}

TEST_CASE("durations: units, fractions, and what is none") {
  const std::vector<std::pair<const char*, uint64_t>> good{{"0", 0},
                                                           {"500us", 500'000},
                                                           {"20ms", 20'000'000},
                                                           {"60s", 60'000'000'000},
                                                           {"2m", 120'000'000'000},
                                                           {"1h", 3600'000'000'000},
                                                           {"7ns", 7},
                                                           {"1.5", 1'500'000'000},
                                                           {"10", 10'000'000'000},
                                                           {"0.25ms", 250'000},
                                                           {"1.", 1'000'000'000},
                                                           {"1.000000001", 1'000'000'001},
                                                           {"0.0000000001", 0}};
  for (const auto& [text, duration_ns] : good) {
    INFO(text);
    const auto parsed = tutti::parse_duration_ns(text);
    REQUIRE(parsed.ok());
    CHECK(parsed.value() == duration_ns);
  }
  for (const char* text : {"", "s", ".", ".5", "-1s", "1 s", "1.2.3", "1d", "1S", "1e3", "inf", "1,5"}) {
    INFO(text);
    CHECK(tutti::parse_duration_ns(text).status().code() == TUTTI_ERR_CONFIG);
  }
  for (const char* text : {"99999999999h", "9223372037s", "999999999999999999999"}) {
    INFO(text);
    CHECK(tutti::parse_duration_ns(text).status().code() == TUTTI_ERR_CONFIG);
  }
}

TEST_CASE("durations are written so that they read back") {
  CHECK(tutti::format_duration_ns(0) == "0");
  CHECK(tutti::format_duration_ns(50'000) == "50us");
  CHECK(tutti::format_duration_ns(60'000'000'000) == "60s");
  CHECK(tutti::format_duration_ns(120'000'000'000) == "2m");
  CHECK(tutti::format_duration_ns(1'500'000'000) == "1500ms");
  for (uint64_t duration_ns = 1; duration_ns < uint64_t{1} << 60; duration_ns = duration_ns * 7 + 3) {
    for (const uint64_t scale : {uint64_t{1}, uint64_t{1000}}) {
      if (duration_ns > (uint64_t{1} << 60) / scale) continue;
      CHECK(tutti::parse_duration_ns(tutti::format_duration_ns(duration_ns * scale)).value() == duration_ns * scale);
    }
  }
}
