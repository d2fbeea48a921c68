// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Each rank gives its whole vector to all others, and folds all of them at once, in rank order.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  ScheduleBuilder plan(Collective::allreduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  std::vector<Operand> sources;
  std::vector<Operand> others;
  for (uint32_t rank = 0; rank < size; ++rank) {
    sources.push_back(rank == request.rank ? input() : message(rank));
    if (rank != request.rank) others.push_back(message(rank));
  }
  if (!others.empty()) lane.fold({input()}, std::move(others));
  lane.fold(std::move(sources), {output()}).finalize();
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const auto n = static_cast<double>(bytes);
  return model.meeting_ns() + model.all_pairs_ns(n) + model.all_folds_ns((shape.size - 1.0) * n);
}

}  // namespace

const AlgorithmInfo kAllreduceFlat = {
    Collective::allreduce,
    "flat",
    "every rank sends all others its vector, which they fold at once; one round, for little data and few ranks",
    "R. L. Graham, G. Shipman: MPI Support for Multi-core Architectures: Optimized Shared Memory Collectives, EuroPVM/MPI (2008)",
    kParameters,
    1,
    kMaxRanksOfOneStep,
    kRankOrdered,
    cost_ns,
    build,
};

}  // namespace tutti
