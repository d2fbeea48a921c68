// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The level under test against the scalar reference, in every bit.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "guarded_buffer.hpp"
#include "level_under_test.hpp"
#include "samples.hpp"

namespace {

using tutti::CpuLevel;
using tutti::DType;
using tutti::Op;

constexpr size_t kLongest = 130;
constexpr size_t kOffsets = 64;
constexpr auto kCanary = std::byte{0xa7};

std::vector<std::byte> folded(CpuLevel level, DType dtype, Op op, const std::vector<std::vector<std::byte>>& sources,
                              uint64_t divisor) {
  std::vector<std::byte> result(sources[0].size());
  std::vector<const void*> from;
  for (const auto& source : sources) from.push_back(source.data());
  void* to = result.data();
  tutti::fold_function(dtype, op, level)(
      {&to, from.data(), 1, static_cast<uint32_t>(from.size()), result.size() / tutti::size_bytes(dtype), divisor});
  return result;
}

/// The divisors to try: only averages have one.
std::vector<uint64_t> divisors(Op op, std::initializer_list<uint64_t> of_average) {
  return op == Op::avg ? std::vector<uint64_t>(of_average) : std::vector<uint64_t>{1};
}

std::vector<std::vector<std::byte>> random_sources(DType dtype, size_t source_count, size_t count, std::mt19937_64& random) {
  std::vector<std::vector<std::byte>> sources;
  for (size_t s = 0; s < source_count; ++s) sources.push_back(pack(dtype, random_elements(dtype, count, random)));
  return sources;
}

/// Index of the first difference, or -1.
long first_difference(const std::byte* a, const std::byte* b, size_t bytes) {
  if (bytes == 0 || std::memcmp(a, b, bytes) == 0) return -1;
  size_t i = 0;
  while (a[i] == b[i]) ++i;
  return static_cast<long>(i);
}

std::string label(DType dtype, Op op) { return std::string(tutti::name(dtype)) + " " + std::string(tutti::name(op)); }

std::string hex(Bits bits) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[static_cast<size_t>(bits & 15)]);
    bits >>= 4;
  } while (bits != 0);
  return digits;
}

/// Three buffers between guard pages: two sources and a result with canaries around it.
class Arena {
 public:
  explicit Arena(const std::vector<std::vector<std::byte>>& sources, const std::vector<std::byte>& expected)
      : sources_(sources), expected_(expected) {}

  /// Folds the first `bytes`, each buffer at an offset of its own from a guard page: the upper one, or the lower.
  /// Results of at least streamed_bytes go past the caches.
  void check(tutti::FoldFunction fold, size_t count, size_t bytes, size_t offset, bool back, uint64_t streamed_bytes) {
    const size_t b_offset = offset * 7 % kOffsets;
    const size_t to_offset = offset * 13 % kOffsets;
    std::byte* a = back ? first_.at_back(bytes, offset) : first_.at_front(offset);
    std::byte* b = back ? second_.at_back(bytes, b_offset) : second_.at_front(b_offset);
    std::byte* to = back ? result_.at_back(bytes, to_offset) : result_.at_front(to_offset);
    std::memcpy(a, sources_[0].data(), bytes);
    std::memcpy(b, sources_[1].data(), bytes);
    std::byte* const below = to - std::min<size_t>(64, static_cast<size_t>(to - result_.begin()));
    std::byte* const above = to + bytes + std::min<size_t>(64, static_cast<size_t>(result_.end() - to) - bytes);
    std::memset(below, static_cast<int>(kCanary), static_cast<size_t>(above - below));
    const void* from[] = {a, b};
    void* destination = to;
    fold({&destination, from, 1, 2, count, 1, nullptr, streamed_bytes});
    const long wrong = first_difference(to, expected_.data(), bytes);
    const bool clean = std::all_of(below, to, is_canary) && std::all_of(to + bytes, above, is_canary);
    if (wrong >= 0 || !clean) {
      CAPTURE(count, offset, back, wrong, clean);
      FAIL("differs from the reference, or wrote outside");
    }
  }

