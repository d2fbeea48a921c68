// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include "../registry.hpp"
#include "../teams.hpp"
#include "schedule/builder.hpp"

/// A tree of trees: the data goes down a binomial tree of the outermost team, then each of its ranks passes it down one of the
/// team inside that it leads, and so on. Each group is entered once.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {
    {"segment_bytes", 0, 8, uint64_t{1} << 30, true, "length of a chunk; 0: as long as the transport allows"},
};

Schedule build(const PlanRequest& request) {
  const std::vector<std::vector<uint32_t>> teams = teams_of(request.shape, request.rank, request.root);
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  std::vector<uint32_t> children;
  for (auto team = teams.rbegin(); team != teams.rend(); ++team) {
    const auto size = static_cast<uint32_t>(team->size());
    const uint32_t place = place_in(*team, request.rank);
    const uint32_t span = place == 0 ? std::bit_ceil(size) : place & (~place + 1);
    for (uint32_t bit = span / 2; bit > 0; bit /= 2) {
      if (place + bit < size) children.push_back((*team)[place + bit]);
    }
  }
  const uint32_t place = place_in(teams.back(), request.rank);
  if (place != 0) {
    lane.forward(teams.back()[place & (place - 1)], output(), children);
  } else {
    for (const uint32_t child : children) lane.send(child, output());
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double rounds = 0;
  for (const uint32_t size : largest_teams(shape)) rounds += std::bit_width(size - 1);
  return rounds * (model.latency_ns + 2 * model.step_ns + static_cast<double>(bytes) * model.ns_per_byte);
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
