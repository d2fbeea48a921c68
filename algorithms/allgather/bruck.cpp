// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Before round k a rank has the blocks of the 2^k ranks from itself on, and then gets those of the next 2^k from the rank at
/// that distance. A block goes to its own place at once: nothing is rotated at the end, and blocks may have any lengths. Blocks
/// travel one by one, so that each is passed on chunk by chunk as it came.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const auto block = [&](uint32_t ahead) { return block_of(static_cast<uint32_t>((uint64_t{rank} + ahead) % size), size); };
  ScheduleBuilder plan(Collective::allgather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (!request.in_place) lane.copy(input(block(0)), output(block(0)));
  uint32_t round = 0;
  for (uint32_t distance = 1; distance < size; distance *= 2, ++round) {
    const uint32_t to = (rank + size - distance) % size;
    const uint32_t from = (rank + distance) % size;
    for (uint32_t n = 0; n < std::min(distance, size - distance); ++n) {
      lane.at(round).send(to, n == 0 ? input(block(0)) : output(block(n)));
      lane.at(round).recv(from, output(block(distance + n)));
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

const AlgorithmInfo kAllgatherBruck = {
    Collective::allgather,
    "bruck",
    "blocks of the ranks ahead, from distance 1, 2, 4 ...; fewest rounds for any number of ranks",
    "J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient Algorithms for All-to-All Communications in Multiport "
    "Message-Passing Systems, IEEE TPDS 8 (1997)",
    kParameters,
    1,
    1u << 15,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
