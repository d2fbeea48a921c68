// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Each rank passes every chunk on to the next as soon as it has it. All links are busy at once.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(64 * 1024)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t number = (request.rank + size - request.root) % size;
  const uint32_t previous = (request.rank + size - 1) % size;
  const uint32_t next = (request.rank + 1) % size;
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  const bool last = number + 1 == size;
  if (number > 0) {
    lane.forward(previous, output(), last ? std::vector<uint32_t>{} : std::vector<uint32_t>{next});
  } else if (!last) {
    lane.send(next, output());
  }
  return plan.take();
}

/// The first chunk pays every hop, the others follow one behind the other.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const uint64_t segment_bytes = parameters[kSegmentBytes];
  const uint64_t chunk = segment_bytes == 0 ? bytes : std::min(bytes, segment_bytes);
  const double chunks = chunk == 0 ? 1 : static_cast<double>((bytes + chunk - 1) / chunk);
  const Price& alone = model.far();
  const double hop_ns = 2 * alone.message_ns + static_cast<double>(chunk) * alone.ns_per_byte;
  const double follow_ns = 2 * model.neighbour().message_ns + static_cast<double>(chunk) * model.stream_ns_per_byte(2);
  return chain_latencies_ns(model) + (shape.size - 1.0) * hop_ns + (chunks - 1) * follow_ns;
}

}  // namespace

const AlgorithmInfo kBroadcastChain = {
    Collective::broadcast,
    "chain",
    "from rank to rank, chunk by chunk; every byte crosses each link once, for large data",
    "T. Worsch, R. Reussner, W. Augustin: On Benchmarking Collective MPI Operations, EuroPVM/MPI (2002)",
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
