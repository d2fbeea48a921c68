// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule/collective.hpp"

#include <algorithm>

namespace tutti {
namespace {

constexpr uint64_t even_bound(uint64_t count, uint64_t parts, uint64_t index) noexcept {
  return index * (count / parts) + std::min(index, count % parts);
}

uint64_t block_count(Cut cut, const Lengths& lengths, uint32_t block) noexcept {
  const std::span<const uint64_t> counts = cut == Cut::blocks ? lengths.counts : lengths.received_counts;
  return counts.empty() ? lengths.count : counts[block];
}

}  // namespace

bool has_root(Collective collective) noexcept {
  return collective == Collective::reduce || collective == Collective::broadcast || collective == Collective::gather ||
         collective == Collective::scatter;
}

bool has_blocks(Collective collective) noexcept {
  return collective == Collective::allgather || collective == Collective::gather || collective == Collective::scatter ||
         collective == Collective::reduce_scatter || collective == Collective::alltoall;
}

bool reduces(Collective collective) noexcept {
  return collective == Collective::allreduce || collective == Collective::reduce || collective == Collective::reduce_scatter ||
         collective == Collective::scan || collective == Collective::exscan;
}

bool hides_counts(Collective collective) noexcept {
  return collective == Collective::gather || collective == Collective::scatter || collective == Collective::alltoall;
}

bool may_alias(Collective collective) noexcept { return collective != Collective::alltoall; }

Slice window(Collective collective, BufferId buffer, uint32_t rank, uint32_t root, uint32_t size) noexcept {
  const bool input = buffer == BufferId::input;
  const bool at_root = rank == root;
  const Slice all_blocks{size, 0, size, Cut::blocks};
  const Slice own_block{size, rank, rank + 1, Cut::blocks};
  switch (collective) {
    case Collective::allreduce:
    case Collective::scan:
    case Collective::exscan: return kWhole;
    case Collective::reduce: return input || at_root ? kWhole : kNothing;
    case Collective::broadcast: return input ? kNothing : kWhole;
    case Collective::allgather: return input ? own_block : all_blocks;
    case Collective::gather: return input ? own_block : at_root ? all_blocks : kNothing;
    case Collective::scatter: return !input ? own_block : at_root ? all_blocks : kNothing;
    case Collective::reduce_scatter: return input ? all_blocks : own_block;
    case Collective::alltoall: return {size, 0, size, input ? Cut::blocks : Cut::received};
    case Collective::barrier: return kNothing;
  }
  return kNothing;
}

void fill_bounds(const Division& division, uint32_t size, const Lengths& lengths, std::span<uint64_t> bounds) noexcept {
  if (division.cut == Cut::even) {
    for (uint32_t i = 0; i <= division.parts; ++i) bounds[i] = even_bound(lengths.count, division.parts, i);
    return;
  }
  const uint32_t shares = division.parts / size;
  uint64_t start = 0;
  for (uint32_t block = 0; block < size; ++block) {
    const uint64_t count = block_count(division.cut, lengths, block);
    for (uint32_t share = 0; share < shares; ++share) {
      bounds[size_t{block} * shares + share] = start + even_bound(count, shares, share);
    }
    start += count;
  }
  bounds[division.parts] = start;
}

void fill_places(const Division& division, uint32_t size, const Lengths& lengths, std::span<const uint64_t> displacements,
                 std::span<uint64_t> places) noexcept {
  const uint32_t shares = division.parts / size;
  for (uint32_t block = 0; block < size; ++block) {
    const uint64_t count = block_count(division.cut, lengths, block);
    for (uint32_t share = 0; share < shares; ++share) {
      places[size_t{block} * shares + share] = displacements[block] + even_bound(count, shares, share);
    }
  }
}

}  // namespace tutti
