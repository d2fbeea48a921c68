// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In step s = 0 .. p-2 each rank sends the block of rank - s to the next rank and receives that of rank - s - 1 from the
/// previous one: each block goes once round the ring.
namespace tutti {
namespace {

constexpr uint64_t kMaxChannels = 16;
/// Lanes times ranks: a lag, which has 16 bits, counts the steps of a lane.
constexpr uint64_t kMaxLaneRanks = uint64_t{1} << 15;

enum : size_t { kSegmentBytes, kChannels };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"channels", 1, 1, kMaxChannels, false, "lanes that each take a share of every block; fewer on more than 2048 ranks"},
};

uint32_t lanes_for(const Parameters& parameters, uint32_t size) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(parameters[kChannels], 1, std::max<uint64_t>(1, kMaxLaneRanks / size)));
}

void ring(const LaneBuilder& lane, const PlanRequest& request, uint32_t share, uint32_t shares) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const auto block = [&](uint32_t steps_behind) { return block_of((rank + size - steps_behind) % size, size, share, shares); };
  if (!request.in_place) lane.copy(input(block(0)), output(block(0)));
  for (uint32_t s = 0; s + 1 < size; ++s) {
    lane.at(s).send((rank + 1) % size, s == 0 ? input(block(0)) : output(block(s)));
    lane.at(s).recv((rank + size - 1) % size, output(block(s + 1)));
  }
}

Schedule build(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::allgather, request);
  const uint32_t lanes = lanes_for(request.parameters, request.shape.size);
  for (uint32_t share = 0; share < lanes; ++share) ring(plan.lane(request.parameters[kSegmentBytes]), request, share, lanes);
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return model.step_ns() + (shape.size - 1.0) * model.neighbour().exchange_ns(static_cast<double>(bytes) / shape.size);
}

}  // namespace

const AlgorithmInfo kAllgatherRing = {
    Collective::allgather,
    "ring",
    "each block goes once round the ring, chunk by chunk; moves the fewest bytes, between neighbours only",
    "E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience, CCPE 19 "
    "(2007)",
    kParameters,
    1,
    kMaxLaneRanks,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
