// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "call.hpp"
#include "check.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "report.hpp"

namespace tutti_perf {
namespace {

using SteadyClock = std::chrono::steady_clock;

double microseconds(SteadyClock::duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

/// Page-aligned memory of its own, so that a failure is reported and large buffers go back at once.
class Buffer {
 public:
  explicit Buffer(uint64_t bytes) : bytes_(std::max<uint64_t>(bytes, 1)) {
    memory_ = ::mmap(nullptr, static_cast<size_t>(bytes_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) {
      throw RunError(
          fmt::format("no memory for a buffer of {} bytes: {}; a smaller -e needs less", bytes_, std::strerror(errno)));
    }
  }
  ~Buffer() { ::munmap(memory_, static_cast<size_t>(bytes_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return memory_; }

 private:
  uint64_t bytes_;
  void* memory_;
};

/// The whole model runs through a window of the buffers; that of its largest tensor or so many bytes.
constexpr uint64_t kModelWindowBytes = 64ull << 20;

uint64_t window_of(const Workload& work, uint32_t element_bytes) {
  if (!work.whole_model) return work.longest_count();
  return std::max(work.longest_count(), std::min(work.total_count(), kModelWindowBytes / element_bytes));
}

/// Measures the rows of one (collective, type, operation).
class Series {
 public:
  Series(const Options& options, const Member& member, const Call& call, const std::vector<Workload>& work)
      : options_(options),
        member_(member),
        call_(call),
        capacity_(longest_window(work)),
        send_(capacity_ * call.element_bytes),
        recv_(capacity_ * call.element_bytes),
        data_(make_test_data(check_case())) {
    data_->fill(send_.data(), capacity_);
  }

  Row measure(const Workload& work) {
    Row row;
    row.collective = call_.collective;
    row.count = work.total_count();
    row.bytes = row.count * call_.element_bytes;
    row.dtype = call_.dtype;
    row.op = call_.op;
    row.root = call_.root;
    row.tensor_count = work.tensor_count;
    row.whole_model = work.whole_model;
    row.out_of_place = measure_variant(work, false);
    // The tensors of a whole model share a window, which would be reduced again and again in place.
    row.has_in_place = call_.collective == Collective::allreduce && !work.whole_model;
    if (row.has_in_place) row.in_place = measure_variant(work, true);
    return row;
  }

 private:
  uint64_t longest_window(const std::vector<Workload>& work) const {
    uint64_t longest = 0;
    for (const Workload& one : work) longest = std::max(longest, window_of(one, call_.element_bytes));
    return longest;
  }

  CheckCase check_case() const {
    CheckCase wanted;
    wanted.pattern = call_.collective == Collective::allreduce ? Pattern::reduce : Pattern::copy;
    wanted.dtype = call_.dtype;
    wanted.op = call_.op;
    wanted.rank_count = member_.size;
    wanted.rank = member_.rank;
    wanted.source = call_.collective == Collective::broadcast ? call_.root : (member_.rank + member_.size - 1) % member_.size;
    wanted.longest = capacity_;
    return wanted;
  }

  /// The buffers as one call expects them, with nothing of an earlier result left.
  void prepare(uint64_t window, bool in_place) {
    const bool is_root = call_.collective == Collective::broadcast && member_.rank == call_.root;
    if (in_place || is_root) {
      data_->fill(recv_.data(), window);
    } else {
      data_->poison(recv_.data(), window);
    }
  }

  void iterate(const Workload& work, uint64_t window, bool in_place) {
    void* const send = in_place ? recv_.data() : send_.data();
    if (work.counts.size() == 1) {
      make_call(member_, call_, send, recv_.data(), 0, work.counts[0]);
      return;
    }
    uint64_t offset = 0;
    for (const uint64_t count : work.counts) {
      if (count > window - offset) offset = 0;
      make_call(member_, call_, send, recv_.data(), offset, count);
      offset += count;
    }
  }

  /// How much of the window the calls of one iteration reach.
  static uint64_t reach(const Workload& work, uint64_t window) {
    uint64_t offset = 0;
    uint64_t reached = 0;
    for (const uint64_t count : work.counts) {
      if (count > window - offset) offset = 0;
      offset += count;
      reached = std::max(reached, offset);
    }
    return reached;
  }

  Timing measure_variant(const Workload& work, bool in_place) {
    const uint64_t window = window_of(work, call_.element_bytes);
    prepare(window, in_place);
    for (uint64_t i = 0; i < options_.warm_up; ++i) iterate(work, window, in_place);
    Timing timing = time(work, window, in_place, iterations_for(work, window, in_place));
    for (uint64_t run = 0; run < options_.check_runs; ++run) timing.wrong += check(work, window, in_place);
    combine(timing);
    return timing;
  }

  /// The same number on all ranks.
  uint64_t iterations_for(const Workload& work, uint64_t window, bool in_place) {
    if (options_.iterations != 0) return options_.iterations;
    double estimate_us = time(work, window, in_place, 2).mean_us;
    largest(&estimate_us, 1);
    const double fitting = kAutoTimeMs * 1000.0 / std::max(estimate_us, 0.01);
    return std::clamp(static_cast<uint64_t>(fitting), kAutoMinIterations, kAutoMaxIterations);
  }

  Timing time(const Workload& work, uint64_t window, bool in_place, uint64_t iterations) {
    std::vector<double> each_us;
    each_us.reserve(static_cast<size_t>(iterations));
    require(tutti_barrier(member_.comm), "barrier");
    const SteadyClock::time_point begin = SteadyClock::now();
    SteadyClock::time_point before = begin;
    for (uint64_t i = 0; i < iterations; ++i) {
      iterate(work, window, in_place);
      const SteadyClock::time_point after = SteadyClock::now();
      each_us.push_back(microseconds(after - before));
      before = after;
    }
    Timing timing;
    timing.iterations = iterations;
    timing.mean_us = microseconds(before - begin) / static_cast<double>(iterations);
    timing.p50_us = percentile(each_us, 50);
    timing.p99_us = percentile(each_us, 99);
    return timing;
  }

  /// Elements of this rank that are wrong after one more call.
  uint64_t check(const Workload& work, uint64_t window, bool in_place) {
    if (call_.collective == Collective::barrier) return 0;
    prepare(window, in_place);
    iterate(work, window, in_place);
    const uint64_t reached = reach(work, window);
    if (member_.rank + 1 == member_.size) data_->inject(options_.injection, recv_.data(), reached);
    const Verdict verdict = data_->judge(recv_.data(), reached);
    if (verdict.wrong != 0) {
      fmt::print(stderr, "tutti-perf: rank {}: {}, {}: {} wrong of {}; the first is element {}: {}\n", member_.rank,
                 describe(call_, work.longest_count()), in_place ? "in place" : "out of place", verdict.wrong, reached,
                 verdict.first_wrong, verdict.explanation);
    }
    return verdict.wrong;
  }

  void largest(double* values, uint64_t count) {
    require(tutti_allreduce(member_.comm, TUTTI_IN_PLACE, values, count, TUTTI_FLOAT64, TUTTI_MAX), "collecting the times");
  }

  void combine(Timing& timing) {
    std::array<double, 3> times = {timing.mean_us, timing.p50_us, timing.p99_us};
    largest(times.data(), times.size());
    timing.mean_us = times[0];
    timing.p50_us = times[1];
    timing.p99_us = times[2];
    require(tutti_allreduce(member_.comm, TUTTI_IN_PLACE, &timing.wrong, 1, TUTTI_UINT64, TUTTI_SUM), "collecting the errors");
  }

  const Options& options_;
  const Member& member_;
  Call call_;
  uint64_t capacity_;
  Buffer send_;
  Buffer recv_;
  std::unique_ptr<TestData> data_;
};

// ---- what rank 0 says before and after

std::string setting_or(const Options& options, const std::string& setting, const std::string& otherwise) {
  for (auto entry = options.settings.rbegin(); entry != options.settings.rend(); ++entry) {
    if (entry->first == setting) return fmt::format("{} (--set)", entry->second);
  }
  std::string variable = "TUTTI_" + setting;
  for (char& letter : variable) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  const char* const value = std::getenv(variable.c_str());
  return value == nullptr || *value == '\0' ? otherwise : fmt::format("{} ({})", value, variable);
}

Environment environment_of(const Options& options, const Member& member) {
  int local_rank = 0;
  require(tutti_comm_local_rank(member.comm, &local_rank), "local rank");
  uint32_t nodes = local_rank == 0 ? 1 : 0;
  require(tutti_allreduce(member.comm, TUTTI_IN_PLACE, &nodes, 1, TUTTI_UINT32, TUTTI_SUM), "counting the nodes");
  Environment environment;
  int major = 0;
  int minor = 0;
  int patch = 0;
  require(tutti_get_version(&major, &minor, &patch), "version");
  environment.library_version = fmt::format("{}.{}.{}", major, minor, patch);
  environment.rank_count = member.size;
  environment.node_count = nodes;
  environment.process_count = member.size / options.threads;
  environment.transports = setting_or(options, "transports", "the fastest for each pair of ranks (default)");
  for (const Collective collective : options.collectives) {
    if (collective == Collective::sendrecv) continue;
    const std::string word(name(collective));
    environment.algorithms.emplace_back(word, setting_or(options, word, "chosen by ranks and size (default)"));
  }
  return environment;
}

std::vector<std::pair<std::string, uint64_t>> read_counters(const Member& member) {
  tutti_context_t context = nullptr;
  require(tutti_comm_get_context(member.comm, &context), "context");
  std::vector<std::pair<std::string, uint64_t>> counters;
  const char* counter = nullptr;
  uint64_t value = 0;
  for (size_t index = 0; tutti_context_get_counter(context, index, &counter, &value) == TUTTI_OK; ++index) {
    counters.emplace_back(counter, value);
  }
  return counters;
}

// ---- the plan: which series, which rows

std::vector<Call> series_of(const Options& options, Collective collective) {
  std::vector<Call> series;
  if (collective == Collective::barrier) return {{collective, TUTTI_UINT8, TUTTI_SUM, 0, 1}};
  for (const tutti_dtype_t dtype : options.dtypes) {
    const uint32_t element_bytes = info(dtype).size_bytes;
    if (collective != Collective::allreduce) {
      series.push_back({collective, dtype, TUTTI_SUM, options.root, element_bytes});
      continue;
    }
    for (const tutti_op_t op : options.ops) series.push_back({collective, dtype, op, 0, element_bytes});
  }
  return series;
}

std::vector<Workload> work_of(const Options& options, const Call& call, uint64_t* left_out) {
  *left_out = 0;
  if (call.collective == Collective::barrier) return {{{0}, 1, false}};
  if (options.model == nullptr) return workloads_of_sweep(options.sweep, call.element_bytes);
  const uint64_t max_bytes = options.end_given ? options.sweep.end_bytes : UINT64_MAX;
  return workloads_of_model(*options.model, call.element_bytes, max_bytes, left_out);
}

void measure_series(const Options& options, const Member& member, const Call& call, Report* report, uint64_t* wrong) {
  uint64_t left_out = 0;
  const std::vector<Workload> work = work_of(options, call, &left_out);
  Series series(options, member, call, work);
  size_t done = 0;
  for (const Workload& one : work) {
    ++done;
    if (report != nullptr) report->progress(fmt::format("[{}/{}] {}", done, work.size(), describe(call, one.total_count())));
    const Row row = series.measure(one);
    *wrong += row.out_of_place.wrong + row.in_place.wrong;
    if (report != nullptr) report->row(row);
  }
  if (report != nullptr && left_out != 0) {
    report->note(fmt::format("{} tensors of {} are above -e and left out", left_out, options.model->name));
  }
}

}  // namespace

int measure_all(const Options& options, const Member& member) {
  if (options.root >= member.size) {
    throw UsageError(fmt::format("-r {}: the job has ranks 0 to {}", options.root, member.size - 1));
  }
  const Environment environment = environment_of(options, member);
  std::unique_ptr<Report> report;
  if (member.rank == 0) {
    report = std::make_unique<Report>(options, environment);
    report->begin();
  }
  uint64_t wrong = 0;
  for (const Collective collective : options.collectives) {
    for (const Call& call : series_of(options, collective)) measure_series(options, member, call, report.get(), &wrong);
  }
  if (report) report->end(options.counters ? read_counters(member) : std::vector<std::pair<std::string, uint64_t>>{});
  require(tutti_barrier(member.comm), "the last barrier");
  return wrong == 0 ? kExitOk : kExitWrong;
}

}  // namespace tutti_perf
