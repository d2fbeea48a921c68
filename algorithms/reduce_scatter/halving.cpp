// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/doubling.hpp"
#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// In each round a rank exchanges with a peer and goes on with the half of the blocks that it will own. Where the ranks are no
/// power of two, the first pairs of neighbours act as one, for the blocks of both; who did not act gets its block in the end.
///
/// With the farthest peer first, what is kept are blocks of neighbours: a round is one message. With the nearest first, folds are
/// in rank order, but what is kept lies scattered, block by block.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

/// The blocks of the ranks that the number stands for, each a slice.
void append_blocks(const Pairs& pairs, uint32_t number, uint32_t size, std::vector<Slice>& slices) {
  const uint32_t rank = pairs.rank_of(number);
  if (pairs.paired(rank)) slices.push_back(block_of(rank - 1, size));
  slices.push_back(block_of(rank, size));
}

Halving far_halving(const Pairs& pairs, uint32_t size) {
  return {far_first, [=](uint32_t number, uint32_t round) {
            std::vector<Slice> slices;
            if (round == pairs.rounds()) {
              append_blocks(pairs, number, size, slices);
              return slices;
            }
            const uint32_t length = pairs.active() >> round;
            const uint32_t first = number / length * length;
            const uint32_t first_rank = pairs.rank_of(first) - (pairs.paired(pairs.rank_of(first)) ? 1 : 0);
            slices.push_back(blocks_of(first_rank, pairs.rank_of(first + length - 1) + 1, size));
            return slices;
          }};
}

Halving near_halving(const Pairs& pairs, uint32_t size) {
  return {near_first, [=](uint32_t number, uint32_t round) {
            std::vector<Slice> slices;
            for (const uint32_t kept : kept_after(number, round, pairs.rounds(), near_first)) {
              append_blocks(pairs, kept, size, slices);
            }
            return slices;
          }};
}

Schedule build(const PlanRequest& request, Halving (*make_halving)(const Pairs& pairs, uint32_t size)) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  ScheduleBuilder plan(Collective::reduce_scatter, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  const Slice own = block_of(rank, size);
  if (size == 1) {
    lane.copy(input(own), output(own)).finalize();
    return plan.take();
  }
  Piece piece{lane, whole_team(request), blocks_of(0, size, size)};
  piece.partial = BufferId::scratch;
  piece.result = [=](Slice block) { return block == own ? output(own) : message(rank ^ 1, block); };
  const Pairs pairs(size);
  append_pairing(piece, pairs);
  if (!pairs.acts(rank)) {
    lane.then().recv(rank ^ 1, output(own));
    return plan.take();
  }
  plan.hold(BufferId::scratch, blocks_of(0, size, size));
  append_halving(piece, pairs, make_halving(pairs, size));
  return plan.take();
}

Schedule build_far(const PlanRequest& request) { return build(request, far_halving); }
Schedule build_near(const PlanRequest& request) { return build(request, near_halving); }

double cost_far(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return halving_ns(shape, static_cast<double>(bytes), model, Halves::far_first);
}

/// Block by block.
double cost_near(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const Pairs pairs(shape.size);
  const double more_messages = std::max(0.0, shape.size - 1.0 - pairs.rounds());
  return halving_ns(shape, static_cast<double>(bytes), model, Halves::there) + 2 * more_messages * model.far().message_ns;
}

constexpr std::string_view kSource =
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)";

}  // namespace

const AlgorithmInfo kReduceScatterHalving = {
    Collective::reduce_scatter,
    "halving",
    "exchange at distance p/2 ... 2, 1 with half as many blocks each time; fewest rounds and bytes",
    kSource,
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_far,
    build_far,
};

const AlgorithmInfo kReduceScatterHalvingOrdered = {
    Collective::reduce_scatter,
    "halving_ordered",
    "exchange at distance 1, 2, 4 ..., block by block: in rank order and deterministic",
    kSource,
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kRankOrdered | kCanonical,
    cost_near,
    build_near,
};

}  // namespace tutti
