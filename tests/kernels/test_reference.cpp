// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules that tutti.h and kernels.hpp promise, with the expected values written down or computed in another way.
#include <array>
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

/// A format by its definition. `largest` is the pattern of the largest finite number, that of infinity (or NaN) follows it.
struct Format {
  int exponent_bits;
  int fraction_bits;
  uint32_t largest;

  double value_of(uint32_t bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
    const int fraction = static_cast<int>(bits & ((1u << fraction_bits) - 1));
    const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                           : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
    return (bits >> (exponent_bits + fraction_bits)) != 0 ? -magnitude : magnitude;
  }

  /// The nearest finite magnitude by search; ties to the even one; largest + 1 from half way to what would follow on.
  uint32_t nearest(double value) const {
    const double magnitude = std::fabs(value);
    uint32_t low = 0;
    uint32_t high = largest + 1;  // value_of gives it the value that would follow, if there were one
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      (value_of(middle) <= magnitude ? low : high) = middle;
    }
    const double down = magnitude - value_of(low);
    const double up = value_of(high) - magnitude;
    const uint32_t chosen = down < up || (down == up && low % 2 == 0) ? low : high;
    return chosen | (std::signbit(value) ? 1u << (exponent_bits + fraction_bits) : 0);
  }
};
constexpr Format kF16{5, 10, 0x7bff};
constexpr Format kE4m3{4, 3, 0x7e};
constexpr Format kE5m2{5, 2, 0x7b};

double value_of_f16(uint32_t half) { return kF16.value_of(half); }
uint16_t nearest_f16(double value) { return static_cast<uint16_t>(kF16.nearest(value)); }

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
        CAPTURE(static_cast<uint32_t>(a[i]), static_cast<uint32_t>(b[i]), exact, result[i]);
        FAIL("not the nearest value");
      }
    }
  }
}

TEST_CASE("8-bit floats: sums and products of all pairs are the nearest value; overflow shows") {
  for (const DType dtype : {DType::f8e4m3, DType::f8e5m2}) {
    const Format& format = dtype == DType::f8e4m3 ? kE4m3 : kE5m2;
    const uint8_t nan = dtype == DType::f8e4m3 ? 0x7f : 0x7e;
    // e4m3 has no infinity: its largest finite number is followed by NaN, which has no sign in results.
    const auto overflow = [&](uint32_t bits) { return dtype == DType::f8e4m3 && (bits & 0x7f) == 0x7f ? uint32_t{nan} : bits; };
    for (uint32_t x = 0; x < 256; ++x) {
      for (uint32_t y = 0; y < 256; ++y) {
        if ((x & 0x7f) > format.largest || (y & 0x7f) > format.largest) continue;
        const double sum = format.value_of(x) + format.value_of(y);
        const double product = format.value_of(x) * format.value_of(y);
        const uint8_t a = static_cast<uint8_t>(x);
        const uint8_t b = static_cast<uint8_t>(y);
        const uint8_t sum_bits = fold<uint8_t>(dtype, Op::sum, {a, b});
        const uint8_t product_bits = fold<uint8_t>(dtype, Op::prod, {a, b});
        if (sum_bits != overflow(format.nearest(sum)) || product_bits != overflow(format.nearest(product))) {
          CAPTURE(tutti::name(dtype), x, y, int{sum_bits}, int{product_bits});
          FAIL("not the nearest value");
        }
      }
    }
    CHECK(fold<uint8_t>(dtype, Op::sum, {0xff, 0}) == nan);
    CHECK(fold<uint8_t>(dtype, Op::min, {0x00, 0x80}) == 0x80);
    CHECK(fold<uint8_t>(dtype, Op::max, {0x80, 0x00}) == 0x00);
    CHECK(fold<uint8_t>(dtype, Op::max, {0x7f, 0x08}) == nan);
  }
  CHECK(fold<uint8_t>(DType::f8e4m3, Op::sum, {0x7e, 0x58}) == 0x7e);  // 448 + 16: a tie, the even one is 448
  CHECK(fold<uint8_t>(DType::f8e4m3, Op::sum, {0x7e, 0x59}) == 0x7f);  // 448 + 18
  CHECK(fold<uint8_t>(DType::f8e5m2, Op::sum, {0x7b, 0x6b}) == 0x7b);  // 57344 + 3584: nearer to 57344
  CHECK(fold<uint8_t>(DType::f8e5m2, Op::sum, {0x7b, 0x6c}) == 0x7c);  // 57344 + 4096: a tie, to infinity
  CHECK(fold<uint8_t>(DType::f8e5m2, Op::sum, {0x7c, 0xfc}) == 0x7e);
  CHECK(fold<uint8_t>(DType::f8e4m3, Op::avg, {0x7e, 0x7e}, 2) == 0x7e);  // the sum alone would be NaN
}

