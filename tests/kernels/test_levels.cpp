// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The level under test against the scalar reference, in every bit.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <string>

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

std::vector<std::byte> reference(DType dtype, Op op, const std::vector<std::vector<std::byte>>& sources, uint64_t divisor) {
  std::vector<std::byte> result(sources[0].size());
  std::vector<const void*> from;
  for (const auto& source : sources) from.push_back(source.data());
  void* to = result.data();
  tutti::fold_function(dtype, op, CpuLevel::scalar)(
      {&to, from.data(), 1, static_cast<uint32_t>(from.size()), result.size() / tutti::size_bytes(dtype), divisor});
  return result;
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

}  // namespace

TEST_CASE("two sources: every length, every alignment, nothing outside the buffers") {
  std::mt19937_64 random(7);
  GuardedBuffer first(8192);
  GuardedBuffer second(8192);
  GuardedBuffer result(8192);
  for (const DType dtype : kAllDTypes) {
    for (const Op op : kAllOps) {
      INFO(label(dtype, op));
      const auto sources = random_sources(dtype, 2, kLongest, random);
      const auto expected = reference(dtype, op, sources, 1);
      const auto fold = tutti::fold_function(dtype, op, level_under_test());
      for (size_t length = 0; length <= kLongest; ++length) {
        const size_t bytes = length * tutti::size_bytes(dtype);
        for (size_t offset = 0; offset < kOffsets; ++offset) {
          const bool back = (offset + length) % 2 == 0;  // against the upper guard page, or the lower
          const size_t b_offset = offset * 7 % kOffsets;
          const size_t to_offset = offset * 13 % kOffsets;
          std::byte* a = back ? first.at_back(bytes, offset) : first.at_front(offset);
          std::byte* b = back ? second.at_back(bytes, b_offset) : second.at_front(b_offset);
          std::byte* to = back ? result.at_back(bytes, to_offset) : result.at_front(to_offset);
          std::memcpy(a, sources[0].data(), bytes);
          std::memcpy(b, sources[1].data(), bytes);
          std::byte* const below = to - std::min<size_t>(64, static_cast<size_t>(to - result.begin()));
          std::byte* const above = to + bytes + std::min<size_t>(64, static_cast<size_t>(result.end() - to) - bytes);
          std::memset(below, static_cast<int>(kCanary), static_cast<size_t>(above - below));
          const void* from[] = {a, b};
          void* destination = to;
          fold({&destination, from, 1, 2, length});
          const long wrong = first_difference(to, expected.data(), bytes);
          bool clean = true;
          for (const std::byte* p = below; p < to; ++p) clean = clean && *p == kCanary;
          for (const std::byte* p = to + bytes; p < above; ++p) clean = clean && *p == kCanary;
          if (wrong >= 0 || !clean) {
            CAPTURE(length, offset, wrong, clean);
            FAIL("differs from the reference, or wrote outside");
          }
        }
      }
    }
  }
}

TEST_CASE("two sources: every pair of corner values, in both orders") {
  for (const DType dtype : kAllDTypes) {
    for (const Op op : kAllOps) {
      INFO(label(dtype, op));
      Elements a;
      Elements b;
      for (const uint64_t x : corners(dtype)) {
        for (const uint64_t y : corners(dtype)) {
          a.push_back(x);
          b.push_back(y);
        }
      }
      const std::vector<std::vector<std::byte>> sources = {pack(dtype, a), pack(dtype, b)};
      for (const uint64_t divisor : std::initializer_list<uint64_t>{1, 3}) {
        const auto expected = reference(dtype, op, sources, divisor);
        std::vector<std::byte> result(expected.size());
        const void* from[] = {sources[0].data(), sources[1].data()};
        void* to = result.data();
        tutti::fold_function(dtype, op, level_under_test())({&to, from, 1, 2, a.size(), divisor});
        const long wrong = first_difference(result.data(), expected.data(), result.size());
        if (wrong >= 0) {
          const size_t i = static_cast<size_t>(wrong) / tutti::size_bytes(dtype);
          CAPTURE(a[i], b[i], divisor);
          FAIL("differs from the reference");
        }
      }
    }
  }
}

