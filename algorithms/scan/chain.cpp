// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Each rank folds its own to every chunk that comes and passes it on.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(64 * 1024)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  ScheduleBuilder plan(Collective::scan, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (rank == 0) {
    if (size > 1) lane.send(1, input());
    lane.copy(input(), output()).finalize();
  } else if (rank + 1 == size) {
    lane.recv_reduce(rank - 1, input(), output()).finalize();
  } else {
    plan.hold(BufferId::scratch, kWhole);
    lane.fold({message(rank - 1), input()}, {scratch(), message(rank + 1)});
    lane.copy(scratch(), output()).finalize();  // the next rank needs it as it was
  }
  return plan.take();
}

/// The first chunk pays every hop, the others follow one behind the other.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double chunk = chunk_bytes(bytes, parameters[kSegmentBytes]);
  const double chunks = chunk > 0 ? static_cast<double>(bytes) / chunk : 1;
  const double follow_ns = 3 * model.step_ns + chunk * (model.ns_per_byte + model.reduce_ns_per_byte);
  return model.step_ns + (shape.size - 1.0) * (model.latency_ns + follow_ns) + (chunks - 1) * follow_ns;
}

}  // namespace

const AlgorithmInfo kScanChain = {
    Collective::scan,
    "chain",
    "from rank to rank, chunk by chunk; every byte crosses each link once, for large data",
    "P. Sanders, J. L. Traeff: Parallel Prefix (Scan) Algorithms for MPI, EuroPVM/MPI (2006)",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered,
    cost_ns,
    build,
};

}  // namespace tutti
