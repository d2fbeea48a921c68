// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/verify.hpp"

namespace tutti::jobs {

/// The schedules of `size` ranks, each written by `write`, with a vector of scratch.
inline std::vector<Schedule> job(Collective collective, uint32_t size,
                                 const std::function<void(ScheduleBuilder& plan, uint32_t rank)>& write) {
  std::vector<Schedule> schedules;
  for (uint32_t rank = 0; rank < size; ++rank) {
    PlanRequest request;
    request.shape = Shape::flat(size);
    request.rank = rank;
    ScheduleBuilder plan(collective, request);
    plan.hold(BufferId::scratch, kWhole);
    write(plan, rank);
    schedules.push_back(plan.take());
  }
  return schedules;
}

/// Of a registered algorithm, with the default parameters.
inline std::vector<Schedule> job(const AlgorithmInfo& algorithm, uint32_t size, uint32_t root = 0) {
  std::vector<Schedule> schedules;
  for (uint32_t rank = 0; rank < size; ++rank) {
    PlanRequest request;
    request.shape = Shape::flat(size);
    request.rank = rank;
    request.root = root;
    for (const ParameterInfo& info : algorithm.parameters) request.parameters.push_back(info.default_value);
    schedules.push_back(algorithm.build(request));
  }
  return schedules;
}

inline Call call(uint64_t count, bool in_place = false) {
  Call call;
  call.count = count;
  call.in_place = in_place;
  return call;
}

/// What the verifier says; "" when it has no objection.
template <class Job>
std::string fault(const std::vector<Job>& job, const Call& call) {
  return std::string(verify(std::span<const Job>(job), call).message());
}

}  // namespace tutti::jobs