 private:
  static bool is_canary(std::byte byte) { return byte == kCanary; }

  const std::vector<std::vector<std::byte>>& sources_;
  const std::vector<std::byte>& expected_;
  GuardedBuffer first_{8192};
  GuardedBuffer second_{8192};
  GuardedBuffer result_{8192};
};

}  // namespace

TEST_CASE("two sources: every length, every alignment, nothing outside the buffers") {
  std::mt19937_64 random(7);
  for_all_folds([&](DType dtype, Op op) {
    INFO(label(dtype, op));
    const auto sources = random_sources(dtype, 2, kLongest, random);
    const auto expected = folded(CpuLevel::scalar, dtype, op, sources, 1);
    const auto fold = tutti::fold_function(dtype, op, level_under_test());
    Arena arena(sources, expected);
    for (size_t count = 0; count <= kLongest; ++count) {
      for (size_t offset = 0; offset < kOffsets; ++offset)
        arena.check(fold, count, count * tutti::size_bytes(dtype), offset, (offset + count) % 2 == 0, tutti::kStreamedBytes);
    }
  });
}

TEST_CASE("streamed results: every length, every alignment, nothing outside the buffers") {
  std::mt19937_64 random(17);
  for_all_folds([&](DType dtype, Op op) {
    INFO(label(dtype, op));
    const auto sources = random_sources(dtype, 2, kLongest, random);
    const auto expected = folded(CpuLevel::scalar, dtype, op, sources, 1);
    const auto fold = tutti::fold_function(dtype, op, level_under_test());
    Arena arena(sources, expected);
    for (const size_t count : std::initializer_list<size_t>{0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 130}) {
      for (size_t offset = 0; offset < kOffsets; ++offset)
        arena.check(fold, count, count * tutti::size_bytes(dtype), offset, (offset + count) % 2 == 0, 0);
    }
  });
}

TEST_CASE("two sources: every pair of corner values, in both orders") {
  for_all_folds([&](DType dtype, Op op) {
    INFO(label(dtype, op));
    Elements a;
    Elements b;
    for (const Bits x : corners(dtype)) {
      for (const Bits y : corners(dtype)) {
        a.push_back(x);
        b.push_back(y);
      }
    }
    const std::vector<std::vector<std::byte>> sources = {pack(dtype, a), pack(dtype, b)};
    for (const uint64_t divisor : divisors(op, {1, 3})) {
      const auto expected = folded(CpuLevel::scalar, dtype, op, sources, divisor);
      const auto result = folded(level_under_test(), dtype, op, sources, divisor);
      const long wrong = first_difference(result.data(), expected.data(), result.size());
      if (wrong >= 0) {
        const size_t i = static_cast<size_t>(wrong) / tutti::size_bytes(dtype);
        INFO(hex(a[i]) << " with " << hex(b[i]) << ", divisor " << divisor);
        FAIL("differs from the reference");
      }
    }
  });
}

TEST_CASE("16-bit floats: every value with corner values") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
      Elements all(65536);
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      for (size_t i = 0; i < corners(dtype).size(); i += 3) {
        const Bits corner = corners(dtype)[i];
        INFO(label(dtype, op) << " with " << hex(corner));
        const std::vector<std::vector<std::byte>> sources = {pack(dtype, all), pack(dtype, Elements(all.size(), corner))};
        const auto expected = folded(CpuLevel::scalar, dtype, op, sources, 1);
        const auto result = folded(level_under_test(), dtype, op, sources, 1);
        REQUIRE(first_difference(result.data(), expected.data(), result.size()) == -1);
      }
    }
  }
}

namespace {

/// Which destinations are sources: destination `destination` is source `source`; -1: none.
struct Alias {
  int destination;
  int source;
};

/// Folds of `sources` into several destinations, in buffers that are made once.
class ManyFolds {
 public:
  ManyFolds(DType dtype, Op op, const std::vector<std::vector<std::byte>>& sources)
      : element_bytes_(tutti::size_bytes(dtype)),
        fold_(tutti::fold_function(dtype, op, level_under_test())),
        sources_(sources),
        inputs_(sources),
        outputs_(4, std::vector<std::byte>(sources[0].size() + 1)) {
    for (auto& input : inputs_) input.push_back(kCanary);
  }

