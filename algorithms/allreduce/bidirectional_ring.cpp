// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../common/parameters.hpp"
#include "../common/ring.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Half of the lanes go up the ring, half of them down: both directions of every link are busy, where they are separate.
namespace tutti {
namespace {

constexpr uint64_t kMaxChannels = 8;
/// Lanes times ranks stays below this, or a plan is no longer a small program (kMaxRanksOfLinearSteps).
constexpr uint64_t kMaxLaneRanks = 12288;

enum : size_t { kSegmentBytes, kChannels };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"channels", 1, 1, kMaxChannels, false, "pairs of lanes that each take a share of the buffer; fewer on more than 768 ranks"},
};

uint32_t lanes_for(const Parameters& parameters, uint32_t size) {
  const uint64_t pairs = std::max<uint64_t>(1, kMaxLaneRanks / size / 2);
  return 2 * static_cast<uint32_t>(std::clamp<uint64_t>(parameters[kChannels], 1, pairs));
}

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  ScheduleBuilder plan(Collective::allreduce, request);
  if (size == 1) {
    plan.lane().copy(input(), output()).finalize();
    return plan.take();
  }
  const uint32_t lanes = lanes_for(request.parameters, size);
  for (uint32_t share = 0; share < lanes; ++share) {
    append_ring(plan.lane(request.parameters[kSegmentBytes]), request, share, lanes, share % 2 == 1);
  }
  return plan.take();
}

/// As round one ring, with twice the lanes: what is gained where the directions are separate is not in the model.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double steps = shape.size - 1.0;
  const double block_bytes = static_cast<double>(bytes) / shape.size;
  const double more_lanes_ns = 2 * (lanes_for(parameters, shape.size) - 1) * model.neighbour().message_ns;
  return model.step_ns() + 2 * steps * (model.neighbour().exchange_ns(block_bytes) + more_lanes_ns) +
         steps * model.neighbour().fold_ns(block_bytes);
}

}  // namespace

const AlgorithmInfo kAllreduceBidirectionalRing = {
    Collective::allreduce,
    "bidirectional_ring",
    "half of the vector goes up the ring, half of it down; for links with two directions",
    "P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69 (2009)",
    kParameters,
    1,
    4096,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
