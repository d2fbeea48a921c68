// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules that tutti.h and kernels.hpp promise, with the expected values written down or computed in another way.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "level_under_test.hpp"
#include "samples.hpp"

namespace {

using tutti::DType;
using tutti::Op;

template <class T>
T fold(DType dtype, Op op, std::initializer_list<T> values, uint64_t divisor = 1) {
  std::vector<const void*> from;
  for (const T& value : values) from.push_back(&value);
  T result{};
  void* to = &result;
  tutti::fold_function(dtype, op, level_under_test())({&to, from.data(), 1, static_cast<uint32_t>(from.size()), 1, divisor});
  return result;
}

float f32(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

/// By the definition of binary16.
double value_of_f16(uint32_t half) {
  const int exponent = static_cast<int>(half >> 10 & 0x1f);
  const int fraction = static_cast<int>(half & 0x3ff);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The nearest finite binary16 magnitude by search; ties to the even one; 0x7c00 from half way to the next power of two on.
uint16_t nearest_f16(double value) {
  const double magnitude = std::fabs(value);
  uint32_t low = 0;
  uint32_t high = 0x7c00;  // by value_of_f16 this is 65536, the number that rounds to infinity
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (value_of_f16(middle) <= magnitude ? low : high) = middle;
  }
  const double down = magnitude - value_of_f16(low);
  const double up = value_of_f16(high) - magnitude;
  const uint32_t chosen = down < up || (down == up && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(chosen | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

TEST_CASE("integers wrap") {
  CHECK(fold<int8_t>(DType::i8, Op::sum, {100, 100}) == -56);
  CHECK(fold<uint8_t>(DType::u8, Op::prod, {16, 17}) == 16);
  CHECK(fold<int16_t>(DType::i16, Op::prod, {-32768, -1}) == -32768);
  CHECK(fold<uint16_t>(DType::u16, Op::prod, {65535, 65535}) == 1);
  CHECK(fold<int32_t>(DType::i32, Op::sum, {2147483647, 1}) == std::numeric_limits<int32_t>::min());
  CHECK(fold<int64_t>(DType::i64, Op::prod, {std::numeric_limits<int64_t>::min(), 3}) == std::numeric_limits<int64_t>::min());
  CHECK(fold<uint64_t>(DType::u64, Op::sum, {UINT64_MAX, 2, 3}) == 4);
}

TEST_CASE("integer average: the wrapped sum, divided towards zero") {
  CHECK(fold<int32_t>(DType::i32, Op::avg, {3, 4}, 2) == 3);
  CHECK(fold<int32_t>(DType::i32, Op::avg, {-3, -4}, 2) == -3);
  CHECK(fold<int8_t>(DType::i8, Op::avg, {100, 100}, 2) == -28);  // 200 wraps to -56
  CHECK(fold<uint8_t>(DType::u8, Op::avg, {200, 100}, 2) == 22);  // 300 wraps to 44
  CHECK(fold<int8_t>(DType::i8, Op::avg, {-128, 0}, 300) == 0);   // a divisor above the type's range
  CHECK(fold<uint64_t>(DType::u64, Op::avg, {UINT64_MAX - 1, 0}, 2) == UINT64_MAX / 2);
  CHECK(fold<int64_t>(DType::i64, Op::avg, {-7}, 2) == -3);  // one source is divided as well
  CHECK(fold<int64_t>(DType::i64, Op::avg, {-7, 0}, 1) == -7);
}

TEST_CASE("float average divides: not a product with the reciprocal") {
  CHECK(fold<float>(DType::f32, Op::avg, {5.0f, 0.0f}, 49) == 5.0f / 49.0f);
  CHECK(5.0f / 49.0f != 5.0f * (1.0f / 49.0f));
  CHECK(fold<double>(DType::f64, Op::avg, {5.0, 0.0}, 49) == 5.0 / 49.0);
  // f16: 2049 is not representable, its half in f32 rounds to 1024 (even); rounding twice would divide 2048.
  CHECK(fold<uint16_t>(DType::f16, Op::avg, {0x6800, 0x3c00}, 2) == nearest_f16(1024.5));
  CHECK(fold<uint16_t>(DType::f16, Op::avg, {0x7bff, 0x7bff}, 2) == 0x7bff);  // the sum alone would be infinite
}

TEST_CASE("min and max: NaN wins, -0 is below +0") {
  const float nan = f32(0x7fc00000);
  for (const Op op : {Op::min, Op::max}) {
    CHECK(bits(fold<float>(DType::f32, op, {1.0f, nan})) == 0x7fc00000);
    CHECK(bits(fold<float>(DType::f32, op, {nan, 1.0f})) == 0x7fc00000);
    CHECK(bits(fold<float>(DType::f32, op, {nan, 1.0f, 2.0f})) == 0x7fc00000);
    CHECK(bits(fold<float>(DType::f32, op, {nan, nan})) == 0x7fc00000);
    CHECK(fold<uint16_t>(DType::f16, op, {0x7c01, 0x3c00}) == 0x7e00);
    CHECK(fold<uint16_t>(DType::bf16, op, {0x3f80, 0xffff}) == 0x7fc0);
  }
  CHECK(bits(fold<float>(DType::f32, Op::min, {0.0f, -0.0f})) == 0x80000000);
  CHECK(bits(fold<float>(DType::f32, Op::min, {-0.0f, 0.0f})) == 0x80000000);
  CHECK(bits(fold<float>(DType::f32, Op::max, {0.0f, -0.0f})) == 0);
  CHECK(bits(fold<float>(DType::f32, Op::max, {-0.0f, 0.0f})) == 0);
  CHECK(std::signbit(fold<double>(DType::f64, Op::min, {0.0, -0.0})));
  CHECK_FALSE(std::signbit(fold<double>(DType::f64, Op::max, {-0.0, 0.0})));
  CHECK(fold<int8_t>(DType::i8, Op::min, {-1, 1}) == -1);
  CHECK(fold<uint8_t>(DType::u8, Op::min, {255, 1}) == 1);
  CHECK(fold<uint64_t>(DType::u64, Op::max, {uint64_t{1} << 63, 1}) == uint64_t{1} << 63);
  CHECK(fold<int64_t>(DType::i64, Op::max, {std::numeric_limits<int64_t>::min(), 1}) == 1);
}

TEST_CASE("a NaN that a fold makes or meets becomes the canonical one; a copy keeps its bits") {
  const float payload = f32(0xffc12345);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(bits(fold<float>(DType::f32, Op::sum, {payload, 1.0f})) == 0x7fc00000);
  CHECK(bits(fold<float>(DType::f32, Op::sum, {infinity, -infinity})) == 0x7fc00000);
  CHECK(bits(fold<float>(DType::f32, Op::prod, {0.0f, infinity})) == 0x7fc00000);
  CHECK(std::bit_cast<uint64_t>(fold<double>(DType::f64, Op::sum, {std::bit_cast<double>(0xfff8000000000123u), 1.0})) ==
        0x7ff8000000000000u);
  CHECK(fold<uint16_t>(DType::f16, Op::sum, {0xfe01, 0xfe02}) == 0x7e00);
  CHECK(fold<uint16_t>(DType::bf16, Op::avg, {0xff81, 0x3f80}, 2) == 0x7fc0);
  CHECK(fold<uint32_t>(DType::f32, Op::sum, {0xffc12345u}) == 0xffc12345u);
  CHECK(fold<uint16_t>(DType::f16, Op::avg, {0xfe01}) == 0xfe01);
}

TEST_CASE("16-bit floats fold in f32 and are rounded once") {
  // 2048 + 1 is a tie in f16 that goes to 2048; rounding after each source would lose both ones.
  CHECK(fold<uint16_t>(DType::f16, Op::sum, {0x6800, 0x3c00, 0x3c00}) == nearest_f16(2050));
  // bf16: 256 + 1 + 1 = 258.
  CHECK(fold<uint16_t>(DType::bf16, Op::sum, {0x4380, 0x3f80, 0x3f80}) == 0x4381);
  // Overflow on the way is none in f32.
  CHECK(fold<uint16_t>(DType::f16, Op::sum, {0x7bff, 0x7bff, 0xfbff}) == 0x7bff);
  // bf16 ties go to even: 256 + 1 = 257 lies between 256 and 258.
  CHECK(fold<uint16_t>(DType::bf16, Op::sum, {0x4380, 0x3f80}) == 0x4380);
  CHECK(fold<uint16_t>(DType::bf16, Op::sum, {0x4381, 0x3f80}) == 0x4382);
  CHECK(fold<uint16_t>(DType::bf16, Op::sum, {0x7f7f, 0x7f7f}) == 0x7f80);
}

TEST_CASE("binary16: widening is exact and narrowing the nearest value, for all values") {
  std::mt19937_64 random(5);
  Elements a;
  Elements b;
  for (uint32_t half = 0; half < 65536; ++half) {
    if ((half & 0x7c00) == 0x7c00) continue;
    for (int k = 0; k < 4; ++k) {
      a.push_back(half);
      b.push_back(random() & 0xfbff);  // finite, or the largest binades
      if ((b.back() & 0x7c00) == 0x7c00) b.back() &= 0x8fff;
    }
  }
  const auto first = pack(DType::f16, a);
  const auto second = pack(DType::f16, b);
  std::vector<uint16_t> result(a.size());
  for (const Op op : {Op::sum, Op::prod}) {
    const void* from[] = {first.data(), second.data()};
    void* to = result.data();
    tutti::fold_function(DType::f16, op, level_under_test())({&to, from, 1, 2, a.size()});
    for (size_t i = 0; i < a.size(); ++i) {
      const auto x = static_cast<float>(value_of_f16(static_cast<uint32_t>(a[i])));
      const auto y = static_cast<float>(value_of_f16(static_cast<uint32_t>(b[i])));
      const float exact = op == Op::sum ? x + y : x * y;
      if (result[i] != nearest_f16(exact)) {
        CAPTURE(a[i], b[i], exact, result[i]);
        FAIL("not the nearest value");
      }
    }
  }
}

TEST_CASE("there is a kernel for every defined pair of type and operation, and for no other") {
  for (size_t type = 0; type < tutti::kDTypeCount; ++type) {
    for (size_t op = 0; op < tutti::kOpCount; ++op) {
      CAPTURE(type, op);
      const bool defined = tutti::defined(static_cast<DType>(type), static_cast<Op>(op));
      CHECK((tutti::fold_function(static_cast<DType>(type), static_cast<Op>(op), level_under_test()) != nullptr) == defined);
    }
  }
  CHECK(tutti::detected_cpu_level() == tutti::detected_cpu_level());
}
