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
  for (const Bits bits : positive) all.push_back(bits | sign);
  return all;
}

Elements all_bytes() {
  Elements all;
  for (unsigned value = 0; value < 256; ++value) all.push_back(value);
  return all;
}

/// Of f32 or f64: those that are of most use in pairs and complex numbers, whose corners are combinations.
Elements few_floats(unsigned exponent_bits, unsigned fraction_bits) {
  const Elements all = float_corners(exponent_bits, fraction_bits);
  const size_t half = all.size() / 2;
  Elements few;
  for (const size_t index : {size_t{0}, size_t{1}, size_t{4}, size_t{6}, size_t{11}, size_t{13}, size_t{16}, size_t{18}}) {
    few.push_back(all[index]);
    few.push_back(all[index + half]);
  }
  return few;
}

/// All combinations of a low part and a high part that starts at bit `shift`; `between` fills the bits that neither has.
Elements combined(const Elements& low, const Elements& high, unsigned shift, Bits between) {
  Elements all;
  for (const Bits x : low) {
    for (const Bits y : high) all.push_back(x | between | y << shift);
  }
  return all;
}

Elements make_corners(DType dtype) {
  const Elements indices = {0, 1, 5, 0x7fffffff, 0x80000000, 0xffffffff};
  // Behind an index of 64-bit lanes, and between a value of 16 bits and its index.
  const Bits behind = Bits{0xdeadbeef} << 96;
  const Bits between = 0xa5a50000;
  switch (dtype) {
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::byte:
      return integer_corners(8);
    case DType::i16:
    case DType::u16:
      return integer_corners(16);
    case DType::i32:
    case DType::u32:
      return integer_corners(32);
    case DType::i64:
    case DType::u64:
      return integer_corners(64);
    case DType::f16:
      return float_corners(5, 10);
    case DType::bf16:
      return float_corners(8, 7);
    case DType::f32:
      return float_corners(8, 23);
    case DType::f64:
      return float_corners(11, 52);
    case DType::f8e4m3:
    case DType::f8e5m2:
      return all_bytes();
    case DType::c64:
      return combined(few_floats(8, 23), few_floats(8, 23), 32, 0);
    case DType::c128:
      return combined(few_floats(11, 52), few_floats(11, 52), 64, 0);
    case DType::f32_i32:
      return combined(few_floats(8, 23), indices, 32, 0);
    case DType::f64_i32:
      return combined(few_floats(11, 52), indices, 64, behind);
    case DType::i16_i32:
      return combined(integer_corners(16), indices, 32, between);
    case DType::i32_i32:
      return combined(integer_corners(32), indices, 32, 0);
    case DType::i64_i32:
      return combined(integer_corners(64), indices, 64, behind);
  }
  return {};
}

/// Bits of a number of moderate size with a fraction, or of a small integer.
Bits moderate(DType dtype, std::mt19937_64& random) {
  const auto mantissa = static_cast<int64_t>(random() >> 40) - (int64_t{1} << 23);
  const double value = static_cast<double>(mantissa) / 65536.0;
  const Bits index = random() % 4;
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<uint64_t>(value * 1.000000000123);
    case DType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case DType::bf16:
      return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
    case DType::f16:
      return (random() & 0x83ff) | (0x3000 + (random() & 0x1800));  // 2^-3 .. 2^3
    case DType::f8e4m3:
      return (random() & 0x87) | (0x28 + (random() & 0x18));
    case DType::f8e5m2:
      return (random() & 0x83) | (0x30 + (random() & 0x0c));
    case DType::c64:
      return moderate(DType::f32, random) | moderate(DType::f32, random) << 32;
    case DType::c128:
      return moderate(DType::f64, random) | moderate(DType::f64, random) << 64;
    case DType::f32_i32:
    case DType::i16_i32:
    case DType::i32_i32:
      return Bits{random() % 3} | index << 32;
    case DType::f64_i32:
    case DType::i64_i32:
      return Bits{random() % 3} | index << 64;
    default:
      return random() % 100;
  }
}

}  // namespace

const Elements& corners(DType dtype) {
  static const std::vector<Elements> all = [] {
    std::vector<Elements> lists;
    for (size_t type = 0; type < tutti::kDTypeCount; ++type) lists.push_back(make_corners(static_cast<DType>(type)));
    return lists;
  }();
  return all[static_cast<size_t>(dtype)];
}

Elements random_elements(DType dtype, size_t count, std::mt19937_64& random) {
  const Elements& special = corners(dtype);
  Elements elements(count);
  for (Bits& element : elements) {
    switch (random() % 3) {
      case 0:
        element = special[random() % special.size()];
        break;
      case 1:
        element = Bits{random()} << 64 | random();
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
