// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "worker.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

using SteadyClock = std::chrono::steady_clock;

double microseconds(SteadyClock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

/// The whole model runs through a window of the buffers; that of its largest tensor or so many bytes.
constexpr uint64_t kModelWindowBytes = 64ull << 20;

uint64_t window_of_model(const Workload& work, uint32_t element_bytes) {
  return std::max(work.longest_count(), std::min(work.total_count(), kModelWindowBytes / element_bytes));
}

}  // namespace

Buffer::Buffer(uint64_t bytes) : bytes_(std::max<uint64_t>(bytes, 1)) {
  memory_ = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory_ == MAP_FAILED) {
    throw RunError(fmt::format("no memory for a buffer of {} bytes: {}; a smaller -e needs less", bytes_,
                               std::generic_category().message(errno)));
  }
}

Buffer::~Buffer() { ::munmap(memory_, static_cast<size_t>(bytes_)); }

Capacity capacity_of(const Options& options, const Series& series, const std::vector<Workload>& work, uint32_t rank_count,
                     uint32_t rank) {
  const uint32_t element_bytes = info(series.dtype).size_bytes;
  Capacity capacity;
  for (const Workload& one : work) {
    const uint64_t total = one.whole_model ? window_of_model(one, element_bytes) : one.longest_count();
    const Layout layout = make_layout(series.collective, options.counts, total, rank_count, rank);
    const bool rate = series.collective == Collective::message_rate;
    const uint64_t messages = rate ? window_of(options, total * element_bytes) : 1;
    capacity.send_elements = std::max(capacity.send_elements, layout.send_elements);
    capacity.recv_elements = std::max(capacity.recv_elements, layout.recv_elements * messages);
    capacity.longest = std::max({capacity.longest, total, layout.send_elements, layout.recv_elements});
  }
  return capacity;
}

Worker::Worker(const Options& options, const Series& series, const Call& call, std::vector<tutti_comm_t> comms,
               const TestData& data, const std::vector<Workload>& work)
    : options_(options), series_(series), call_(call), comms_(std::move(comms)), data_(data) {
  const Capacity capacity = capacity_of(options, series, work, call.rank_count, call.rank);
  send_ = std::make_unique<Buffer>(capacity.send_elements * call.element_bytes);
  data_.fill(send_->data(), capacity.send_elements);
  for (uint32_t slot = 0; slot < batch_of(options, series.collective); ++slot) {
    recv_.push_back(std::make_unique<Buffer>(capacity.recv_elements * call.element_bytes));
  }
}

Worker::~Worker() { release_requests(); }

void Worker::release_requests() {
  for (tutti_request_t& request : requests_) {
    if (request != nullptr) tutti_request_free(&request);
  }
  requests_.clear();
  for (tutti_group_t& group : groups_) {
    if (group != nullptr) tutti_group_free(&group);
  }
  groups_.clear();
}

// ---- the cycle

void Worker::set_up(const Workload& work, bool in_place) {
  release_requests();
  steps_.clear();
  layouts_.clear();
  whole_model_ = work.counts.size() > 1;
  in_place_ = in_place;
  const size_t batch = batch_of(options_, series_.collective);
  steps_per_iteration_ = whole_model_ ? work.counts.size() : batch;
  const uint64_t cycle = cycle_of(options_, series_, steps_per_iteration_, call_.rank_count);
  steps_.reserve(cycle);
  if (series_.collective == Collective::message_rate) call_.window = window_of(options_, work.counts[0] * call_.element_bytes);
  while (steps_.size() < cycle) add_steps(work, in_place);
  if (call_.mode == Mode::group) {
    make_groups();
    return;
  }
  requests_.assign(call_.mode == Mode::persistent ? steps_.size() : batch * requests_of(call_), nullptr);
  if (call_.mode != Mode::persistent) return;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const tutti_status_t status = steps_[i].create(&requests_[i]);
    if (status != TUTTI_OK) fail(status);
  }
}

void Worker::make_groups() {
  requests_.assign(1, nullptr);
  for (size_t first = 0; first < steps_.size(); first += steps_per_iteration_) {
    tutti_status_t status = tutti_group_begin(steps_[first].target().comm, &groups_.emplace_back(nullptr));
    for (size_t k = 0; k < steps_per_iteration_ && status == TUTTI_OK; ++k) {
      status = steps_[first + k].create(&requests_[0]);
      if (status == TUTTI_OK) status = tutti_group_add(groups_.back(), requests_[0]);
      if (status == TUTTI_OK) status = tutti_request_free(&requests_[0]);
    }
    if (status != TUTTI_OK) fail(status);
  }
}

