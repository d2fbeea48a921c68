// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "call.hpp"
#include "check.hpp"
#include "compute.hpp"
#include "plan.hpp"
#include "results.hpp"

namespace tutti_perf {

/// Page-aligned memory of its own, so that a failure is reported and large buffers go back at once.
class Buffer {
 public:
  explicit Buffer(uint64_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  uint64_t bytes_;
  void* memory_;
};

/// One thread of a rank that makes the calls of a series, on communicators of its own. Any thread, one at a time.
///
/// The calls of a row follow each other in a cycle of steps, in which each comes with every communicator, root and buffer that it
/// will have. An iteration is a batch of steps which are started before the first is waited for, or, of a whole model, all its
/// tensors one after the other. Where one call is outstanding, a batch is one step.
class Worker {
 public:
  Worker(const Options& options, const Series& series, const Call& call, std::vector<tutti_comm_t> comms, const TestData& data,
         const std::vector<Workload>& work);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The steps and buffers of a row; then the other functions may be called. Throws RunError, as they do.
  void set_up(const Workload& work, bool in_place);
  void warm_up(uint64_t iterations);
  /// Begins with a barrier. Times are of one call; of a whole model of all its tensors. With a computation it lies between the
  /// start and the end of each iteration.
  Timing time(uint64_t iterations, const Computation* computation);
  /// The computation alone, for an iteration, while the other ranks compute as well.
  double time_computation(uint64_t iterations, const Computation& computation);
  uint64_t calls_in_iteration() const;
  /// Elements of this rank that are wrong, in one more cycle. Says on standard error what the first is.
  uint64_t check();

 private:
  void add_steps(const Workload& work, bool in_place);
  void prepare_buffers(uint64_t iteration);
  void start(uint64_t iteration);
  void finish(uint64_t iteration);
  void iterate(uint64_t iteration);
  void run(Step& step, tutti_request_t* requests);
  [[noreturn]] void fail(tutti_status_t status);
  void release_requests();
  void make_groups();
  Contents contents_of(const Step& step) const;
  uint64_t judge(const Step& step, bool injects);
  bool injects(const Step& step) const;
  void meet();
  size_t first_step(uint64_t iteration) const { return static_cast<size_t>(iteration * steps_per_iteration_ % steps_.size()); }

  const Options& options_;
  Series series_;
  Call call_;
  std::vector<tutti_comm_t> comms_;
  const TestData& data_;
  std::unique_ptr<Buffer> send_;
  std::vector<std::unique_ptr<Buffer>> recv_;  // one for each call outstanding

  bool whole_model_ = false;
  bool in_place_ = false;
  std::deque<Layout> layouts_;
  Layout reach_;  // what the steps of an iteration reach together in one buffer
  std::vector<Step> steps_;
  size_t steps_per_iteration_ = 1;
  std::vector<tutti_request_t> requests_;  // of a batch; persistent: of all steps; group: of the one that runs
  std::vector<tutti_group_t> groups_;      // one for each iteration of the cycle
};

/// Elements that the buffers of a rank need for all rows.
struct Capacity {
  uint64_t send_elements = 0;
  uint64_t recv_elements = 0;
  uint64_t longest = 0;  // part of a stream
};
Capacity capacity_of(const Options& options, const Series& series, const std::vector<Workload>& work, uint32_t rank_count,
                     uint32_t rank);

}  // namespace tutti_perf