  void check(uint32_t destination_count, uint64_t divisor, Alias alias, const std::vector<std::byte>& expected, size_t count,
             uint64_t streamed_bytes = tutti::kStreamedBytes) {
    const size_t bytes = count * element_bytes_;
    std::vector<const void*> from;
    std::vector<void*> to;
    for (auto& input : inputs_) from.push_back(input.data());
    for (uint32_t d = 0; d < destination_count; ++d) {
      outputs_[d][bytes] = kCanary;
      to.push_back(outputs_[d].data());
    }
    const auto aliased = static_cast<size_t>(std::max(alias.source, 0));
    if (alias.source >= 0) to[static_cast<size_t>(alias.destination)] = inputs_[aliased].data();
    const std::byte beyond = inputs_[aliased][bytes];
    fold_(
        {to.data(), from.data(), destination_count, static_cast<uint32_t>(from.size()), count, divisor, nullptr, streamed_bytes});
    bool right = inputs_[aliased][bytes] == beyond;
    for (uint32_t d = 0; d < destination_count; ++d) {
      right = right && first_difference(static_cast<const std::byte*>(to[d]), expected.data(), bytes) < 0;
      right = right && (to[d] != outputs_[d].data() || outputs_[d][bytes] == kCanary);
    }
    if (alias.source >= 0 && bytes > 0) std::memcpy(inputs_[aliased].data(), sources_[aliased].data(), bytes);
    for (size_t s = 0; s < sources_.size(); ++s)
      right = right && first_difference(inputs_[s].data(), sources_[s].data(), sources_[s].size()) < 0;
    if (!right) {
      CAPTURE(sources_.size(), destination_count, divisor, count, alias.destination, alias.source);
      FAIL("differs from the reference, wrote outside, or changed a source");
    }
  }

 private:
  size_t element_bytes_;
  tutti::FoldFunction fold_;
  const std::vector<std::vector<std::byte>>& sources_;
  std::vector<std::vector<std::byte>> inputs_;
  std::vector<std::vector<std::byte>> outputs_;
};

}  // namespace

TEST_CASE("1 to 9 sources, 1 to 4 destinations, divisors, in place on any source") {
  std::mt19937_64 random(11);
  for_all_folds([&](DType dtype, Op op) {
    INFO(label(dtype, op));
    for (uint32_t source_count = 1; source_count <= 9; ++source_count) {
      const auto sources = random_sources(dtype, source_count, 139, random);  // of any type more than four vectors
      ManyFolds folds(dtype, op, sources);
      const int last = static_cast<int>(source_count) - 1;
      for (const uint64_t divisor : divisors(op, {1, 2, 7, 300})) {
        const auto expected = folded(CpuLevel::scalar, dtype, op, sources, divisor);
        for (uint32_t destination_count = 1; destination_count <= 4; ++destination_count) {
          const int last_destination = static_cast<int>(destination_count) - 1;
          for (const Alias alias : {Alias{0, -1}, Alias{0, 0}, Alias{last_destination, last}, Alias{0, last / 2}}) {
            for (const size_t count : {size_t{0}, size_t{1}, size_t{17}, size_t{139}})
              folds.check(destination_count, divisor, alias, expected, count);
            if (destination_count <= 2) folds.check(destination_count, divisor, alias, expected, 139, 0);
          }
        }
      }
    }
  });
}

