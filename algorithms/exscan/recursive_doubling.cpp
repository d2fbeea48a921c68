// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// After k rounds each rank has two folds: over the 2^k - 1 ranks before it, and over these and itself. In the next it gives the
/// second to the rank at distance 2^k, and folds what comes from the other side before both.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const auto rounds = static_cast<uint32_t>(std::bit_width(size - 1));
  ScheduleBuilder plan(Collective::exscan, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  Operand mine = input();
  for (uint32_t round = 0; round < rounds; ++round) {
    const LaneBuilder now = lane.at(round);
    const uint32_t distance = 1u << round;
    if (distance < size - rank) now.send(rank + distance, mine);
    if (distance > rank) continue;
    plan.hold(BufferId::scratch, kWhole);
    plan.hold(BufferId::scratch_b, kWhole);
    // What came is in both: all before this rank, and what it will give.
    if (round == 0) {
      now.recv(rank - 1, scratch_b());
      now.fold({scratch_b(), input()}, {scratch()});
    } else {
      plan.hold(BufferId::scratch_c, kWhole);
      now.recv(rank - distance, scratch_c());
      now.fold({scratch_c(), scratch()}, {scratch()});
      now.fold({scratch_c(), scratch_b()}, {scratch_b()});
    }
    mine = scratch();
  }
  if (rank > 0) lane.at(rounds).copy(scratch_b(), output()).finalize();
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  double total_ns = model.step_ns();
  for (uint32_t round = 0; 1u << round < shape.size; ++round) {
    const Price price = model.exchange(round);
    const auto n = static_cast<double>(bytes);
    total_ns += price.exchange_ns(n) + 2 * model.step_ns() + 2 * price.fold_ns(n);
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kExscanRecursiveDoubling = {
    Collective::exscan,
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
