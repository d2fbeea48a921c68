// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <latch>
#include <system_error>
#include <thread>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {

Communicators::Communicators(const Options& options, const Member& member)
    : each_(options.communicators), owned_(options.parallel > 1 || options.communicators > 1) {
  const uint64_t wanted = uint64_t{options.parallel} * options.communicators;
  if (!owned_) comms_.push_back(member.comm);
  while (comms_.size() < wanted) {
    tutti_comm_t comm = nullptr;
    require(tutti_comm_split(member.comm, 0, static_cast<int>(member.rank), &comm), "splitting off a communicator");
    comms_.push_back(comm);
  }
}

Communicators::~Communicators() {
  if (!owned_) return;
  for (const tutti_comm_t comm : comms_) tutti_comm_destroy(comm);
}

std::vector<tutti_comm_t> Communicators::of_thread(uint32_t thread) const {
  const auto first = comms_.begin() + static_cast<ptrdiff_t>(thread) * each_;
  return {first, first + each_};
}

Team::Team(const Options& options, const Member& member, const Communicators& communicators, const Series& series,
           const std::vector<Workload>& work)
    : options_(options), member_(member) {
  call_.collective = series.collective;
  call_.dtype = series.dtype;
  call_.op = call_.library_op = series.op;
  call_.element_bytes = info(series.dtype).size_bytes;
  call_.rank_count = member.size;
  call_.rank = member.rank;
  call_.mode = options.mode;
  if (series.op == kScaledSum) {
    require(tutti_op_create_scaled_sum(scale_factor(member.rank), &call_.library_op), "the scaled sum");
    owns_op_ = true;
  }
  CheckCase wanted;
  wanted.pattern = traits(series.collective).reduces ? Pattern::reduce : Pattern::copy;
  wanted.dtype = series.dtype;
  wanted.op = series.op;
  wanted.rank_count = member.size;
  wanted.rank = member.rank;
  if (series.collective == Collective::scan) wanted.contributors = member.rank + 1;
  if (series.collective == Collective::exscan) wanted.contributors = member.rank;  // of rank 0 nothing is judged
  wanted.longest = capacity_of(options, series, work, member.size, member.rank).longest;
  data_ = make_test_data(wanted);
  for (uint32_t thread = 0; thread < options.parallel; ++thread) {
    workers_.push_back(std::make_unique<Worker>(options, series, call_, communicators.of_thread(thread), *data_, work));
  }
}

Team::~Team() {
  workers_.clear();
  if (owns_op_) tutti_op_destroy(call_.library_op);
}

/// Each worker on a thread of its own, or the only one on this. All start together.
void Team::for_all(const std::function<void(Worker&, size_t)>& body) {
  if (workers_.size() == 1) {
    body(*workers_[0], 0);
    return;
  }
  std::latch together(static_cast<ptrdiff_t>(workers_.size()));
  std::vector<std::exception_ptr> problems(workers_.size());
  std::vector<std::thread> running;
  running.reserve(workers_.size());
  std::string missing;
  try {
    for (size_t thread = 0; thread < workers_.size(); ++thread) {
      running.emplace_back([&, thread] {
        together.arrive_and_wait();
        try {
          body(*workers_[thread], thread);
        } catch (...) {
          problems[thread] = std::current_exception();
          tutti_comm_abort(member_.comm);  // the other ranks will not wait for this one
        }
      });
    }
  } catch (const std::system_error& problem) {
    missing = fmt::format("cannot start {} threads: {}", workers_.size(), problem.what());
    tutti_comm_abort(member_.comm);
    together.count_down(static_cast<ptrdiff_t>(workers_.size() - running.size()));
  }
  for (std::thread& thread : running) thread.join();
  if (!missing.empty()) throw RunError(missing);
  for (const std::exception_ptr& problem : problems) {
    if (problem) std::rethrow_exception(problem);
  }
}

void Team::largest(double* values, uint64_t count) {
  require(tutti_allreduce(member_.comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT64, TUTTI_MAX), "collecting the times");
}

/// The longest times of all threads of all ranks.
Timing Team::time(uint64_t iterations, const Computation* computation) {
  std::vector<Timing> each(workers_.size());
  for_all([&](Worker& worker, size_t thread) { each[thread] = worker.time(iterations, computation); });
  std::array<double, 3> times = {0, 0, 0};
  for (const Timing& one : each) {
    times = {std::max(times[0], one.mean_us), std::max(times[1], one.p50_us), std::max(times[2], one.p99_us)};
  }
  largest(times.data(), times.size());
  Timing timing;
  timing.iterations = iterations;
  timing.mean_us = times[0];
  timing.p50_us = times[1];
  timing.p99_us = times[2];
  return timing;
}

/// The same number on all ranks.
uint64_t Team::iterations() {
  if (options_.iterations != 0) return options_.iterations;
  const double estimate_us = time(2, nullptr).mean_us * static_cast<double>(workers_[0]->calls_in_iteration());
  const double fitting = static_cast<double>(kAutoTimeMs) * 1000.0 / std::max(estimate_us, 0.01);
  return std::clamp(static_cast<uint64_t>(fitting), kAutoMinIterations, kAutoMaxIterations);
}

/// As the benchmarks of MPI do it: the computation takes as long as the communication alone did.
void Team::measure_overlap(Timing& timing) {
  const auto calls = static_cast<double>(workers_[0]->calls_in_iteration());
  const Computation computation = Computation::lasting(timing.mean_us * calls);
  std::vector<double> alone_us(workers_.size());
  for_all([&](Worker& worker, size_t thread) { alone_us[thread] = worker.time_computation(timing.iterations, computation); });
  timing.compute_us = *std::max_element(alone_us.begin(), alone_us.end()) / calls;
  largest(&timing.compute_us, 1);
  timing.overall_us = time(timing.iterations, &computation).mean_us;
  timing.overlap_percent = overlap_percent(timing.mean_us, timing.compute_us, timing.overall_us);
}

Timing Team::measure(const Workload& work, bool in_place) {
  for_all([&](Worker& worker, size_t) {
    worker.set_up(work, in_place);
    worker.warm_up(options_.warm_up);
  });
  Timing timing = time(iterations(), nullptr);
  if (options_.overlap) measure_overlap(timing);
  std::vector<uint64_t> wrong(workers_.size());
  for (uint64_t run = 0; run < options_.check_runs; ++run) {
    for_all([&](Worker& worker, size_t thread) { wrong[thread] += worker.check(); });
  }
  for (const uint64_t one : wrong) timing.wrong += one;
  require(tutti_allreduce(member_.comm, TUTTI_IN_PLACE, &timing.wrong, 1, TUTTI_UINT64, TUTTI_SUM), "collecting the errors");
  return timing;
}

}  // namespace tutti_perf
