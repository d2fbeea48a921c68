// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory_resource>
#include <set>
#include <utility>

#include "arena.hpp"

namespace tutti::shm {

/// A rank's share of the arena: best fit with coalescing. All its bookkeeping is private memory, so that a peer can damage
/// contents but never the allocator. Grows by extents, which it never gives back.
class Pool {
 public:
  Pool(Arena& arena, std::pmr::memory_resource* memory) : arena_{arena}, by_offset_{memory}, by_size_{memory} {}

  /// `bytes` rounded up to kLine, aligned to kLine. Contents are whatever was there.
  Outcome allocate(uint64_t bytes, uint64_t& offset);
  void release(uint64_t offset, uint64_t bytes);

  /// What the pool holds of the arena, in use or not, and what is in use.
  uint64_t held_bytes() const { return held_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  void insert(uint64_t offset, uint64_t bytes);

  Arena& arena_;
  std::pmr::map<uint64_t, uint64_t> by_offset_;
  std::pmr::set<std::pair<uint64_t, uint64_t>> by_size_;
  uint64_t held_bytes_ = 0;
  uint64_t used_bytes_ = 0;
};

}  // namespace tutti::shm
