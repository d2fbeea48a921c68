// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "failing_memory.hpp"
#include "tutti/tutti.h"

namespace tutti::test {

constexpr int kMostRanks = 3;
constexpr size_t kElements = 32;
constexpr size_t kLongBytes = 200000;

/// One rank's data of a case.
struct Rank {
  tutti_comm_t comm = nullptr;
  int number = 0;
  int size = 0;
  int64_t in[kElements];
  int64_t out[kElements];
  double reals_in[kElements];
  double reals_out[kElements];
  uint64_t counts[kMostRanks];  // of blocks, a longer one for each rank
  uint64_t places[kMostRanks];  // the last rank's block comes first
  uint64_t pair_counts[kMostRanks];
  uint64_t pair_places[kMostRanks];
  uint64_t pair_places_bytes[kMostRanks];
  tutti_dtype_t types[kMostRanks];
  tutti_dtype_t wide = 0;  // of 16 bytes
  tutti_op_t add = 0;      // of the caller's
  tutti_op_t halves = 0;   // the scaled sum
  std::vector<char> long_in = std::vector<char>(kLongBytes);
  std::vector<char> long_out = std::vector<char>(kLongBytes);

  void fill() noexcept {
    for (size_t i = 0; i < kElements; ++i) {
      in[i] = value(number, i);
      out[i] = value(number, i);
      reals_in[i] = static_cast<double>(in[i]);
      reals_out[i] = -1;
    }
    for (int r = 0; r < size; ++r) {
      const auto block = static_cast<uint64_t>(r);
      counts[r] = block + 1;
      places[r] = 4 * static_cast<uint64_t>(size - 1 - r);
      pair_counts[r] = static_cast<uint64_t>(number) + block + 1;
      pair_places[r] = 8 * block;
      pair_places_bytes[r] = pair_places[r] * sizeof(int64_t);
      types[r] = TUTTI_INT64;
    }
    std::memset(long_out.data(), number + 1, kLongBytes);
    std::memset(long_in.data(), 0, kLongBytes);
  }
  int next() const noexcept { return (number + 1) % size; }
  int previous() const noexcept { return (number + size - 1) % size; }
  int last() const noexcept { return size - 1; }

  // What buffers hold in the end.
  static int64_t value(int rank, size_t i) noexcept { return 100 * rank + static_cast<int64_t>(i); }
  int64_t sum(size_t i, int ranks) const noexcept {
    int64_t result = 0;
    for (int r = 0; r < ranks; ++r) result += value(r, i);
    return result;
  }
  bool sums(size_t count, size_t first = 0) const noexcept { return sums_of(size, count, first); }
  bool sums_of(int ranks, size_t count, size_t first = 0) const noexcept {
    for (size_t i = 0; i < count; ++i)
      if (out[i] != sum(first + i, ranks)) return false;
    return true;
  }
  /// Elements [first, first + count) of rank's, at `place`.
  bool holds(uint64_t place, int rank, size_t first, size_t count) const noexcept {
    for (size_t i = 0; i < count; ++i)
      if (out[place + i] != value(rank, first + i)) return false;
    return true;
  }
};

inline void add_words(const void* left, void* right_and_result, uint64_t count, tutti_dtype_t, void* words) {
  const auto* from = static_cast<const int64_t*>(left);
  auto* to = static_cast<int64_t*>(right_and_result);
  for (uint64_t i = 0; i < count * *static_cast<const uint64_t*>(words); ++i) to[i] += from[i];
}

/// Makes a call that failed for want of memory once more: only one allocation fails.
template <class Make>
tutti_status_t again(Make&& call) {
  const bool before = FailingAllocation::has_failed();
  const tutti_status_t status = call();
  return status == TUTTI_ERR_MEMORY && !before && FailingAllocation::has_failed() ? call() : status;
}

enum class Form : uint8_t { blocking, started, persistent };

/// All of a call, or of several that belong together, on each rank; right: the data afterwards.
struct Case {
  const char* name;
  tutti_status_t (*act)(Rank& rank, Form form);
  bool (*right)(const Rank& rank);
};

/// Each collective; messages; and groups, operations and communicators.
std::span<const Case> collective_cases();
std::span<const Case> message_cases();
std::span<const Case> other_cases();

}  // namespace tutti::test
