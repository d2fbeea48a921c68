// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include "../common/levels.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// The ranks of a team signal their leader, level by level from the inside; the outermost team has a dissemination barrier; then
/// leaders release their teams on the way back.
namespace tutti {
namespace {

Schedule build(const PlanRequest& request) {
  const std::vector<Level> levels = levels_of(request, 0);
  const size_t outermost = last_meeting(levels);
  ScheduleBuilder plan(Collective::barrier, request);
  const LaneBuilder lane = plan.lane();
  const auto leads = [&](const Level& level) { return level.team.self == level.leader; };
  const auto followers = [&](const Level& level, const auto& visit) {
    for (uint32_t n = 1; n < level.team.size(); ++n) visit(level.team.ranks[(level.leader + n) % level.team.size()]);
  };
  size_t own = 0;  // the outermost team that this rank is in; it leads those inside
  for (; own < outermost && leads(levels[own]); ++own) {
    followers(levels[own], [&](uint32_t rank) { lane.await_signal(rank); });
  }
  const Team& team = levels[own].team;
  if (own < outermost) {
    lane.signal(team.ranks[levels[own].leader]);
    lane.await_signal(team.ranks[levels[own].leader]);
  } else {
    for (uint32_t distance = 1; distance < team.size(); distance *= 2) {
      lane.signal(team.ranks[(team.self + distance) % team.size()]);
      lane.await_signal(team.ranks[(team.self + team.size() - distance) % team.size()]);
    }
  }
  for (size_t level = own; level-- > 0;) followers(levels[level], [&](uint32_t rank) { lane.signal(rank); });
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t, const Parameters&, const CostModel& model) {
  const std::vector<LevelPrice> levels = level_prices(shape, model);
  double total = std::bit_width(levels.back().longest - 1) * levels.back().price.exchange_ns(0);
  for (size_t level = 0; level + 1 < levels.size(); ++level) {
    const Price& price = levels[level].price;
    if (levels[level].longest > 1) total += 2 * (price.latency_ns + price.message_ns * levels[level].longest);
  }
  return total;
}

}  // namespace

const AlgorithmInfo kBarrierHierarchical = {
    Collective::barrier,
    "hierarchical",
    "inside groups to a leader, dissemination between leaders, and back; few messages between groups",
    "J. Mellor-Crummey, M. Scott: Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors, ACM TOCS 9 (1991)",
    {},
    1,
    1u << 15,
    kNested,
    cost_ns,
    build,
};

}  // namespace tutti
