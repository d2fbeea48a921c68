// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In step s = 0 .. p-2 each rank sends the block of rank - s to the next rank and receives that of rank - s - 1 from the previous
/// one: each block goes once round the ring.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {
    {"segment_bytes", 0, 8, uint64_t{1} << 30, true, "length of a chunk; 0: as long as the transport allows"},
};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const auto block = [&](uint32_t steps_behind) { return block_of((rank + size - steps_behind) % size, size); };
  ScheduleBuilder plan(Collective::allgather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (!request.in_place) lane.copy(input(block(0)), output(block(0)));
  for (uint32_t s = 0; s + 1 < size; ++s) {
    lane.at(s).send((rank + 1) % size, s == 0 ? input(block(0)) : output(block(s)));
    lane.at(s).recv((rank + size - 1) % size, output(block(s + 1)));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const double steps = shape.size - 1.0;
  return steps * (model.latency_ns + 2 * model.step_ns + static_cast<double>(bytes) / shape.size * model.ns_per_byte);
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
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
