// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Ranks are numbered from the root, in digits to the base k. A rank's parent is its number without the lowest digit that is not
/// 0; its children have one more digit below that, the farthest first, as their subtrees are the deepest.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes, kRadix };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"radix", 4, 2, 8, false, "the base k: a rank that has the data gives it to k - 1 others a round"},
};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint64_t radix = request.parameters[kRadix];
  const uint32_t number = (request.rank + size - request.root) % size;
  const auto rank_of = [&](uint64_t n) { return static_cast<uint32_t>((n + request.root) % size); };
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);

  uint64_t span = 1;  // of the lowest digit that is not 0; beyond all of the root's
  while (span < size && number / span % radix == 0) span *= radix;
  std::vector<uint32_t> children;
  for (uint64_t place = span / radix; place > 0; place /= radix) {
    for (uint64_t digit = 1; digit < radix && number + digit * place < size; ++digit) {
      children.push_back(rank_of(number + digit * place));
    }
  }
  if (number != 0) {
    lane.forward(rank_of(number - number / span % radix * span), output(), children);
  } else {
    for (const uint32_t child : children) lane.send(child, output());
  }
  return plan.take();
}

/// The last of a round's messages leaves behind the others.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double others = static_cast<double>(parameters[kRadix]) - 1;
  double total_ns = model.step_ns();
  uint32_t round = 0;
  for (uint64_t place = 1; place < shape.size; place *= parameters[kRadix]) {
    while (uint64_t{2} << round <= place) ++round;
    const Price price = model.tree_edge(round);
    total_ns +=
        price.latency_ns + price.message_ns + others * (price.message_ns + static_cast<double>(bytes) * price.ns_per_byte);
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kBroadcastKnomial = {
    Collective::broadcast,
    "knomial",
    "down a tree of base k: fewer rounds than a binomial one, more messages in each",
    "M. Wilkins, H. Wang, P. Liu, B. Pham, Y. Guo, R. Thakur, P. Dinda, N. Hardavellas: Generalized Collective Algorithms for "
    "the "
    "Exascale Era, IEEE CLUSTER (2023)",
    kParameters,
    1,
    1u << 21,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
