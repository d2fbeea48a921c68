// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <algorithm>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Groups of `radix` ranks exchange all they have, at distance 1, radix, radix^2 ...; each folds what it got at once. With ranks
/// that are no power of the radix, the largest power of it acts: each acting rank for some neighbours above it, as many as the
/// others or one more. So all that a rank has is of neighbouring ranks, and folds are in rank order.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes, kRadix };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"radix", 4, 2, 32, false, "ranks that exchange in a round"},
};

/// Who acts for whom.
struct Spans {
  uint32_t radix = 2;
  uint32_t acting = 1;
  uint32_t rounds = 0;
  uint32_t length = 1;  ///< of a span, ranks
  uint32_t longer = 0;  ///< the first spans, one rank longer

  uint32_t first_of(uint32_t number) const { return number * length + std::min(number, longer); }
  uint32_t number_of(uint32_t rank) const {
    const uint32_t border = longer * (length + 1);
    return rank < border ? rank / (length + 1) : longer + (rank - border) / length;
  }
};

Spans spans_of(uint32_t size, const Parameters& parameters) {
  Spans spans;
  spans.radix = static_cast<uint32_t>(parameters[kRadix]);
  while (uint64_t{spans.acting} * spans.radix <= size) {
    spans.acting *= spans.radix;
    ++spans.rounds;
  }
  spans.length = size / spans.acting;
  spans.longer = size % spans.acting;
  return spans;
}

Schedule build(const PlanRequest& request) {
  const Spans spans = spans_of(request.shape.size, request.parameters);
  const uint32_t number = spans.number_of(request.rank);
  const uint32_t first = spans.first_of(number);
  const uint32_t end = spans.first_of(number + 1);
  ScheduleBuilder plan(Collective::allreduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (request.rank != first) {
    lane.send(first, input());
    lane.at(spans.rounds + 1).recv(first, output());
    return plan.take();
  }
  Operand mine = input();
  uint32_t lag = 0;
  if (spans.acting < request.shape.size) {
    std::vector<Operand> sources = {input()};
    for (uint32_t rank = first + 1; rank < end; ++rank) sources.push_back(message(rank));
    if (sources.size() > 1 || spans.rounds == 0) {
      lane.fold(std::move(sources), {output()}).finalize(spans.rounds == 0);
      mine = output();
    }
    ++lag;
  } else if (spans.rounds == 0) {
    lane.copy(input(), output()).finalize();
  }
  uint32_t distance = 1;
  for (uint32_t round = 0; round < spans.rounds; ++round, ++lag, distance *= spans.radix) {
    const uint32_t lowest = number - number / distance % spans.radix * distance;
    std::vector<Operand> sources;
    std::vector<Operand> destinations;
    for (uint32_t n = 0; n < spans.radix; ++n) {
      const uint32_t rank = spans.first_of(lowest + n * distance);
      sources.push_back(rank == request.rank ? mine : message(rank));
      if (rank != request.rank) destinations.push_back(message(rank));
    }
    lane.at(lag).fold({mine}, std::move(destinations));
    lane.at(lag).fold(std::move(sources), {output()}).finalize(round + 1 == spans.rounds);
    mine = output();
  }
  if (first + 1 < end) {
    std::vector<Operand> neighbours;
    for (uint32_t rank = first + 1; rank < end; ++rank) neighbours.push_back(message(rank));
    lane.at(spans.rounds + 1).fold({output()}, std::move(neighbours));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const Spans spans = spans_of(shape.size, parameters);
  const double neighbours = spans.length - 1.0 + (spans.longer > 0 ? 1 : 0);
  const auto n = static_cast<double>(bytes);
  double total_ns = model.step_ns();
  double distance = spans.length;
  for (uint32_t round = 0; round < spans.rounds; ++round, distance *= spans.radix) {
    const Price price = model.exchange_of(spans.acting, static_cast<uint32_t>(std::log2(distance)));
    total_ns += price.latency_ns + (spans.radix - 1.0) * (price.each_exchange_ns(n) + price.fold_ns(n));
  }
  if (neighbours == 0) return total_ns;
  const Price price = model.tree_edge(0);
  const double passed_ns = 2 * (price.message_ns + n * price.ns_per_byte);
  return total_ns + 2 * (price.latency_ns + price.message_ns) + neighbours * (passed_ns + price.fold_ns(n));
}

}  // namespace

const AlgorithmInfo kAllreduceRecursiveMultiplying = {
    Collective::allreduce,
    "recursive_multiplying",
    "groups of `radix` ranks exchange at distance 1, radix, radix^2 ...; fewer rounds than by doubling",
    "A. Ruefenacht, M. Bull, S. Booth: Generalisation of recursive doubling for AllReduce, Parallel Computing 69 (2017)",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered,
    cost_ns,
    build,
};

}  // namespace tutti
