// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/doubling.hpp"
#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// Reduce-scatter by halving the vector while the distance doubles, then allgather the same way back. Neighbours go first, so
/// that every element is folded in the association of deterministic mode.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::allreduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (request.shape.size == 1) {
    lane.copy(input(), output()).finalize();
    return plan.take();
  }
  Piece piece{lane, whole_team(request)};
  append_rabenseifner(piece, Pairs(request.shape.size));
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return halving_ns(shape, static_cast<double>(bytes), model, Halves::there_and_back);
}

}  // namespace

const AlgorithmInfo kAllreduceHalving = {
    Collective::allreduce,
    "halving",
    "halving the vector at distance 1, 2, 4 ..., and back; few rounds and the fewest bytes",
    "R. Rabenseifner: Optimization of Collective Reduction Operations, ICCS (2004)",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered | kCanonical,
    cost_ns,
    build,
};

}  // namespace tutti
