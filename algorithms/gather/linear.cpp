// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Everybody sends its block to the root, which takes them in the order of the ranks behind it.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  ScheduleBuilder plan(Collective::gather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (rank != request.root) {
    lane.send(request.root, input(block_of(rank, size)));
    return plan.take();
  }
  if (!request.in_place) lane.copy(input(block_of(rank, size)), output(block_of(rank, size)));
  for (uint32_t s = 1; s < size; ++s) {
    const uint32_t from = (rank + s) % size;
    lane.recv(from, output(block_of(from, size)));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  return star_ns(shape, bytes, model);
}

}  // namespace

const AlgorithmInfo kGatherLinear = {
    Collective::gather,
    "linear",
    "everybody sends to the root; blocks of any lengths",
    "E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience, CCPE 19 "
    "(2007)",
    kParameters,
    1,
    1u << 15,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
