// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <bit>
#include <cstring>

namespace {

using tutti::DType;

Elements integer_corners(unsigned bits) {
  const uint64_t top = uint64_t{1} << (bits - 1);
  return {0, 1, 2, 3, 5, 7, top - 1, top, top + 1, top | (top - 1), (top - 1) * 2, top / 2, top / 2 + 1, 0x55, 100};
}

/// Of a binary format with so many exponent and fraction bits, each with both signs.
Elements float_corners(unsigned exponent_bits, unsigned fraction_bits) {
  const uint64_t one = 1;
  const uint64_t infinity = ((one << exponent_bits) - 1) << fraction_bits;
  const uint64_t quiet = one << (fraction_bits - 1);
  const uint64_t unit = ((one << (exponent_bits - 1)) - 1) << fraction_bits;  // 1.0
  Elements positive = {0,
                       1,  // smallest denormal
                       2,
                       (one << fraction_bits) - 1,  // largest denormal
                       one << fraction_bits,        // smallest normal
                       (one << fraction_bits) + 1,
                       unit,
                       unit + 1,
                       unit - 1,
                       unit + (one << fraction_bits),        // 2.0
                       unit + (one << (fraction_bits - 1)),  // 1.5
                       unit + 3 * (one << (fraction_bits - 2)),
                       unit - (one << fraction_bits) * (fraction_bits + 1),  // half an ulp of 1.0
                       infinity - 1,                                         // largest finite
                       infinity - 2,
                       infinity - (one << fraction_bits),
                       infinity,
                       infinity | quiet,
                       infinity | quiet | 1,
                       infinity | quiet | (quiet >> 1),
                       infinity | 1,  // signalling
                       infinity | (quiet - 1)};
  const uint64_t sign = one << (exponent_bits + fraction_bits);
  Elements all = positive;
  for (const uint64_t bits : positive) all.push_back(bits | sign);
  return all;
}

uint64_t moderate(DType dtype, std::mt19937_64& random) {
  const auto mantissa = static_cast<int64_t>(random() >> 40) - (int64_t{1} << 23);
  const double value = static_cast<double>(mantissa) / 65536.0;
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<uint64_t>(value * 1.000000000123);
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::bf16:
      return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
    case DType::f16:
      return (random() & 0x83ff) | (0x3000 + (random() & 0x1800));  // 2^-3 .. 2^3
    default:
      return random() % 100;
  }
}

}  // namespace

const Elements& corners(DType dtype) {
  static const Elements of_8 = integer_corners(8);
  static const Elements of_16 = integer_corners(16);
  static const Elements of_32 = integer_corners(32);
  static const Elements of_64 = integer_corners(64);
  static const Elements of_f16 = float_corners(5, 10);
  static const Elements of_bf16 = float_corners(8, 7);
  static const Elements of_f32 = float_corners(8, 23);
  static const Elements of_f64 = float_corners(11, 52);
  switch (dtype) {
    case DType::i8:
    case DType::u8:
      return of_8;
    case DType::i16:
    case DType::u16:
      return of_16;
    case DType::i32:
    case DType::u32:
      return of_32;
    case DType::i64:
    case DType::u64:
      return of_64;
    case DType::f16:
      return of_f16;
    case DType::bf16:
      return of_bf16;
    case DType::f32:
      return of_f32;
    case DType::f64:
      return of_f64;
  }
  return of_8;
}

Elements random_elements(DType dtype, size_t count, std::mt19937_64& random) {
  const Elements& special = corners(dtype);
  Elements elements(count);
  for (uint64_t& element : elements) {
    switch (random() % 3) {
      case 0:
        element = special[random() % special.size()];
        break;
      case 1:
        element = random();
        break;
      default:
        element = moderate(dtype, random);
        break;
    }
  }
  return elements;
}

std::vector<std::byte> pack(DType dtype, const Elements& elements) {
  const size_t bytes = tutti::size_bytes(dtype);
  std::vector<std::byte> packed(elements.size() * bytes);
  for (size_t i = 0; i < elements.size(); ++i) std::memcpy(packed.data() + i * bytes, &elements[i], bytes);
  return packed;
}
