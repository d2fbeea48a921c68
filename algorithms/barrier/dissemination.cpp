// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "../registry.hpp"
#include "schedule/builder.hpp"

/// In a round every rank signals those 1, 2 ... radix - 1 distances ahead and waits for those as far behind; the distance then
/// grows by the radix. A rank that had heard of the d - 1 ranks behind it has then heard, directly or not, of radix * d - 1.
namespace tutti {
namespace {

enum : size_t { kRadix };
constexpr ParameterInfo kParameters[] = {
    {"radix", 4, 2, 64, false, "1 + signals of a rank in one round"},
};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint64_t radix = request.parameters[kRadix];
  ScheduleBuilder plan(Collective::barrier, request);
  if (size == 1) return plan.take();
  const LaneBuilder lane = plan.lane();
  for (uint64_t distance = 1; distance < size; distance *= radix) {
    const uint64_t end = std::min<uint64_t>(distance * radix, size);
    for (uint64_t d = distance; d < end; d += distance) lane.signal(static_cast<uint32_t>((request.rank + d) % size));
    for (uint64_t d = distance; d < end; d += distance)
      lane.await_signal(static_cast<uint32_t>((request.rank + size - d) % size));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t, const Parameters& parameters, const CostModel& model) {
  const uint64_t radix = parameters[kRadix];
  double total = 0;
  for (uint64_t distance = 1; distance < shape.size; distance *= radix) {
    const uint64_t signals = std::min(radix - 1, (shape.size - 1) / distance);
    const Price price = model.exchange(static_cast<uint32_t>(std::bit_width(distance) - 1));
    total += price.latency_ns + 2 * price.message_ns * static_cast<double>(signals);
  }
  return total;
}

}  // namespace

const AlgorithmInfo kBarrierDissemination = {
    Collective::barrier,
    "dissemination",
    "signals at distance 1, 2, 4 ... (radix 2)",
    "D. Hensgen, R. Finkel, U. Manber: Two algorithms for barrier synchronization, IJPP 17 (1988)",
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