TEST_CASE("bitwise and logical operations") {
  CHECK(fold<uint16_t>(DType::u16, Op::band, {0xff0f, 0x0fff, 0xfff3}) == 0x0f03);
  CHECK(fold<int32_t>(DType::i32, Op::bor, {1, -8}) == -7);
  CHECK(fold<uint64_t>(DType::u64, Op::bxor, {UINT64_MAX, 1}) == UINT64_MAX - 1);
  CHECK(fold<uint8_t>(DType::byte, Op::bxor, {0xa5, 0x5a, 0xff}) == 0);
  CHECK(fold<int64_t>(DType::i64, Op::land, {-5, int64_t{1} << 40}) == 1);
  CHECK(fold<int64_t>(DType::i64, Op::land, {-5, 0, 3}) == 0);
  CHECK(fold<int16_t>(DType::i16, Op::lor, {0, -32768}) == 1);
  CHECK(fold<uint32_t>(DType::u32, Op::lxor, {7, 8}) == 0);
  CHECK(fold<uint32_t>(DType::u32, Op::lxor, {7, 8, 9}) == 1);
  CHECK(fold<int8_t>(DType::i8, Op::lor, {0, 0}) == 0);
}

TEST_CASE("bool: any value but 0 is true, results are 0 or 1, sum and max are or, prod and min are and") {
  for (const uint8_t a : std::initializer_list<uint8_t>{0, 1, 2, 255}) {
    for (const uint8_t b : std::initializer_list<uint8_t>{0, 1, 128}) {
      const uint8_t both = a != 0 && b != 0;
      const uint8_t either = a != 0 || b != 0;
      for (const Op op : {Op::land, Op::prod, Op::min}) CHECK(fold<uint8_t>(DType::boolean, op, {a, b}) == both);
      for (const Op op : {Op::lor, Op::sum, Op::max}) CHECK(fold<uint8_t>(DType::boolean, op, {a, b}) == either);
      CHECK(fold<uint8_t>(DType::boolean, Op::lxor, {a, b}) == (both != either));
    }
  }
}

namespace {

struct Complex64 {
  float real;
  float imaginary;
  bool operator==(const Complex64&) const = default;
};

template <class T>
struct Located {
  T value;
  int32_t index;
};

template <class T>
std::string located(DType dtype, Op op, std::initializer_list<Located<T>> values) {
  const Located<T> result = fold<Located<T>>(dtype, op, values);
  return std::to_string(result.value) + "@" + std::to_string(result.index);
}

}  // namespace

TEST_CASE("complex numbers: the plain formula, each part rounded by itself") {
  CHECK(fold<Complex64>(DType::c64, Op::sum, {{1, 2}, {3, -5}}) == Complex64{4, -3});
  CHECK(fold<Complex64>(DType::c64, Op::prod, {{1, 2}, {3, -5}}) == Complex64{13, 1});
  CHECK(fold<Complex64>(DType::c64, Op::avg, {{1, 2}, {3, -5}}, 2) == Complex64{2, -1.5f});
  // With a fused multiply-add the real part would keep what the first product lost.
  const float x = 1 + 0x1p-12f;
  CHECK(fold<Complex64>(DType::c64, Op::prod, {{x, 1}, {x, 1 + 0x1p-11f}}).real == 0.0f);
  const float infinity = std::numeric_limits<float>::infinity();
  // Infinity times 1 + 0i: the zero makes a NaN, which C's Annex G would repair.
  const Complex64 product = fold<Complex64>(DType::c64, Op::prod, {{infinity, 0}, {1, 0}});
  CHECK(product.real == infinity);
  CHECK(bits(product.imaginary) == 0x7fc00000);
}

