// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// As pairwise exchange, but the sends run ahead: those of a window are begun before its first receive is awaited, so that their
/// latencies overlap. Every rank begins with its next, so that nobody is sent to by all at once.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes, kWindow };
constexpr ParameterInfo kParameters[] = {
    segment_bytes(0),
    {"window", 16, 1, 1024, false, "ranks sent to before the first receive is awaited"},
};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const auto window = static_cast<uint32_t>(request.parameters[kWindow]);
  ScheduleBuilder plan(Collective::alltoall, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  lane.copy(input(block_of(rank, size)), output(received_from(rank, size)));
  for (uint32_t first = 1; first < size; first += window) {
    const uint32_t end = std::min(first + window, size);
    for (uint32_t s = first; s < end; ++s) lane.send((rank + s) % size, input(block_of((rank + s) % size, size)));
    for (uint32_t s = first; s < end; ++s) {
      const uint32_t from = (rank + size - s) % size;
      lane.recv(from, output(received_from(from, size)));
    }
  }
  return plan.take();
}

/// A latency for each window.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const uint64_t window = parameters[kWindow];
  const double windows = static_cast<double>((shape.size - 1 + window - 1) / window);
  return windows * model.meeting_ns() + model.all_pairs_ns(static_cast<double>(bytes) / shape.size);
}

}  // namespace

const AlgorithmInfo kAlltoallSpreadOut = {
    Collective::alltoall,
    "spread_out",
    "as pairwise, with many exchanges under way at once; for short blocks",
    "R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in MPICH, IJHPCA 19 (2005)",
    kParameters,
    1,
    1u << 15,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