TEST_CASE("conversions to f32 and back, and scaling: as the reference, in place too") {
  std::mt19937_64 random(13);
  for (size_t type = 0; type < tutti::kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    if (!tutti::can_scale(dtype)) continue;
    INFO(tutti::name(dtype));
    const size_t width = tutti::size_bytes(dtype);
    Elements elements = random_elements(dtype, kLongest, random);
    elements.insert(elements.end(), corners(dtype).begin(), corners(dtype).end());
    const auto source = pack(dtype, elements);
    const auto floats = pack(DType::f32, random_elements(DType::f32, elements.size(), random));
    const bool small = width <= 2;
    for (size_t count = 0; count <= elements.size(); count += count < kLongest ? 1 : 97) {
      for (const double factor : {0.5, 1.0 / 3, -3e38, 0.0}) {
        std::vector<std::byte> expected(count * width);
        std::vector<std::byte> result(source.begin(), source.begin() + static_cast<long>(count * width));
        result.push_back(kCanary);
        tutti::scale(dtype, expected.data(), source.data(), count, factor, CpuLevel::scalar);
        tutti::scale(dtype, result.data(), result.data(), count, factor, level_under_test());
        REQUIRE(first_difference(result.data(), expected.data(), count * width) == -1);
        REQUIRE(result.back() == kCanary);
      }
      if (!small) continue;
      std::vector<float> wide(count + 1, -1.5f);
      std::vector<float> wide_expected(count + 1, -1.5f);
      tutti::widen_to_f32(dtype, wide_expected.data(), source.data(), count, CpuLevel::scalar);
      tutti::widen_to_f32(dtype, wide.data(), source.data(), count, level_under_test());
      REQUIRE(std::memcmp(wide.data(), wide_expected.data(), wide.size() * sizeof(float)) == 0);
      std::memcpy(wide.data(), floats.data(), count * sizeof(float));
      std::vector<std::byte> narrow_expected(count * width);
      tutti::narrow_from_f32(dtype, narrow_expected.data(), wide.data(), count, CpuLevel::scalar);
      tutti::narrow_from_f32(dtype, wide.data(), wide.data(), count, level_under_test());
      REQUIRE(first_difference(reinterpret_cast<const std::byte*>(wide.data()), narrow_expected.data(), count * width) == -1);
      REQUIRE(wide.back() == -1.5f);
    }
  }
}

namespace {

/// Narrows `values` at the level and by the reference.
void compare_narrowing(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> expected(values.size() * tutti::size_bytes(dtype));
  std::vector<std::byte> result(expected.size());
  tutti::narrow_from_f32(dtype, expected.data(), values.data(), values.size(), CpuLevel::scalar);
  tutti::narrow_from_f32(dtype, result.data(), values.data(), values.size(), level_under_test());
  const long wrong = first_difference(result.data(), expected.data(), result.size());
  if (wrong < 0) return;
  INFO(tutti::name(dtype));
  INFO(hex(std::bit_cast<uint32_t>(values[static_cast<size_t>(wrong) / tutti::size_bytes(dtype)])));
  FAIL("differs from the reference");
}

}  // namespace

TEST_CASE("narrowing: every binade, ties and their neighbours") {
  std::vector<float> values;
  for (uint32_t high = 0; high < 65536; ++high) {
    // Around all values, and all ties between two of them, that f16, bf16 and the formats of 8 bits have.
    for (const uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xefffu, 0xf000u, 0xffffu})
      values.push_back(std::bit_cast<float>(high << 16 | low));
  }
  for (const DType dtype : {DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2}) compare_narrowing(dtype, values);
}

// Where a format has few bits, what decides is the upper bits of an f32 and whether anything is below: 20 bits reach beyond the
// last bit of the smallest denormal number of the 8-bit formats. TUTTI_TEST_LONG=1 takes every f32 there is.
TEST_CASE("narrowing to 8 bits: every f32 whose rounding can differ") {
  const char* const long_tests = std::getenv("TUTTI_TEST_LONG");
  const bool every = long_tests != nullptr && std::string_view(long_tests) == "1";
  const uint32_t kept = every ? 32 : 20;
  std::vector<float> values;
  for (uint32_t block = 0; block < (1u << 12); ++block) {
    values.clear();
    for (uint32_t i = 0; i < 1u << (kept - 12); ++i) {
      const uint32_t high = (block << (kept - 12) | i) << (32 - kept);
      values.push_back(std::bit_cast<float>(high));
      if (every) continue;
      for (const uint32_t low : {1u, 0x7ffu, 0x800u, 0xfffu}) values.push_back(std::bit_cast<float>(high | low));
    }
    for (const DType dtype : {DType::f8e4m3, DType::f8e5m2}) compare_narrowing(dtype, values);
  }
}

