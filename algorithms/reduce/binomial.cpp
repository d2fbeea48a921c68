// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/binomial.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// In each round the holders of the partial results of neighbouring groups pair up, and one of the two goes on for both: the root
/// where it is one of them.
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
  const bool is_root = request.rank == request.root;
  if (!is_root) plan.hold(BufferId::scratch, kWhole);
  Piece piece{lane, whole_team(request), {kWhole}};
  piece.partial = is_root ? BufferId::output : BufferId::scratch;
  append_binomial_reduce(piece, request.root);
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double total_ns = model.step_ns();
  for (uint32_t round = 0; round < binomial_depth(shape.size); ++round) {
    const Price price = model.tree_edge(round);
    total_ns += price.one_way_ns(static_cast<double>(bytes)) + price.fold_ns(static_cast<double>(bytes));
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kReduceBinomial = {
    Collective::reduce,
    "binomial",
    "neighbouring groups become one in each round; fewest rounds, for small data",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered | kCanonical,
    cost_ns,
    build,
};

}  // namespace tutti
