// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/doubling.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// In round k each rank exchanges with the one at distance 2^k and goes on with the half of the blocks that it will own. Where
/// the ranks are no power of two, the first pairs of neighbours act as one, for the blocks of both; who did not act gets its
/// block in the end.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  ScheduleBuilder plan(Collective::reduce_scatter, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  const Slice own = block_of(rank, size);
  if (size == 1) {
    lane.copy(input(own), output(own)).finalize();
    return plan.take();
  }
  Piece piece{lane, whole_team(request), {}};
  for (uint32_t owner = 0; owner < size; ++owner) piece.units.push_back(block_of(owner, size));
  piece.partial = BufferId::scratch;
  piece.result = [=](Slice block) { return block == own ? output(own) : message(rank ^ 1, block); };
  const Pairs pairs(size);
  append_pairing(piece, pairs);
  if (!pairs.acts(rank)) {
    lane.at(piece.lag + pairs.rounds()).recv(rank ^ 1, output(own));
    return plan.take();
  }
  plan.hold(BufferId::scratch, blocks_of(0, size, size));
  append_halving(piece, pairs, cube_peer);
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  if (shape.size == 1) return model.step_ns;
  const Pairs pairs(shape.size);
  const double extra = pairs.extra() > 0 ? 1 : 0;
  const auto n = static_cast<double>(bytes);
  // An acting rank may have two blocks for each of another.
  const double moved = n * (1 - (1 + extra) / shape.size) + extra * n * (1 + 1.0 / shape.size);
  const double messages = (1 + extra) * (shape.size - 1.0);
  return (pairs.rounds() + 2 * extra) * model.latency_ns + 2 * messages * model.step_ns + moved * model.ns_per_byte +
         moved * model.reduce_ns_per_byte;
}

}  // namespace

const AlgorithmInfo kReduceScatterHalving = {
    Collective::reduce_scatter,
    "halving",
    "exchange at distance 1, 2, 4 ... with half as many blocks each time; fewest rounds and bytes",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kRankOrdered | kCanonical,
    cost_ns,
    build,
};

}  // namespace tutti
