// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In round k every rank signals the one 2^k ahead and waits for the one 2^k behind; after round k it has heard, directly or not,
/// of the 2^(k+1) - 1 ranks behind it.
namespace tutti {
namespace {

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  ScheduleBuilder plan(Collective::barrier, request);
  if (size == 1) return plan.take();
  const LaneBuilder lane = plan.lane();
  for (uint64_t distance = 1; distance < size; distance *= 2) {
    lane.signal(static_cast<uint32_t>((request.rank + distance) % size));
    lane.await_signal(static_cast<uint32_t>((request.rank + size - distance) % size));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t, const Parameters&, const CostModel& model) {
  return std::bit_width(shape.size - 1) * (model.latency_ns + 2 * model.step_ns);
}

}  // namespace

const AlgorithmInfo kBarrierDissemination = {
    Collective::barrier,
    "dissemination",
    "signals at distance 1, 2, 4 ...",
    "D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization, IJPP 17 (1988)",
    {},
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
