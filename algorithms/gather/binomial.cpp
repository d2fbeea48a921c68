// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Ranks are numbered from the root. In the tree a rank's parent is its number without the lowest bit set, and the numbers below
/// it are those up to its own plus that bit. It sends up its own block, then those of its children, the nearest child first.
/// Blocks travel one by one, so that a rank in between passes each on, chunk by chunk, without a buffer for all of them.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t number = (request.rank + size - request.root) % size;
  const auto rank_of = [&](uint32_t n) { return static_cast<uint32_t>((uint64_t{n} + request.root) % size); };
  const auto block = [&](uint32_t n) { return block_of(rank_of(n), size); };
  ScheduleBuilder plan(Collective::gather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);

  const uint32_t span = number == 0 ? std::bit_ceil(size) : number & (~number + 1);
  const uint32_t parent = rank_of(number - (number == 0 ? 0 : span));
  if (number != 0) {
    lane.send(parent, input(block(number)));
  } else if (!request.in_place) {
    lane.copy(input(block(0)), output(block(0)));
  }
  for (uint32_t bit = 1; bit < span && number + bit < size; bit *= 2) {
    const uint32_t end = std::min(number + 2 * bit, size);
    for (uint32_t n = number + bit; n < end; ++n) {
      const Operand to = number == 0 ? output(block(n)) : message(parent, block(n));
      lane.fold({message(rank_of(number + bit), block(n))}, {to});
    }
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
    1u << 15,
    kEqualBlocks,
    cost_ns,
    build,
};

}  // namespace tutti
