// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/pairs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In round k ranks at distance 2^k exchange all that they have: the blocks of 2^k neighbours, one message each way. Where the
/// ranks are no power of two, the first pairs of neighbours act as one: one of them gives the other its block before, and gets
/// all others afterwards.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

/// Numbers [first, first + count) stand for neighbouring ranks.
Slice blocks_of_numbers(const Pairs& pairs, uint32_t first, uint32_t count, uint32_t size) {
  const uint32_t first_rank = pairs.rank_of(first) - (pairs.paired(pairs.rank_of(first)) ? 1 : 0);
  return blocks_of(first_rank, pairs.rank_of(first + count - 1) + 1, size);
}

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const Pairs pairs(size);
  const Slice own = block_of(rank, size);
  ScheduleBuilder plan(Collective::allgather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (!request.in_place) lane.copy(input(own), output(own));
  if (pairs.paired(rank) && !pairs.acts(rank)) {
    lane.send(rank ^ 1, input(own));
    // All but the own block, in the order in which the neighbour sends them.
    if (rank > 0) lane.then().recv(rank ^ 1, output(blocks_of(0, rank, size)));
    lane.then().recv(rank ^ 1, output(blocks_of(rank + 1, size, size)));
    return plan.take();
  }
  if (pairs.paired(rank)) lane.recv(rank ^ 1, output(block_of(rank ^ 1, size)));
  const uint32_t number = pairs.number_of(rank);
  for (uint32_t bit = 1; bit < pairs.active(); bit *= 2) {
    const LaneBuilder round = lane.then();
    const uint32_t partner = number ^ bit;
    round.send(pairs.rank_of(partner), output(blocks_of_numbers(pairs, number & ~(bit - 1), bit, size)));
    round.recv(pairs.rank_of(partner), output(blocks_of_numbers(pairs, partner & ~(bit - 1), bit, size)));
  }
  if (pairs.paired(rank)) {
    const uint32_t other = rank ^ 1;
    if (other > 0) lane.then().send(other, output(blocks_of(0, other, size)));
    lane.then().send(other, output(blocks_of(other + 1, size, size)));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const Pairs pairs(shape.size);
  const double block_bytes = static_cast<double>(bytes) / shape.size;
  double total_ns = model.step_ns();
  for (uint32_t round = 0; round < pairs.rounds(); ++round) {
    total_ns += model.exchange_of(pairs.active(), round).exchange_ns(block_bytes * shape.size / pairs.active() * (1u << round));
  }
  if (pairs.extra() == 0) return total_ns;
  return total_ns + model.tree_edge(0).one_way_ns(block_bytes) + model.tree_edge(0).one_way_ns(static_cast<double>(bytes));
}

}  // namespace

const AlgorithmInfo kAllgatherRecursiveDoubling = {
    Collective::allgather,
    "recursive_doubling",
    "pairs exchange all that they have, at distance 1, 2, 4 ...; fewest rounds",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
