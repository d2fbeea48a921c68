// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "collectives.hpp"

/// What the buffers of a call hold: how long they are, where the blocks lie, and what each place should contain.
namespace tutti_perf {

/// How the elements of all blocks are divided among the ranks, or, of alltoallv and alltoallw, among the pairs (from, to). All
/// but `one` treat (a, b) as (b, a).
enum class Spread : uint8_t {
  even,
  linear,  // as 1, 2, 3, ...: rank + 1, or (from + to) mod p + 1
  random,  // 1 to 1000 parts, from the seed
  one,     // rank 0 has all; rank 0 sends all
  sparse   // every fourth rank from 1 on; pairs with (from + to) mod 4 = 1
};
struct Counts {
  Spread spread = Spread::even;
  uint64_t seed = 1;
};
/// "even", "linear", "random", "random:7", "one", "sparse". Throws UsageError.
Counts parse_counts(std::string_view text);
std::string text_of(const Counts& counts);

struct Blocks {
  std::vector<uint64_t> counts;  // elements, by rank
  std::vector<uint64_t> places;  // one after another
  uint64_t total() const { return counts.empty() ? 0 : places.back() + counts.back(); }
};

/// One call on one rank.
struct Layout {
  uint64_t total = 0;  // elements of the size that is reported
  uint64_t count = 0;  // the argument: all of them, or those of a block
  Blocks send;         // of collectives with blocks: what this rank's buffer is divided into where it has all blocks
  Blocks recv;
  uint64_t send_elements = 0;  // what this rank's buffers need, whichever rank is root
  uint64_t recv_elements = 0;
};
/// `total` is a multiple of rank_count where there are blocks.
Layout make_layout(Collective collective, const Counts& counts, uint64_t total, uint32_t rank_count, uint32_t rank);

/// A part of a buffer and the part of a stream that it holds.
struct Piece {
  uint64_t place = 0;
  uint64_t count = 0;
  Origin origin;
};
/// What a receive buffer has to contain. Out of place, before the call: only broadcast's root. The send buffer is the beginning
/// of the own stream.
struct Contents {
  std::vector<Piece> before;
  std::vector<Piece> after;
};
struct Place {
  uint32_t rank_count = 1;
  uint32_t rank = 0;
  uint32_t root = 0;
  bool in_place = false;
};
Contents make_contents(Collective collective, const Counts& counts, const Layout& layout, const Place& place);

/// Whether the blocks can be replaced by those that come: alltoall in place needs as many elements from a rank as for it.
bool has_in_place(Collective collective, const Counts& counts);

/// The rank that this one exchanges messages with in pingpong and message_rate: one of the upper half with one of the lower. The
/// last of an odd number has none: its own rank.
uint32_t partner_of(uint32_t rank, uint32_t rank_count);

}  // namespace tutti_perf