/// Those of one iteration.
void Worker::add_steps(const Workload& work, bool in_place) {
  const uint64_t window = whole_model_ ? window_of_model(work, call_.element_bytes) : work.longest_count();
  uint64_t offset = 0;
  uint64_t reached = 0;
  for (size_t k = 0; k < steps_per_iteration_; ++k) {
    const uint64_t count = work.counts[whole_model_ ? k : 0];
    if (layouts_.size() <= k) {
      layouts_.push_back(make_layout(series_.collective, options_.counts, count, call_.rank_count, call_.rank));
    }
    if (whole_model_ && count > window - offset) offset = 0;
    const size_t number = steps_.size();
    Step::Target target;
    target.comm = comms_[(call_.mode == Mode::group ? number / steps_per_iteration_ : number) % comms_.size()];
    target.root = series_.rotate ? static_cast<uint32_t>(number % call_.rank_count) : series_.root;
    target.in_place = in_place;
    target.send = send_->data() + offset * call_.element_bytes;
    target.recv = recv_[whole_model_ ? 0 : k]->data() + offset * call_.element_bytes;
    steps_.emplace_back(call_, layouts_[k], target);
    if (whole_model_) offset += count;
    reached = std::max(reached, offset);
  }
  reach_ = whole_model_ ? make_layout(series_.collective, options_.counts, reached, call_.rank_count, call_.rank) : layouts_[0];
}

/// Ends what is under way, so that nobody uses the buffers any more.
void Worker::fail(tutti_status_t status) {
  const std::string message = tutti_last_error();
  for (const tutti_comm_t comm : comms_) tutti_comm_abort(comm);
  for (tutti_request_t& request : requests_) {
    if (request != nullptr) (void)tutti_wait(&request);
  }
  throw RunError(fmt::format("{}: {}: {}", describe(call_, layouts_[0].total), tutti_status_string(status), message));
}

void Worker::run(Step& step, tutti_request_t* requests) {
  const tutti_status_t status = step.issue(requests);
  if (status != TUTTI_OK) fail(status);
}

void Worker::start(uint64_t iteration) {
  const size_t first = first_step(iteration);
  if (call_.mode == Mode::persistent) {
    const tutti_status_t status = tutti_start_all(steps_per_iteration_, &requests_[first]);
    if (status != TUTTI_OK) fail(status);
    return;
  }
  if (call_.mode == Mode::group) {
    const tutti_status_t status = tutti_group_launch(groups_[first / steps_per_iteration_], &requests_[0]);
    if (status != TUTTI_OK) fail(status);
    return;
  }
  const uint32_t each = requests_of(call_);
  for (size_t k = 0; k < steps_per_iteration_; ++k) run(steps_[first + k], &requests_[k * each]);
}

void Worker::finish(uint64_t iteration) {
  if (call_.mode == Mode::blocking) return;
  const bool persistent = call_.mode == Mode::persistent;
  tutti_request_t* const requests = &requests_[persistent ? first_step(iteration) : 0];
  const tutti_status_t status = tutti_wait_all(persistent ? steps_per_iteration_ : requests_.size(), requests, nullptr);
  if (status != TUTTI_OK) fail(status);
}

void Worker::iterate(uint64_t iteration) {
  if (!whole_model_) {
    start(iteration);
    finish(iteration);
    return;
  }
  // Tensor after tensor.
  const size_t first = first_step(iteration);
  for (size_t k = 0; k < steps_per_iteration_; ++k) {
    tutti_status_t status = TUTTI_OK;
    if (call_.mode == Mode::persistent) {
      status = tutti_start(requests_[first + k]);
      if (status == TUTTI_OK) status = tutti_wait(&requests_[first + k]);
    } else {
      status = steps_[first + k].issue(requests_.data());
      if (status == TUTTI_OK && call_.mode == Mode::nonblocking) {
        status = tutti_wait_all(requests_.size(), requests_.data(), nullptr);
      }
    }
    if (status != TUTTI_OK) fail(status);
  }
}

// ---- times

uint64_t Worker::calls_in_iteration() const {
  if (whole_model_) return 1;
  if (series_.collective == Collective::pingpong) return 2;  // there and back
  return series_.collective == Collective::message_rate ? call_.window : steps_per_iteration_;
}

void Worker::warm_up(uint64_t iterations) {
  prepare_buffers(0);
  for (uint64_t i = 0; i < iterations; ++i) iterate(i);
}

