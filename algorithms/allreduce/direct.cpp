// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Each rank owns a part of the vector: it gets that part from all others and folds it at once, in rank order, then sends the
/// result to all.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  const uint32_t rank = request.rank;
  const Slice own = part(rank, size);
  ScheduleBuilder plan(Collective::allreduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  std::vector<Operand> sources;
  std::vector<Operand> results;
  for (uint32_t s = 1; s < size; ++s) {
    const uint32_t to = (rank + s) % size;
    lane.send(to, input(part(to, size)));
    results.push_back(message(to, own));
  }
  for (uint32_t from = 0; from < size; ++from) sources.push_back(from == rank ? input(own) : message(from, own));
  lane.fold(std::move(sources), {output(own)}).finalize();
  if (!results.empty()) lane.at(1).fold({output(own)}, std::move(results));
  for (uint32_t s = 1; s < size; ++s) {
    const uint32_t from = (rank + size - s) % size;
    lane.at(1).recv(from, output(part(from, size)));
  }
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  const double part_bytes = static_cast<double>(bytes) / shape.size;
  return 2 * (model.meeting_ns() + model.all_pairs_ns(part_bytes)) + model.all_folds_ns((shape.size - 1.0) * part_bytes);
}

}  // namespace

const AlgorithmInfo kAllreduceDirect = {
    Collective::allreduce,
    "direct",
    "every rank folds its part from all others and sends it to all; two rounds, for few ranks",
    "E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn: Collective communication: theory, practice, and experience, CCPE 19 "
    "(2007)",
    kParameters,
    1,
    kMaxRanksOfOneStep,
    kRankOrdered,
    cost_ns,
    build,
};

}  // namespace tutti
