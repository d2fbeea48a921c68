// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In round k ranks that differ in bit k exchange all that they have: 2^k blocks each way. Blocks travel one by one, so that
/// each is passed on chunk by chunk as it came.
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
  uint32_t round = 0;
  for (uint32_t bit = 1; bit < size; bit *= 2, ++round) {
    const uint32_t peer = rank ^ bit;
    for (uint32_t n = 0; n < bit; ++n) {
      const uint32_t mine = rank ^ n;
      lane.at(round).send(peer, n == 0 ? input(block_of(rank, size)) : output(block_of(mine, size)));
      lane.at(round).recv(peer, output(block_of(mine ^ bit, size)));
    }
  }
  return plan.take();
}

/// The blocks of one round follow each other closely: a round pays one latency.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const double rounds = std::bit_width(shape.size - 1);
  const double others = shape.size - 1.0;
  return rounds * model.latency_ns + others * (2 * model.step_ns + static_cast<double>(bytes) / shape.size * model.ns_per_byte);
}

}  // namespace

const AlgorithmInfo kAllgatherRecursiveDoubling = {
    Collective::allgather,
    "recursive_doubling",
    "pairs exchange all that they have, at distance 1, 2, 4 ...; fewest rounds",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    1u << 15,
    kPowerOfTwoRanks,
    cost_ns,
    build,
};

}  // namespace tutti
