// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Ranks are numbered from the root. In the tree a rank's parent is its number without the lowest bit set, and the numbers below
/// it are those up to its own plus that bit. The blocks of the farthest child come first, as its subtree is the deepest; its own
/// comes last. Blocks travel one by one, so that a rank in between passes each on, chunk by chunk, without a buffer for all of
/// them.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t number = (request.rank + size - request.root) % size;
  const auto rank_of = [&](uint32_t n) { return static_cast<uint32_t>((uint64_t{n} + request.root) % size); };
  const auto block = [&](uint32_t n) { return block_of(rank_of(n), size); };
  ScheduleBuilder plan(Collective::scatter, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);

  const uint32_t span = number == 0 ? std::bit_ceil(size) : number & (~number + 1);
  const uint32_t parent = rank_of(number - (number == 0 ? 0 : span));
  const auto source = [&](uint32_t n) { return number == 0 ? input(block(n)) : message(parent, block(n)); };
  // Downwards, number by number: a child gets its blocks in the order in which it passes them on.
  for (uint32_t n = std::min(number + span, size) - 1; n > number; --n) {
    const uint32_t child = number + std::bit_floor(n - number);
    lane.fold({source(n)}, {message(rank_of(child), block(n))});
  }
  if (number != 0 || !request.in_place) lane.copy(source(number), output(block(number)));
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return block_tree_ns(shape, bytes, model);
}

}  // namespace

const AlgorithmInfo kScatterBinomial = {
    Collective::scatter,
    "binomial",
    "down a binomial tree; each rank has few neighbours, for many ranks",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    1u << 15,
    kEqualBlocks,
    cost_ns,
    build,
};

}  // namespace tutti
