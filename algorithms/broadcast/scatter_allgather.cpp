// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <vector>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Ranks are numbered from the root, and the vector has a part for each. The parts are scattered down a binomial tree, each rank
/// keeping those of the numbers below it; then they go round a ring, but for those that a rank has already. Part by part: each is
/// passed on chunk by chunk as it came.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

/// The numbers [n, end_below(n)) are those of the subtree of n.
uint32_t end_below(uint32_t n, uint32_t size) { return n == 0 ? size : std::min(n + (n & (~n + 1)), size); }

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t number = (request.rank + size - request.root) % size;
  const auto rank_of = [&](uint32_t n) { return static_cast<uint32_t>((uint64_t{n} + request.root) % size); };
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);

  const uint32_t parent = number & (number - 1);
  for (uint32_t n = end_below(number, size); n-- > number;) {
    const bool mine = n == number;
    const uint32_t child = mine ? number : number + std::bit_floor(n - number);
    if (number != 0) {
      lane.forward(rank_of(parent), output(part(n, size)),
                   mine ? std::vector<uint32_t>{} : std::vector<uint32_t>{rank_of(child)});
    } else if (!mine) {
      lane.send(rank_of(child), output(part(n, size)));
    }
  }

  const auto has = [&](uint32_t of, uint32_t n) { return n >= of && n < end_below(of, size); };
  const uint32_t next = (number + 1) % size;
  for (uint32_t s = 0; s + 1 < size; ++s) {
    const uint32_t sent = (number + size - s) % size;
    const uint32_t received = (sent + size - 1) % size;
    if (!has(next, sent)) lane.at(s).send(rank_of(next), output(part(sent, size)));
    if (!has(number, received)) lane.at(s).recv(rank_of((number + size - 1) % size), output(part(received, size)));
  }
  return plan.take();
}

/// The root sends all but its part, then the ring moves as much again.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const double rounds = std::bit_width(shape.size - 1);
  const double part_bytes = static_cast<double>(bytes) / shape.size;
  return rounds * model.meeting_ns() + model.star_ns(part_bytes) + (shape.size - 1.0) * model.neighbour().exchange_ns(part_bytes);
}

}  // namespace

const AlgorithmInfo kBroadcastScatterAllgather = {
    Collective::broadcast,
    "scatter_allgather",
    "scatters parts down a binomial tree, then passes them round a ring; for large data",
    "M. Barnett, L. Shuler, R. van de Geijn, S. Gupta, D. Payne, J. Watts: Interprocessor Collective Communication Library "
    "(InterCom), SHPCC (1994)",
    kParameters,
    1,
    1u << 14,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