TEST_CASE("minloc and maxloc: the value of min and max, the lowest index") {
  CHECK(located<int32_t>(DType::i32_i32, Op::minloc, {{5, 3}, {4, 9}, {4, 7}, {6, 0}}) == "4@7");
  CHECK(located<int32_t>(DType::i32_i32, Op::maxloc, {{5, 3}, {6, 9}, {4, 7}, {6, 2}}) == "6@2");
  CHECK(located<int16_t>(DType::i16_i32, Op::minloc, {{1, 3}, {-32768, 4}, {-32768, -1}}) == "-32768@-1");
  CHECK(located<int64_t>(DType::i64_i32, Op::maxloc, {{INT64_MIN, 3}, {INT64_MIN, 2}}) == std::to_string(INT64_MIN) + "@2");
  CHECK(located<int64_t>(DType::i64_i32, Op::maxloc, {{int64_t{1} << 40, 3}, {(int64_t{1} << 40) + 1, 4}}) == "1099511627777@4");
  const float nan = f32(0xffc00001);
  for (const Op op : {Op::minloc, Op::maxloc}) {
    CHECK(located<float>(DType::f32_i32, op, {{1, 0}, {nan, 8}, {-nan, 5}, {2, 1}}) == "nan@5");
    CHECK(located<double>(DType::f64_i32, op, {{std::numeric_limits<double>::quiet_NaN(), 4}, {1, 0}}) == "nan@4");
  }
  CHECK(located<float>(DType::f32_i32, Op::minloc, {{0.0f, 1}, {-0.0f, 2}}) == "-0.000000@2");
  CHECK(located<float>(DType::f32_i32, Op::maxloc, {{-0.0f, 1}, {0.0f, 2}}) == "0.000000@2");
  CHECK(located<double>(DType::f64_i32, Op::minloc, {{-1.5, 6}, {-2.5, 7}, {-2.5, 6}}) == "-2.500000@6");
  // Padding is zero in results.
  const std::array<uint32_t, 4> a = {1, 0, 2, 0xdeadbeef};
  const std::array<uint32_t, 4> b = {2, 0, 3, 0xdeadbeef};
  CHECK(fold<std::array<uint32_t, 4>>(DType::i64_i32, Op::minloc, {a, b}) == std::array<uint32_t, 4>{1, 0, 2, 0});
  CHECK(fold<uint64_t>(DType::i16_i32, Op::maxloc, {0x0000'0005'dead'0001u, 0x0000'0006'beef'0000u}) == 0x0000'0005'0000'0001u);
}

TEST_CASE("conversions and scaling: rounded once") {
  const float third = 1.0f / 3;
  uint8_t small = 0;
  tutti::narrow_from_f32(DType::f8e4m3, &small, &third, 1, level_under_test());
  CHECK(small == kE4m3.nearest(third));
  uint16_t half = 0x3c00;
  tutti::scale(DType::f16, &half, &half, 1, 1.0 / 3, level_under_test());
  CHECK(half == nearest_f16(third));
  float wide = 0;
  tutti::widen_to_f32(DType::f16, &wide, &half, 1, level_under_test());
  CHECK(wide == static_cast<float>(value_of_f16(half)));
  Complex64 number{3, -6};
  tutti::scale(DType::c64, &number, &number, 1, 0.5, level_under_test());
  CHECK(number == Complex64{1.5f, -3});
  double precise = 3;
  tutti::scale(DType::f64, &precise, &precise, 1, 1.0 / 3, level_under_test());
  CHECK(precise == 3 * (1.0 / 3));
  CHECK_FALSE(tutti::can_scale(DType::i32));
  CHECK_FALSE(tutti::can_scale(DType::f32_i32));
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
