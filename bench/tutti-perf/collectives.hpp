// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tutti_perf {

enum class Collective : uint8_t {
  allreduce,
  reduce,
  broadcast,
  allgather,
  allgatherv,
  gather,
  gatherv,
  scatter,
  scatterv,
  reduce_scatter,
  reduce_scatterv,
  alltoall,
  alltoallv,
  alltoallw,
  scan,
  exscan,
  barrier,
  sendrecv,
  pingpong,
  message_rate
};

/// How many bytes cross the busiest link, as a multiple of the size, with p ranks.
enum class BusLoad : uint8_t { none, once, twice_less_own, less_own };

/// What this program has to know of a collective, so that the rest of it need not name one.
struct Traits {
  Collective collective;
  std::string_view name;
  std::string_view size_is;  // of which buffer the size is
  BusLoad load;
  bool reduces;   // has an operation
  bool rooted;    // has a root
  bool in_place;  // has a second form, in place
  bool blocks;    // each rank has a block; the size is that of all
  bool varying;   // the blocks may differ in length: --counts
  bool message;   // between pairs of ranks; without a persistent form
};

const std::vector<Traits>& all_collectives();
const Traits& traits(Collective collective);
std::string_view name(Collective collective);

/// The collectives of these words, in their order; "all" stands for all of them. Throws UsageError, which lists the words.
std::vector<Collective> parse_collectives(const std::vector<std::string>& words);
/// --list
std::string list_collectives();

/// What algorithm_bandwidth is multiplied by for busbw.
double bus_factor(Collective collective, uint32_t rank_count);

}  // namespace tutti_perf
