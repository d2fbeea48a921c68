// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In round k each rank exchanges its whole partial result with the rank at distance 2^k and folds the two. With p = 2^m + extra
/// ranks, the first 2 * extra of them pair up before: the even one of each pair gives its contribution to the odd one and gets
/// the result after the last round. So every partial result covers neighbouring ranks, and as the lower ranks' operand is always
/// the first, both partners fold the same expression: the same bits everywhere, in rank order.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  ScheduleBuilder plan(Collective::allreduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (size == 1) {
    lane.copy(input(), output()).finalize();
    return plan.take();
  }
  const uint32_t active = std::bit_floor(size);
  const uint32_t extra = size - active;
  const auto rounds = static_cast<uint32_t>(std::countr_zero(active));
  const bool paired = rank < 2 * extra;
  if (paired && rank % 2 == 0) {
    lane.send(rank + 1, input());
    lane.at(rounds + 1).recv(rank + 1, output());
    return plan.take();
  }
  // Steps of this rank lag one iteration a round; without extra ranks the first round starts at once.
  const uint32_t first_lag = extra > 0 ? 1 : 0;
  if (paired) lane.recv_reduce(rank - 1, input(), output());
  const uint32_t number = paired ? rank / 2 : rank - extra;  // among the active ranks
  const auto rank_of = [&](uint32_t n) { return n < extra ? 2 * n + 1 : n + extra; };
  Operand mine = paired ? output() : input();
  for (uint32_t round = 0; round < rounds; ++round) {
    const uint32_t partner = rank_of(number ^ (1u << round));
    const LaneBuilder now = lane.at(first_lag + round);
    now.send(partner, mine);
    const bool mine_first = rank < partner;
    now.fold({mine_first ? mine : message(partner), mine_first ? message(partner) : mine}, {output()})
        .finalize(round + 1 == rounds);
    mine = output();
  }
  if (paired) lane.at(rounds + 1).send(rank - 1, output());
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const Pairs pairs(shape.size);
  const double vector_bytes = static_cast<double>(bytes);
  double total_ns = model.step_ns();
  for (uint32_t round = 0; round < pairs.rounds(); ++round) {
    const Price price = model.exchange_of(pairs.active(), round);
    total_ns += price.exchange_ns(vector_bytes) + price.fold_ns(vector_bytes);
  }
  if (pairs.extra() == 0) return total_ns;
  return total_ns + 2 * model.tree_edge(0).one_way_ns(vector_bytes) + model.tree_edge(0).fold_ns(vector_bytes);
}

}  // namespace

const AlgorithmInfo kAllreduceRecursiveDoubling = {
    Collective::allreduce,
    "recursive_doubling",
    "exchange and fold with the rank at distance 1, 2, 4 ...; fewest rounds, for small data",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered | kCanonical,
    cost_ns,
    build,
};

}  // namespace tutti