TEST_CASE("16-bit floats: every value with every corner value") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const Op op : kAllOps) {
      Elements all(65536);
      for (size_t i = 0; i < all.size(); ++i) all[i] = i;
      for (const uint64_t corner : corners(dtype)) {
        INFO(label(dtype, op) << " with " << corner);
        const std::vector<std::vector<std::byte>> sources = {pack(dtype, all), pack(dtype, Elements(all.size(), corner))};
        const auto expected = reference(dtype, op, sources, 1);
        std::vector<std::byte> result(expected.size());
        const void* from[] = {sources[0].data(), sources[1].data()};
        void* to = result.data();
        tutti::fold_function(dtype, op, level_under_test())({&to, from, 1, 2, all.size()});
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

void check_many(DType dtype, Op op, const std::vector<std::vector<std::byte>>& sources, uint32_t destination_count,
                uint64_t divisor, Alias alias, const std::vector<std::byte>& expected, size_t count) {
  const size_t bytes = count * tutti::size_bytes(dtype);
  std::vector<std::vector<std::byte>> inputs;
  std::vector<const void*> from;
  for (const auto& source : sources) {
    inputs.emplace_back(source.begin(), source.begin() + static_cast<long>(bytes));
    inputs.back().push_back(kCanary);  // keeps data() non-null for zero elements
    from.push_back(inputs.back().data());
  }
  std::vector<std::vector<std::byte>> outputs(destination_count, std::vector<std::byte>(bytes + 1, kCanary));
  std::vector<void*> to;
  for (auto& output : outputs) to.push_back(output.data());
  if (alias.source >= 0) to[static_cast<size_t>(alias.destination)] = inputs[static_cast<size_t>(alias.source)].data();
  tutti::fold_function(dtype, op, level_under_test())(
      {to.data(), from.data(), destination_count, static_cast<uint32_t>(from.size()), count, divisor});
  for (uint32_t d = 0; d < destination_count; ++d) {
    const auto* got = static_cast<const std::byte*>(to[d]);
    const long wrong = first_difference(got, expected.data(), bytes);
    if (wrong >= 0 || got[bytes] != kCanary) {
      CAPTURE(sources.size(), destination_count, d, divisor, count, alias.destination, alias.source, wrong);
      FAIL("differs from the reference, or wrote outside");
    }
  }
  for (size_t s = 0; s < inputs.size(); ++s) {
    if (static_cast<int>(s) == alias.source) continue;
    if (first_difference(inputs[s].data(), sources[s].data(), bytes) >= 0) FAIL("a source was changed");
  }
}

}  // namespace

TEST_CASE("1 to 9 sources, 1 to 3 destinations, divisors, in place on any source") {
  std::mt19937_64 random(11);
  for (const DType dtype : kAllDTypes) {
    for (const Op op : kAllOps) {
      INFO(label(dtype, op));
      for (uint32_t source_count = 1; source_count <= 9; ++source_count) {
        const auto sources = random_sources(dtype, source_count, 75, random);
        const int last = static_cast<int>(source_count) - 1;
        for (const uint64_t divisor : std::initializer_list<uint64_t>{1, 2, 7, 300}) {
          const auto expected = reference(dtype, op, sources, divisor);
          for (uint32_t destination_count = 1; destination_count <= 3; ++destination_count) {
            const int last_destination = static_cast<int>(destination_count) - 1;
            for (const Alias alias : {Alias{0, -1}, Alias{0, 0}, Alias{last_destination, last}, Alias{0, last / 2}}) {
              for (const size_t count : {size_t{0}, size_t{1}, size_t{17}, size_t{75}}) {
                check_many(dtype, op, sources, destination_count, divisor, alias, expected, count);
              }
            }
          }
        }
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
