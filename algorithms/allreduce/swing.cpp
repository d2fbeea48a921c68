// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/doubling.hpp"
#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"

/// As by halving, but the exchanges go 1, -1, 3, -5, 11 ... ranks round the ring, one way for even ranks and the other for odd
/// ones: on a ring or torus the messages of a round cross half as many links.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

/// In round k the distance is 1 - 2 + 4 - ... of k + 1 terms: ahead for even ranks, back for odd ones.
uint32_t swing_peer(uint32_t number, uint32_t round, uint32_t rounds) {
  uint32_t distance = 0;
  for (uint32_t n = 0; n <= round; ++n) distance = n % 2 == 0 ? distance + (1u << n) : distance - (1u << n);
  return (number % 2 == 0 ? number + distance : number - distance) & ((1u << rounds) - 1);
}

Schedule build(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::allreduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (request.shape.size == 1) {
    lane.copy(input(), output()).finalize();
    return plan.take();
  }
  const Pairs pairs(request.shape.size);
  const Halving halving = halving_of_share(pairs, swing_peer);
  Piece piece{lane, whole_team(request)};
  append_halving(piece, pairs, halving);
  append_unhalving(piece, pairs, halving);
  return plan.take();
}

/// As if to the rank at distance 2^k: on nodes of several ranks a swing is as far.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return halving_ns(shape, static_cast<double>(bytes), model, Halves::there_and_back);
}

}  // namespace

const AlgorithmInfo kAllreduceSwing = {
    Collective::allreduce,
    "swing",
    "halving the vector at distance 1, -1, 3, -5 ..., and back; crosses fewer links of a torus",
    "D. De Sensi, T. Bonato, D. Saam, T. Hoefler: Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI (2024)",
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kPowerOfTwoRanks,
    cost_ns,
    build,
};

}  // namespace tutti
