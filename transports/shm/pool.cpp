// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "pool.hpp"

#include <algorithm>
#include <iterator>

namespace tutti::shm {
namespace {

constexpr uint64_t kSmallestStep = 64 << 10;
constexpr uint64_t kLargestStep = 1 << 20;

}  // namespace

Outcome Pool::allocate(uint64_t bytes, uint64_t& offset) {
  const uint64_t need = round_up(std::max<uint64_t>(bytes, 1), kLine);
  auto fit = by_size_.lower_bound({need, 0});
  if (fit == by_size_.end()) {
    // Steps grow with what the rank already holds: hundreds of ranks stay small, a busy one asks seldom.
    const uint64_t step = std::clamp(held_bytes_, kSmallestStep, kLargestStep);
    uint64_t extent = 0;
    uint64_t taken = 0;
    if (Outcome got = arena_.take_extent(need, step, extent, taken); !got.ok()) return got;
    held_bytes_ += taken;
    insert(extent, taken);
    fit = by_size_.lower_bound({need, 0});
  }
  const auto [size, first] = *fit;
  by_size_.erase(fit);
  by_offset_.erase(first);
  if (size > need) insert(first + need, size - need);
  used_bytes_ += need;
  offset = first;
  return Outcome::success();
}

void Pool::release(uint64_t offset, uint64_t bytes) {
  const uint64_t size = round_up(std::max<uint64_t>(bytes, 1), kLine);
  used_bytes_ -= size;
  insert(offset, size);
}

void Pool::insert(uint64_t offset, uint64_t bytes) {
  auto after = by_offset_.lower_bound(offset);
  if (after != by_offset_.end() && offset + bytes == after->first) {
    bytes += after->second;
    by_size_.erase({after->second, after->first});
    after = by_offset_.erase(after);
  }
  if (after != by_offset_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == offset) {
      offset = before->first;
      bytes += before->second;
      by_size_.erase({before->second, before->first});
      by_offset_.erase(before);
    }
  }
  by_offset_.emplace(offset, bytes);
  by_size_.insert({bytes, offset});
}

}  // namespace tutti::shm
