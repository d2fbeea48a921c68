// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/doubling.hpp"
#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// Reduce-scatter by halving the vector while the distance doubles, then the parts go to the root the same way back.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::reduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (request.shape.size == 1) {
    lane.copy(input(), output()).finalize();
    return plan.take();
  }
  const Pairs pairs(request.shape.size, request.root);
  const bool is_root = request.rank == request.root;
  const Halving halving = halving_of_share(pairs, near_first);
  Piece piece{lane, whole_team(request)};
  piece.partial = is_root ? BufferId::output : BufferId::scratch;
  append_pairing(piece, pairs);
  if (!pairs.acts(request.rank)) return plan.take();
  if (!is_root) plan.hold(BufferId::scratch, kWhole);
  append_halving(piece, pairs, halving);
  append_gathering(piece, pairs, halving, pairs.number_of(request.root));
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return halving_ns(shape, static_cast<double>(bytes), model, Halves::there_and_back_to_one);
}

}  // namespace

const AlgorithmInfo kReduceHalving = {
    Collective::reduce,
    "halving",
    "reduce-scatter by halving, then the parts are gathered; few bytes, for large data",
    "R. Rabenseifner: Optimization of Collective Reduction Operations, ICCS (2004)",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered | kCanonical,
    cost_ns,
    build,
};

}  // namespace tutti