void Worker::meet() {
  const tutti_status_t status = tutti_barrier(comms_[0]);
  if (status != TUTTI_OK) fail(status);
}

double Worker::time_computation(uint64_t iterations, const Computation& computation) {
  meet();
  const SteadyClock::time_point begin = SteadyClock::now();
  for (uint64_t i = 0; i < iterations; ++i) computation.run();
  return microseconds(SteadyClock::now() - begin) / static_cast<double>(iterations);
}

Timing Worker::time(uint64_t iterations, const Computation* computation) {
  std::vector<double> each_us;
  each_us.reserve(static_cast<size_t>(iterations));
  meet();
  const SteadyClock::time_point begin = SteadyClock::now();
  SteadyClock::time_point before = begin;
  for (uint64_t i = 0; i < iterations; ++i) {
    if (computation == nullptr) {
      iterate(i);
    } else {
      start(i);
      computation->run();
      finish(i);
    }
    const SteadyClock::time_point after = SteadyClock::now();
    each_us.push_back(microseconds(after - before));
    before = after;
  }
  const auto calls = static_cast<double>(calls_in_iteration());
  Timing timing;
  timing.iterations = iterations;
  timing.mean_us = microseconds(before - begin) / static_cast<double>(iterations) / calls;
  timing.p50_us = percentile(each_us, 50) / calls;
  timing.p99_us = percentile(each_us, 99) / calls;
  return timing;
}

// ---- what the buffers hold

Contents Worker::contents_of(const Step& step) const {
  return make_contents(series_.collective, options_.counts, reach_,
                       {call_.rank_count, call_.rank, step.target().root, in_place_});
}

/// The buffers as an iteration expects them, with nothing of an earlier result left.
void Worker::prepare_buffers(uint64_t iteration) {
  const size_t first = first_step(iteration);
  const uint64_t messages = call_.window;
  for (size_t slot = 0; slot < recv_.size(); ++slot) {
    std::byte* const recv = recv_[slot]->data();
    data_.poison(recv, reach_.recv_elements * messages);
    for (const Piece& piece : contents_of(steps_[first + slot]).before) {
      data_.fill(recv + piece.place * call_.element_bytes, piece.count, piece.origin.first);
    }
  }
}

/// --inject changes one result, on the last rank that gets one.
bool Worker::injects(const Step& step) const {
  if (options_.injection == Injection::none) return false;
  for (uint32_t rank = call_.rank_count; rank-- > 0;) {
    const Layout layout = make_layout(series_.collective, options_.counts, reach_.total, call_.rank_count, rank);
    const Contents contents =
        make_contents(series_.collective, options_.counts, layout, {call_.rank_count, rank, step.target().root, in_place_});
    for (const Piece& piece : contents.after) {
      if (piece.count != 0) return rank == call_.rank;
    }
  }
  return false;
}

uint64_t Worker::judge(const Step& step, bool injects) {
  uint64_t wrong = 0;
  uint64_t elements = 0;
  Verdict worst;
  for (const Piece& piece : contents_of(step).after) {
    if (piece.count == 0) continue;
    std::byte* const result = static_cast<std::byte*>(step.target().recv) + piece.place * call_.element_bytes;
    if (injects) data_.inject(options_.injection, result, piece.count);
    injects = false;
    Verdict verdict = data_.judge(result, piece.count, piece.origin);
    elements += piece.count;
    if (wrong == 0 && verdict.wrong != 0) {
      worst = verdict;
      worst.first_wrong += piece.place;
    }
    wrong += verdict.wrong;
  }
  if (wrong != 0) {
    fmt::print(stderr, "tutti-perf: rank {}: {}, {}: {} wrong of {}; the first is element {}: {}\n", call_.rank,
               describe(call_, reach_.total), in_place_ ? "in place" : "out of place", wrong, elements, worst.first_wrong,
               worst.explanation);
  }
  return wrong;
}

uint64_t Worker::check() {
  uint64_t wrong = 0;
  const uint64_t iterations = steps_.size() / steps_per_iteration_;
  for (uint64_t i = 0; i < iterations; ++i) {
    prepare_buffers(i);
    iterate(i);
    const size_t first = first_step(i);
    for (size_t slot = 0; slot < recv_.size(); ++slot) {
      const Step& step = steps_[first + slot];
      wrong += judge(step, i == 0 && slot == 0 && injects(step));
    }
  }
  return wrong;
}

}  // namespace tutti_perf
