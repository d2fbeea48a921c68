// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/binomial.hpp"
#include "../common/levels.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// Level by level: the members of each group reduce to a leader, up a binomial tree; the leaders meet at the next level. The root
/// leads each group that it is in. With groups of neighbours, equally large and a power of two, that is the association of
/// deterministic mode.
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
  const std::vector<Level> levels = levels_of(request, 0, request.root);
  const size_t top = last_meeting(levels);
  const bool is_root = request.rank == request.root;
  if (!is_root) plan.hold(BufferId::scratch, kWhole);
  Piece piece{lane, {}, {kWhole}};
  piece.partial = is_root ? BufferId::output : BufferId::scratch;
  uint32_t lag = 0;
  for (size_t n = 0; n <= top; ++n) {
    piece.team = levels[n].team;
    piece.lag = lag;
    piece.completes = n == top;
    if (piece.team.size() > 0) append_binomial_reduce(piece, levels[n].leader);
    lag += binomial_depth(levels[n].longest);
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double total_ns = model.step_ns();
  for (const LevelPrice& level : level_prices(shape, model)) {
    const auto n = static_cast<double>(bytes);
    total_ns += binomial_depth(level.longest) * (level.price.one_way_ns(n) + level.price.fold_ns(n));
  }
  return total_ns;
}

constexpr std::string_view kSource =
    "N. Karonis, B. de Supinski, I. Foster, W. Gropp, E. Lusk, J. Bresnahan: Exploiting hierarchy in parallel computer networks "
    "to "
    "optimize collective operation performance, IPDPS (2000)";

}  // namespace

const AlgorithmInfo kReduceHierarchical = {
    Collective::reduce,
    "hierarchical",
    "groups reduce to their leaders, level by level",
    kSource,
    kParameters,
    1,
    UINT32_MAX,
    kNested,
    cost_ns,
    build,
};

const AlgorithmInfo kReduceHierarchicalAligned = {
    Collective::reduce,
    "hierarchical_aligned",
    "as hierarchical, in rank order and deterministic; for groups of neighbours, equally large and a power of two",
    kSource,
    kParameters,
    1,
    UINT32_MAX,
    kNested | kRankOrdered | kCanonical,
    cost_ns,
    build,
    is_aligned,
};

}  // namespace tutti
