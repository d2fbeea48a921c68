// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Block b sets out at rank b + 1 and goes round to rank b; each rank on the way folds its own into it and keeps nothing. Each
/// lane does this for its share of every block, chunk by chunk.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes, kChannels };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"channels", 1, 1, 16, false, "lanes that each take a share of every block; fewer on more than 1024 ranks"},
};

uint32_t lanes_for(const Parameters& parameters, uint32_t size) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(parameters[kChannels], 1, std::max<uint64_t>(1, 16384 / size)));
}

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const uint32_t next = (rank + 1) % size;
  const uint32_t previous = (rank + size - 1) % size;
  ScheduleBuilder plan(Collective::reduce_scatter, request);
  const uint32_t shares = lanes_for(request.parameters, size);
  if (size > 2) plan.hold(BufferId::scratch, blocks_of(0, size, size));
  for (uint32_t share = 0; share < shares; ++share) {
    const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
    const Slice own = block_of(rank, size, share, shares);
    if (size == 1) {
      lane.copy(input(own), output(own)).finalize();
      continue;
    }
    // The block that leaves in step s; the one that comes in step s leaves in the next.
    const auto sent = [&](uint32_t s) { return block_of((rank + 2 * size - 1 - s) % size, size, share, shares); };
    lane.send(next, input(sent(0)));
    for (uint32_t s = 0; s + 2 < size; ++s) {
      if (s > 0) lane.at(s).send(next, scratch(sent(s)));
      lane.at(s).recv_reduce(previous, input(sent(s + 1)), scratch(sent(s + 1)));
    }
    if (size > 2) lane.at(size - 2).send(next, scratch(sent(size - 2)));
    lane.at(size - 2).recv_reduce(previous, input(own), output(own)).finalize();
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double steps = shape.size - 1.0;
  const double block_bytes = static_cast<double>(bytes) / shape.size;
  const double more_lanes_ns = 2 * (lanes_for(parameters, shape.size) - 1) * model.neighbour().message_ns;
  const double fold_ns = model.neighbour().fold_ns(block_bytes);
  return model.step_ns() + steps * (model.neighbour().exchange_ns(block_bytes) + more_lanes_ns + fold_ns);
}

}  // namespace

const AlgorithmInfo kReduceScatterRing = {
    Collective::reduce_scatter,
    "ring",
    "each block gathers its sum once round the ring; moves the fewest bytes, between neighbours only",
    "P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69 (2009)",
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
