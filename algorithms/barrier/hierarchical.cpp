// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include "../registry.hpp"
#include "../teams.hpp"
#include "schedule/builder.hpp"

/// The ranks of a team signal their leader, level by level from the inside; the outermost team has a dissemination barrier; then
/// leaders release their teams on the way back.
namespace tutti {
namespace {

Schedule build(const PlanRequest& request) {
  const std::vector<std::vector<uint32_t>> teams = teams_of(request.shape, request.rank, 0);
  ScheduleBuilder plan(Collective::barrier, request);
  if (request.shape.size == 1) return plan.take();
  const LaneBuilder lane = plan.lane();
  const size_t outermost = request.shape.group_of.size();
  const size_t last = teams.size() - 1;
  for (size_t level = 0; level < last; ++level) {
    for (size_t n = 1; n < teams[level].size(); ++n) lane.await_signal(teams[level][n]);
  }
  if (last == outermost) {
    const std::vector<uint32_t>& team = teams[last];
    const size_t place = place_in(team, request.rank);
    for (size_t distance = 1; distance < team.size(); distance *= 2) {
      lane.signal(team[(place + distance) % team.size()]);
      lane.await_signal(team[(place + team.size() - distance) % team.size()]);
    }
  } else {
    lane.signal(teams[last][0]);
    lane.await_signal(teams[last][0]);
  }
  for (size_t level = last; level-- > 0;) {
    for (size_t n = 1; n < teams[level].size(); ++n) lane.signal(teams[level][n]);
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t, const Parameters&, const CostModel& model) {
  const std::vector<uint32_t> sizes = largest_teams(shape);
  double total = std::bit_width(sizes.back() - 1) * (model.latency_ns + 2 * model.step_ns);
  for (size_t level = 0; level + 1 < sizes.size(); ++level) {
    if (sizes[level] > 1) total += 2 * (model.latency_ns + model.step_ns * sizes[level]);
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
