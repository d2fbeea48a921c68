// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In step s = 1 .. p-1 each rank sends to rank + s what that one is to fold, and folds what comes from rank - s.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const Slice own = block_of(rank, size);
  ScheduleBuilder plan(Collective::reduce_scatter, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (size == 1) lane.copy(input(own), output(own)).finalize();
  for (uint32_t s = 1; s < size; ++s) {
    const uint32_t to = (rank + s) % size;
    lane.send(to, input(block_of(to, size)));
    lane.recv_reduce((rank + size - s) % size, s == 1 ? input(own) : output(own), output(own)).finalize(s + 1 == size);
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const double block_bytes = static_cast<double>(bytes) / shape.size;
  if (shape.size == 1) return model.step_ns();
  const double beside = model.ranks_per_node() - 1.0;
  const double farther = model.far().latency_ns - model.near().latency_ns;
  return (shape.size - 1.0) * model.meeting_ns() - beside * farther + model.all_pairs_ns(block_bytes) +
         model.all_folds_ns((shape.size - 1.0) * block_bytes);
}

}  // namespace

const AlgorithmInfo kReduceScatterPairwise = {
    Collective::reduce_scatter,
    "pairwise",
    "exchange with the ranks at distance 1, 2, 3 ..., one after the other; nothing is kept on the way",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
