// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../common/parameters.hpp"
#include "../common/ring.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Reduce-scatter, then allgather, round the ring. Each lane does this for its share of every block.
namespace tutti {
namespace {

constexpr uint64_t kMaxChannels = 16;
/// Lanes times ranks stays below this, or a plan is no longer a small program (kMaxRanksOfLinearSteps).
constexpr uint64_t kMaxLaneRanks = 12288;

enum : size_t { kSegmentBytes, kChannels };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"channels", 1, 1, kMaxChannels, false, "lanes that each take a share of the buffer; fewer on more than 768 ranks"},
};

uint32_t lanes_for(const Parameters& parameters, uint32_t size) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(parameters[kChannels], 1, std::max<uint64_t>(1, kMaxLaneRanks / size)));
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
    append_ring(plan.lane(request.parameters[kSegmentBytes]), request, share, lanes, false);
  }
  return plan.take();
}

/// 2 (p-1) steps of n/p bytes each; of half of them the bytes are folded. Lanes overlap their latencies but share the wire.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double steps = shape.size - 1.0;
  const double block_bytes = static_cast<double>(bytes) / shape.size;
  const double more_lanes_ns = 2 * (lanes_for(parameters, shape.size) - 1) * model.neighbour().message_ns;
  return model.step_ns() + 2 * steps * (model.neighbour().exchange_ns(block_bytes) + more_lanes_ns) +
         steps * model.neighbour().fold_ns(block_bytes);
}

}  // namespace

const AlgorithmInfo kAllreduceRing = {
    Collective::allreduce,
    "ring",
    "reduce-scatter and allgather round a ring, chunk by chunk; moves the fewest bytes",
    "P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69 (2009)",
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
