// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Ranks are numbered from the root. In the tree a rank's parent is its number without the lowest bit set; its children add one
/// bit below that, the farthest first, as its subtree is the deepest.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t number = (request.rank + size - request.root) % size;
  const auto rank_of = [&](uint32_t n) { return static_cast<uint32_t>((uint64_t{n} + request.root) % size); };
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);

  const uint32_t span = number == 0 ? std::bit_ceil(size) : number & (~number + 1);
  std::vector<uint32_t> children;
  for (uint32_t bit = span / 2; bit > 0; bit /= 2) {
    if (number + bit < size) children.push_back(rank_of(number + bit));
  }
  if (number != 0) {
    lane.forward(rank_of(number - span), output(), children);
  } else {
    for (const uint32_t child : children) lane.send(child, output());
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double total_ns = model.step_ns();
  for (uint32_t round = 0; 1u << round < shape.size; ++round) {
    total_ns += model.tree_edge(round).one_way_ns(static_cast<double>(bytes));
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kBroadcastBinomial = {
    Collective::broadcast,
    "binomial",
    "down a binomial tree; fewest rounds, for small data",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
