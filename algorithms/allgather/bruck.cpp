// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "../common/parameters.hpp"
#include "../common/ring_blocks.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Before round k a rank has the blocks of the 2^k ranks from itself on, and then gets those of the next 2^k from the rank at
/// that distance: one message, or two where they go past the last rank. A block goes to its own place at once: nothing is rotated
/// at the end, and blocks may have any lengths.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  ScheduleBuilder plan(Collective::allgather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (!request.in_place) lane.copy(input(block_of(rank, size)), output(block_of(rank, size)));
  for (uint32_t distance = 1; distance < size; distance *= 2) {
    const LaneBuilder round = lane.then();
    const uint32_t to = (rank + size - distance) % size;
    const uint32_t from = (rank + distance) % size;
    const uint32_t count = std::min(distance, size - distance);
    for (const Slice blocks : ring_blocks(rank, count, size)) round.send(to, output(blocks));
    for (const Slice blocks : ring_blocks(from, count, size)) round.recv(from, output(blocks));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double total_ns = model.step_ns();
  for (uint32_t round = 0; 1u << round < shape.size; ++round) {
    const uint32_t blocks = std::min(1u << round, shape.size - (1u << round));
    total_ns += model.exchange(round).exchange_ns(static_cast<double>(bytes) / shape.size * blocks);
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kAllgatherBruck = {
    Collective::allgather,
    "bruck",
    "blocks of the ranks ahead, from distance 1, 2, 4 ...; fewest rounds for any number of ranks",
    "J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient Algorithms for All-to-All Communications in Multiport "
    "Message-Passing Systems, IEEE TPDS 8 (1997)",
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
