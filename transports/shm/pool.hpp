// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory_resource>
#include <set>
#include <utility>
#include <vector>

#include "arena.hpp"

namespace tutti::shm {

/// A rank's share of the arena: best fit with coalescing. All its bookkeeping is private memory, so that a peer can damage
/// contents but never the allocator. Grows by extents, which it never gives back.
class Pool {
 public:
  Pool(Arena& arena, std::pmr::memory_resource* memory) : arena_{arena}, by_offset_{memory}, by_size_{memory} {}

  /// `bytes` rounded up to kLine, aligned to kLine. Contents are whatever was there.
  Outcome allocate(uint64_t bytes, uint64_t& offset);
  /// Allocates nothing: allocate() has seen to that.
  void release(uint64_t offset, uint64_t bytes) noexcept;

  /// What the pool holds of the arena, in use or not, and what is in use.
  uint64_t held_bytes() const { return held_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  using ByOffset = std::pmr::map<uint64_t, uint64_t>;
  using BySize = std::pmr::set<std::pair<uint64_t, uint64_t>>;
  void provide_nodes();
  void insert(uint64_t offset, uint64_t bytes) noexcept;

  Arena& arena_;
  ByOffset by_offset_;
  BySize by_size_;
  std::vector<ByOffset::node_type> offset_nodes_;  // for what is going to be released
  std::vector<BySize::node_type> size_nodes_;
  size_t used_count_ = 0;  // pieces in use
  uint64_t held_bytes_ = 0;
  uint64_t used_bytes_ = 0;
};

}  // namespace tutti::shm
