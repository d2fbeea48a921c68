// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/binomial.hpp"
#include "../common/doubling.hpp"
#include "../common/levels.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// Level by level: the members of each group reduce to a leader, the leaders meet at the next level, those of the last level do
/// an allreduce by halving, and the result goes down again. Each lane does this for its share of the vector, with other leaders
/// than the lanes beside it: with as many lanes as a group has members, all of them work at every level, and as much leaves the
/// group as if it were one rank.
///
/// With groups of neighbours, equally large and a power of two, that is the association of deterministic mode.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes, kLeaders };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"leaders", 1, 1, 16, false, "lanes that each take a share of the vector, with leaders of their own"},
};

void append_share(const LaneBuilder& lane, const std::vector<Level>& levels, uint32_t share, uint32_t shares) {
  const size_t top = last_meeting(levels);
  const Pairs pairs(levels[top].longest);
  // Cut as the leaders will: parts of other cuts have other bounds.
  const uint32_t parts = pairs.active();
  Piece piece{lane, {}, {shares * parts, share * parts, (share + 1) * parts, Cut::even}};
  piece.completes = false;
  uint32_t lag = 0;
  for (size_t n = 0; n < top; ++n) {
    piece.team = levels[n].team;
    piece.lag = lag;
    if (piece.team.size() > 0) append_binomial_reduce(piece, levels[n].leader);
    lag += binomial_depth(levels[n].longest);
  }
  if (levels[top].team.size() > 0) {
    piece.team = levels[top].team;
    piece.lag = lag;
    piece.completes = true;
    append_rabenseifner(piece, pairs, share, shares);
  }
  piece.lane = piece.lane.then();
  lag = 0;
  piece.mine = BufferId::output;
  for (size_t n = top; n-- > 0;) {
    piece.team = levels[n].team;
    piece.lag = lag;
    if (piece.team.size() > 0) append_binomial_broadcast(piece, levels[n].leader);
    lag += binomial_depth(levels[n].longest);
  }
}

Schedule build(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::allreduce, request);
  if (request.shape.size == 1) {
    plan.lane().copy(input(), output()).finalize();
    return plan.take();
  }
  const auto shares = static_cast<uint32_t>(request.parameters[kLeaders]);
  for (uint32_t share = 0; share < shares; ++share) {
    append_share(plan.lane(request.parameters[kSegmentBytes]), levels_of(request, share), share, shares);
  }
  return plan.take();
}

/// Up and down the levels, where the lanes share the work of all but the first hop; then halving among the last leaders, a rank
/// of each group and lane, with all lanes over the same wire.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const std::vector<LevelPrice> levels = level_prices(shape, model);
  const auto lanes = static_cast<double>(parameters[kLeaders]);
  const auto n = static_cast<double>(bytes);
  double total_ns = 0;
  for (size_t level = 0; level + 1 < levels.size(); ++level) {
    const auto depth = static_cast<double>(binomial_depth(levels[level].longest));
    if (depth == 0) continue;
    const Price& price = levels[level].price;
    const double moved = n * (1 + (depth - 1) / lanes);
    total_ns +=
        2 * (depth * (price.latency_ns + 2 * lanes * price.message_ns) + moved * price.ns_per_byte) + price.fold_ns(moved);
  }
  const Pairs pairs(levels.back().longest);
  const Price& price = levels.back().price;
  const double extra = pairs.extra() > 0 ? 1 : 0;
  const double moved = n * (pairs.active() - 1.0) / pairs.active() + extra * n;
  return total_ns + 2 * (pairs.rounds() + extra) * (price.latency_ns + 2 * lanes * price.message_ns) +
         2 * moved * price.ns_per_byte * price.both_ways + price.fold_ns(moved);
}

constexpr std::string_view kSource =
    "N. Karonis, B. de Supinski, I. Foster, W. Gropp, E. Lusk, J. Bresnahan: Exploiting hierarchy in parallel computer networks "
    "to "
    "optimize collective operation performance, IPDPS (2000); with several leaders: M. Bayatpour, S. Chakraborty, H. Subramoni, "
    "X. "
    "Lu, D. K. Panda: Scalable reduction collectives with data partitioning-based multi-leader design, SC (2017)";

}  // namespace

const AlgorithmInfo kAllreduceHierarchical = {
    Collective::allreduce,
    "hierarchical",
    "groups reduce to their leaders, level by level; these meet; the result goes down again",
    kSource,
    kParameters,
    1,
    1u << 17,
    kNested,
    cost_ns,
    build,
};

const AlgorithmInfo kAllreduceHierarchicalAligned = {
    Collective::allreduce,
    "hierarchical_aligned",
    "as hierarchical, in rank order and deterministic; for groups of neighbours, equally large and a power of two",
    kSource,
    kParameters,
    1,
    1u << 17,
    kNested | kRankOrdered | kCanonical,
    cost_ns,
    build,
    is_aligned,
};

}  // namespace tutti