TEST_CASE("widening of 8 bits: every code") {
  for (const DType dtype : {DType::f8e4m3, DType::f8e5m2}) {
    std::vector<uint8_t> codes(256);
    for (size_t code = 0; code < codes.size(); ++code) codes[code] = static_cast<uint8_t>(code);
    std::vector<float> expected(codes.size());
    std::vector<float> result(codes.size());
    tutti::widen_to_f32(dtype, expected.data(), codes.data(), codes.size(), CpuLevel::scalar);
    tutti::widen_to_f32(dtype, result.data(), codes.data(), codes.size(), level_under_test());
    CHECK(std::memcmp(result.data(), expected.data(), codes.size() * sizeof(float)) == 0);
  }
}

TEST_CASE("8-bit floats: every pair of codes, every operation") {
  Elements a;
  Elements b;
  for (uint32_t code = 0; code < 65536; ++code) {
    a.push_back(code & 0xff);
    b.push_back(code >> 8);
  }
  for (const DType dtype : {DType::f8e4m3, DType::f8e5m2}) {
    const std::vector<std::vector<std::byte>> sources = {pack(dtype, a), pack(dtype, b)};
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max, Op::avg}) {
      for (const uint64_t divisor : divisors(op, {1, 2, 3})) {
        INFO(label(dtype, op) << " divisor " << divisor);
        const auto expected = folded(CpuLevel::scalar, dtype, op, sources, divisor);
        const auto result = folded(level_under_test(), dtype, op, sources, divisor);
        REQUIRE(first_difference(result.data(), expected.data(), result.size()) == -1);
      }
    }
  }
}

TEST_CASE("copy_bytes: any length, several destinations, a destination that is the source") {
  std::vector<std::byte> source(100'003);
  std::mt19937_64 random(3);
  for (auto& byte : source) byte = static_cast<std::byte>(random());
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{16383}, size_t{16384}, size_t{16385}, source.size()}) {
    std::vector<std::byte> first(bytes + 1, kCanary);
    std::vector<std::byte> second(bytes + 1, kCanary);
    void* to[] = {first.data(), source.data(), second.data()};
    tutti::copy_bytes(to, 3, source.data(), bytes);
    CHECK(first_difference(first.data(), source.data(), bytes) == -1);
    CHECK(first_difference(second.data(), source.data(), bytes) == -1);
    CHECK(first[bytes] == kCanary);
    CHECK(second[bytes] == kCanary);
  }
}

TEST_CASE("copy_bytes past the caches: every length and alignment up to three lines, nothing outside") {
  std::vector<std::byte> source(400);
  std::mt19937_64 random(5);
  for (auto& byte : source) byte = static_cast<std::byte>(random());
  GuardedBuffer buffer(4096);
  for (size_t bytes = 0; bytes <= 200; ++bytes) {
    for (size_t offset = 0; offset < kOffsets; ++offset) {
      const bool back = (bytes + offset) % 2 == 0;
      std::byte* const at = back ? buffer.at_back(bytes, offset) : buffer.at_front(offset);
      std::byte* const below = at - std::min<size_t>(64, static_cast<size_t>(at - buffer.begin()));
      std::byte* const above = at + bytes + std::min<size_t>(64, static_cast<size_t>(buffer.end() - at) - bytes);
      std::memset(below, static_cast<int>(kCanary), static_cast<size_t>(above - below));
      void* to = at;
      tutti::copy_bytes(&to, 1, source.data() + offset, bytes, 0);
      const auto is_canary = [](std::byte byte) { return byte == kCanary; };
      const bool clean = std::all_of(below, at, is_canary) && std::all_of(at + bytes, above, is_canary);
      if (!clean || first_difference(at, source.data() + offset, bytes) >= 0) {
        CAPTURE(bytes, offset, back, clean);
        FAIL("wrong bytes");
      }
    }
  }
  void* same = source.data();
  tutti::copy_bytes(&same, 1, source.data(), source.size(), 0);
}
