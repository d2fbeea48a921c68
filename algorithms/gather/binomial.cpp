// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../common/ring_blocks.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Each rank of a binomial tree gathers the blocks of the ranks below, the nearest child's first, then sends all of them up at
/// once: in two messages where they go past the last rank.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const BlockTree tree(request);
  const uint32_t rank = request.rank;
  const Slice own = block_of(rank, tree.size);
  ScheduleBuilder plan(Collective::gather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (tree.is_leaf()) {
    lane.send(tree.parent(), input(own));
    return plan.take();
  }
  const bool is_root = tree.number == 0;
  std::optional<RingStore> store;
  if (!is_root) store.emplace(plan, rank, tree.count(tree.number, tree.span), tree.size);
  const auto place = [&](Slice blocks) { return is_root ? output(blocks) : store->place(blocks); };
  if (!is_root || !request.in_place) lane.copy(input(own), place(own));
  for (uint32_t bit = 1; bit < tree.span && tree.number + bit < tree.size; bit *= 2) {
    const uint32_t child = tree.rank_of(tree.number + bit);
    for (const Slice blocks : ring_blocks(child, tree.count(tree.number + bit, bit), tree.size)) {
      lane.then().recv(child, place(blocks));
    }
  }
  if (is_root) return plan.take();
  for (const Slice blocks : ring_blocks(rank, tree.count(tree.number, tree.span), tree.size)) {
    lane.then().send(tree.parent(), place(blocks));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return block_tree_ns(shape, bytes, model);
}

}  // namespace

const AlgorithmInfo kGatherBinomial = {
    Collective::gather,
    "binomial",
    "up a binomial tree; each rank has few neighbours, for many ranks",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    UINT32_MAX,
    kEqualBlocks,
    cost_ns,
    build,
};

}  // namespace tutti
