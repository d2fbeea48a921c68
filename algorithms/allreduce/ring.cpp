// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "../registry.hpp"
#include "schedule/builder.hpp"

/// The buffer is cut into as many blocks as there are ranks. Reduce-scatter: in step s = 0 .. p-2 each rank sends block
/// rank - s to the next rank and folds the block that comes from the previous one, so that block b gathers its sum on the way
/// b, b+1, ..., b+p-1. Allgather: in the same direction the complete blocks go round once more. Each block is folded in one
/// place, hence the same bits everywhere.
///
/// Each lane does this for its share of every block, and chunk by chunk: step s lags s iterations behind. Inside an iteration
/// every send is followed by a receive before the next but one, so that two messages of credit suffice.
namespace tutti {
namespace {

constexpr uint64_t kMaxChannels = 16;
/// Steps are numbered with 16 bits in each Program: lanes * ranks stays below this.
constexpr uint64_t kMaxLaneRanks = 12288;

enum : size_t { kSegmentBytes, kChannels };
constexpr ParameterInfo kParameters[] = {
    {"segment_bytes", 0, 8, uint64_t{1} << 30, true, "length of a chunk; 0: as long as the transport allows"},
    {"channels", 1, 1, kMaxChannels, false, "lanes that each take a share of the buffer; fewer on more than 768 ranks"},
};

uint32_t lanes_for(const Parameters& parameters, uint32_t size) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(parameters[kChannels], 1, std::max<uint64_t>(1, kMaxLaneRanks / size)));
}

void ring(const LaneBuilder& lane, uint32_t rank, uint32_t size, uint32_t share, uint32_t shares) {
  const uint32_t next = (rank + 1) % size;
  const uint32_t previous = (rank + size - 1) % size;
  const uint32_t reduce_steps = size - 1;
  const uint32_t steps = 2 * reduce_steps;
  // The block that this rank sends in step s; it receives the one that its predecessor sends.
  const auto sent_by = [&](uint32_t who, uint32_t s) {
    return part((share * size) + (who + 2 * size - s) % size, shares * size);
  };
  const auto send = [&](uint32_t s) {
    const Slice slice = sent_by(rank, s);
    lane.at(s).send(next, s == 0 ? input(slice) : output(slice));
  };
  send(0);
  for (uint32_t s = 0; s < steps; ++s) {
    if (s + 1 < steps) send(s + 1);
    const Slice slice = sent_by(previous, s);
    if (s < reduce_steps) {
      lane.at(s).recv_reduce(previous, input(slice), output(slice)).finalize(s + 1 == reduce_steps);
    } else {
      lane.at(s).recv(previous, output(slice));
    }
  }
}

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  ScheduleBuilder plan(Collective::allreduce, request);
  if (size == 1) {
    plan.lane().copy(input(), output()).finalize();
    return plan.take();
  }
  const uint32_t lanes = lanes_for(request.parameters, size);
  for (uint32_t share = 0; share < lanes; ++share) {
    ring(plan.lane(request.parameters[kSegmentBytes]), request.rank, size, share, lanes);
  }
  return plan.take();
}

/// 2 (p-1) steps of n/p bytes each; of half of them the bytes are folded. Lanes overlap their latencies but share the wire.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double steps = shape.size - 1.0;
  const double block_bytes = static_cast<double>(bytes) / shape.size;
  const double lane_ns = lanes_for(parameters, shape.size) * model.step_ns;
  return 2 * steps * (model.latency_ns + lane_ns + block_bytes * model.ns_per_byte) +
         steps * block_bytes * model.reduce_ns_per_byte;
}

}  // namespace

const AlgorithmInfo kAllreduceRing = {
    Collective::allreduce,
    "ring",
    "reduce-scatter and allgather round a ring, chunk by chunk; moves the fewest bytes",
    "P. Patarasuk, X. Yuan: Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69 (2009)",
    kParameters,
    1,
    8192,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
