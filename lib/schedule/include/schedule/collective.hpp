// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "schedule/schedule.hpp"

/// What each collective means: algorithms, verifier, engine and communicators take it from here.
///
/// A call works on one vector of elements. Reductions to all and the like cut it evenly; the others have a block for each rank
/// in it. A buffer of the caller's is a *window* of the vector: allgather's input is the window of the rank's own block, its output
/// the whole. Slices name parts of the vector, whichever buffer they lie in.
///
///                     input         output
///   allreduce         all           all
///   reduce            all           root: all
///   broadcast         -             all; the root's is what is sent
///   allgather         own block     all blocks
///   gather            own block     root: all blocks
///   scatter           root: blocks  own block
///   reduce_scatter    all blocks    own block
///   alltoall          all blocks    all blocks, as received
///   scan, exscan      all           all; exscan leaves rank 0's alone
///   barrier           -             -
namespace tutti {

bool has_root(Collective collective) noexcept;
bool has_blocks(Collective collective) noexcept;
/// Folds contributions, so that the operation matters.
bool reduces(Collective collective) noexcept;
/// Ranks may give blocks of different lengths without knowing each other's: then nobody may count on more than its own.
bool hides_counts(Collective collective) noexcept;
/// Whether the caller may give one memory for input and output, where their windows meet. (Not alltoall: there each byte changes
/// its place.)
bool may_alias(Collective collective) noexcept;

/// The part of the vector that a buffer of the caller's holds; kNothing if the collective has no such buffer on this rank.
Slice window(Collective collective, BufferId buffer, uint32_t rank, uint32_t root, uint32_t size) noexcept;

/// How a vector is cut.
struct Division {
  Cut cut = Cut::even;
  uint32_t parts = 1;
  bool operator==(const Division&) const = default;
};

/// How long the parts of a call's vector are, as one rank knows it.
struct Lengths {
  uint64_t count = 0;                         ///< of the vector; with blocks: of each block, unless counts are given
  std::span<const uint64_t> counts;           ///< Cut::blocks: one for each rank; empty: all `count`
  std::span<const uint64_t> received_counts;  ///< Cut::received, likewise
};

/// bounds[i] = first element of part i; bounds has division.parts + 1 places.
void fill_bounds(const Division& division, uint32_t size, const Lengths& lengths, std::span<uint64_t> bounds) noexcept;

/// Where part i lies when block b begins at element displacements[b] of its buffer; places has division.parts places.
void fill_places(const Division& division, uint32_t size, const Lengths& lengths, std::span<const uint64_t> displacements,
                 std::span<uint64_t> places) noexcept;

}  // namespace tutti
