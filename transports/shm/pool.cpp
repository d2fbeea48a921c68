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
  provide_nodes();
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
  size_nodes_.push_back(by_size_.extract(fit));
  offset_nodes_.push_back(by_offset_.extract(first));
  if (size > need) insert(first + need, size - need);
  ++used_count_;
  used_bytes_ += need;
  offset = first;
  return Outcome::success();
}

/// One of each kind for every piece in use, one for the next, and one for an extent: after that nothing can fail.
void Pool::provide_nodes() {
  const auto provide = [this](auto& nodes, auto& one, auto value) {
    if (nodes.capacity() <= nodes.size() + 2) nodes.reserve(2 * nodes.size() + 4);
    while (nodes.size() < used_count_ + 2) {
      one.insert(value);
      nodes.push_back(one.extract(one.begin()));
    }
  };
  ByOffset offsets{by_offset_.get_allocator()};
  BySize sizes{by_size_.get_allocator()};
  provide(offset_nodes_, offsets, std::pair<const uint64_t, uint64_t>());
  provide(size_nodes_, sizes, std::pair<uint64_t, uint64_t>());
}

void Pool::release(uint64_t offset, uint64_t bytes) noexcept {
  const uint64_t size = round_up(std::max<uint64_t>(bytes, 1), kLine);
  used_bytes_ -= size;
  --used_count_;
  insert(offset, size);
}

void Pool::insert(uint64_t offset, uint64_t bytes) noexcept {
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
  offset_nodes_.back().key() = offset;
  offset_nodes_.back().mapped() = bytes;
  by_offset_.insert(std::move(offset_nodes_.back()));
  offset_nodes_.pop_back();
  size_nodes_.back().value() = {bytes, offset};
  by_size_.insert(std::move(size_nodes_.back()));
  size_nodes_.pop_back();
}

}  // namespace tutti::shm
