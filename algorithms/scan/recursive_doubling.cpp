// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// After k rounds each rank has the fold over itself and the 2^k - 1 ranks before it; in the next it gives that to the rank at
/// distance 2^k, and folds what comes from the other side before it.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const auto rounds = static_cast<uint32_t>(std::bit_width(size - 1));
  ScheduleBuilder plan(Collective::scan, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  Operand mine = input();
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t distance = 1u << round;
    if (distance < size - rank) lane.at(round).send(rank + distance, mine);
    if (distance > rank) continue;
    plan.hold(BufferId::scratch, kWhole);
    lane.at(round).recv_reduce(rank - distance, mine, scratch());
    mine = scratch();
  }
  // Others need the partial results as they are: `avg` divides the own one only.
  lane.at(rounds).copy(mine, output()).finalize();
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double total_ns = model.step_ns();
  for (uint32_t round = 0; 1u << round < shape.size; ++round) {
    const Price price = model.exchange(round);
    total_ns += price.exchange_ns(static_cast<double>(bytes)) + price.fold_ns(static_cast<double>(bytes));
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kScanRecursiveDoubling = {
    Collective::scan,
    "recursive_doubling",
    "each rank gives what it has to the rank at distance 1, 2, 4 ... above; fewest rounds, for small data",
    "W. D. Hillis, G. L. Steele: Data parallel algorithms, CACM 29 (1986)",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered,
    cost_ns,
    build,
};

}  // namespace tutti
