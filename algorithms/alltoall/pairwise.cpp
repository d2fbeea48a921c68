// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In step s = 1 .. p-1 each rank sends to rank + s and receives from rank - s: every rank sends once and receives once a step.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  ScheduleBuilder plan(Collective::alltoall, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  lane.copy(input(block_of(rank, size)), output(received_from(rank, size)));
  for (uint32_t s = 1; s < size; ++s) {
    const uint32_t to = (rank + s) % size;
    const uint32_t from = (rank + size - s) % size;
    lane.send(to, input(block_of(to, size)));
    lane.recv(from, output(received_from(from, size)));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const double beside = model.ranks_per_node() - 1.0;
  const double farther = model.far().latency_ns - model.near().latency_ns;
  return (shape.size - 1.0) * model.meeting_ns() - beside * farther + model.all_pairs_ns(static_cast<double>(bytes) / shape.size);
}

}  // namespace

const AlgorithmInfo kAlltoallPairwise = {
    Collective::alltoall,
    "pairwise",
    "exchange with the ranks at distance 1, 2, 3 ..., one after the other; for large blocks",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
