// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ranks.hpp"
#include "worker.hpp"

namespace tutti_perf {

/// The communicators of --parallel and --communicators: the job's, or so many split from it.
class Communicators {
 public:
  /// Collective.
  Communicators(const Options& options, const Member& member);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  std::vector<tutti_comm_t> of_thread(uint32_t thread) const;

 private:
  uint32_t each_;
  std::vector<tutti_comm_t> comms_;
  bool owned_;
};

/// The threads of a rank that measure a series. All functions are collective and throw RunError.
class Team {
 public:
  Team(const Options& options, const Member& member, const Communicators& communicators, const Series& series,
       const std::vector<Workload>& work);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// One half of a line of the table; the same on all ranks, but for the percentiles of overlap.
  Timing measure(const Workload& work, bool in_place);
  std::string description(uint64_t count) const { return describe(call_, count); }

 private:
  void for_all(const std::function<void(Worker&, size_t)>& body);
  Timing time(uint64_t iterations, const Computation* computation);
  void measure_overlap(Timing& timing);
  uint64_t iterations();
  void largest(double* values, uint64_t count);

  const Options& options_;
  const Member& member_;
  Call call_;
  bool owns_op_ = false;
  std::unique_ptr<TestData> data_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace tutti_perf
