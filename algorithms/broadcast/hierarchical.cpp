// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <optional>
#include <vector>

#include "../common/levels.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// A tree of trees: the data goes down a binomial tree of the outermost team, then each of its ranks passes it down one of the
/// team inside that it leads, and so on. Each group is entered once.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const std::vector<Level> levels = levels_of(request, 0, request.root);
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  std::optional<uint32_t> parent;  // in the outermost team that this rank is in; it leads the others
  std::vector<uint32_t> children;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    const Team& team = level->team;
    if (team.ranks.empty()) continue;
    const uint32_t number = (team.self + team.size() - level->leader) % team.size();
    const auto rank_of = [&](uint32_t n) { return team.ranks[(n + level->leader) % team.size()]; };
    const uint32_t span = number == 0 ? std::bit_ceil(team.size()) : number & (~number + 1);
    for (uint32_t bit = span / 2; bit > 0; bit /= 2) {
      if (number + bit < team.size()) children.push_back(rank_of(number + bit));
    }
    if (number != 0) parent = rank_of(number & (number - 1));
  }
  if (parent) {
    lane.forward(*parent, output(), children);
  } else {
    for (const uint32_t child : children) lane.send(child, output());
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double total_ns = model.step_ns();
  for (const LevelPrice& level : level_prices(shape, model)) {
    total_ns += std::bit_width(level.longest - 1) * level.price.one_way_ns(static_cast<double>(bytes));
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kBroadcastHierarchical = {
    Collective::broadcast,
    "hierarchical",
    "down binomial trees, between groups first, then inside each; every group is entered once",
    "T. Kielmann, R. Hofman, H. Bal, A. Plaat, R. Bhoedjang: MagPIe: MPI's collective communication operations for clustered "
    "wide "
    "area systems, PPoPP (1999)",
    kParameters,
    1,
    1u << 15,
    kNested,
    cost_ns,
    build,
};

}  // namespace tutti
