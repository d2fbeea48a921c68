// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Everybody sends its block to everybody, then takes what comes: one round.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const Slice own = block_of(rank, size);
  ScheduleBuilder plan(Collective::allgather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (!request.in_place) lane.copy(input(own), output(own));
  for (uint32_t s = 1; s < size; ++s) lane.send((rank + s) % size, input(own));
  for (uint32_t s = 1; s < size; ++s) {
    const uint32_t from = (rank + size - s) % size;
    lane.recv(from, output(block_of(from, size)));
  }
  return plan.take();
}

/// All latencies overlap.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  return model.meeting_ns() + model.all_pairs_ns(static_cast<double>(bytes) / shape.size);
}

}  // namespace

const AlgorithmInfo kAllgatherLinear = {
    Collective::allgather,
    "linear",
    "everybody sends to everybody in one round; for few ranks, as each needs a channel to each",
    "E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience, CCPE 19 "
    "(2007)",
    kParameters,
    1,
    32,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
