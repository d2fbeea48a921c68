// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Each rank sends every other its block; each folds what comes for its own block at once, in rank order.
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
  for (uint32_t s = 1; s < size; ++s) {
    const uint32_t to = (rank + s) % size;
    lane.send(to, input(block_of(to, size)));
  }
  std::vector<Operand> sources;
  for (uint32_t from = 0; from < size; ++from) sources.push_back(from == rank ? input(own) : message(from, own));
  lane.fold(std::move(sources), {output(own)}).finalize();
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const double block_bytes = static_cast<double>(bytes) / shape.size;
  return model.meeting_ns() + model.all_pairs_ns(block_bytes) + model.all_folds_ns((shape.size - 1.0) * block_bytes);
}

}  // namespace

const AlgorithmInfo kReduceScatterDirect = {
    Collective::reduce_scatter,
    "direct",
    "every rank sends every other its block, which folds them at once; one round, for few ranks",
    "E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience, CCPE 19 "
    "(2007)",
    kParameters,
    1,
    kMaxRanksOfOneStep,
    kRankOrdered,
    cost_ns,
    build,
};

}  // namespace tutti
