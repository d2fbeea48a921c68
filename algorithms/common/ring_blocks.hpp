// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "schedule/builder.hpp"

namespace tutti {

/// The blocks of `count` ranks from `first` on, round the ring: one slice, or two where they go past the last rank.
inline std::vector<Slice> ring_blocks(uint32_t first, uint32_t count, uint32_t size) {
  const uint32_t before_end = std::min(count, size - first);
  std::vector<Slice> slices = {blocks_of(first, first + before_end, size)};
  if (count > before_end) slices.push_back(blocks_of(0, count - before_end, size));
  return slices;
}

/// Room for such blocks on their way: in scratch, and those past the last rank in scratch_b.
class RingStore {
 public:
  RingStore(ScheduleBuilder& plan, uint32_t first, uint32_t count, uint32_t size) : first_(first) {
    const std::vector<Slice> slices = ring_blocks(first, count, size);
    plan.hold(BufferId::scratch, slices[0]);
    if (slices.size() > 1) plan.hold(BufferId::scratch_b, slices[1]);
  }
  /// Of a slice that does not go past the last rank.
  Operand place(Slice blocks) const { return blocks.first >= first_ ? scratch(blocks) : scratch_b(blocks); }

 private:
  uint32_t first_;
};

/// A binomial tree over ranks that are numbered from the root: a rank's parent is its number without the lowest bit set, and the
/// numbers below it are those up to its own plus that bit.
struct BlockTree {
  explicit BlockTree(const PlanRequest& request)
      : size(request.shape.size), root(request.root), number((request.rank + size - root) % size) {
    span = number == 0 ? std::bit_ceil(size) : number & (~number + 1);
  }
  uint32_t rank_of(uint32_t n) const { return static_cast<uint32_t>((uint64_t{n} + root) % size); }
  uint32_t parent() const { return rank_of(number - span); }
  bool is_leaf() const { return number != 0 && (span == 1 || number + 1 == size); }
  /// Numbers in the subtree that starts at n and would have `of` numbers if there were ranks enough.
  uint32_t count(uint32_t n, uint32_t of) const { return std::min(of, size - n); }

  uint32_t size;
  uint32_t root;
  uint32_t number;
  uint32_t span;  ///< numbers of the own subtree, if there were ranks enough
};

}  // namespace tutti
