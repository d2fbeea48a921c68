// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "job.hpp"
#include "walk.hpp"

namespace tutti {
namespace {

using sim::Job;
using sim::Walk;

/// With as many chunks, and as many as its steps lag, a pipeline is full: what follows takes time in proportion.
constexpr uint64_t kFullPipelineChunks = 8;
/// Walks that nothing makes shorter are done all the same up to so many times max_steps_walked.
constexpr uint64_t kPatience = 20;

double nanoseconds(sim::Picoseconds ps) { return static_cast<double>(ps) / 1000; }

Prediction measure(const Walk& walk, const Job& job, const Network& network) {
  Prediction result;
  result.time_ns = nanoseconds(walk.end());
  result.class_count = static_cast<uint32_t>(job.actors.size());
  result.walked_steps = walk.step_count();
  result.rounds = walk.rounds();
  result.messages = walk.message_count();
  for (uint32_t n = 0; n < job.actors.size(); ++n) {
    const Walk::ActorUse& use = walk.use(n);
    result.ranks.push_back({job.actors[n].rank, job.actors[n].members, nanoseconds(use.end), nanoseconds(use.busy),
                            use.sent_messages, use.sent_bytes});
    result.max_sent_bytes = std::max(result.max_sent_bytes, use.sent_bytes);
  }
  for (uint32_t n = 0; n < job.links.size(); ++n) {
    const Walk::LinkState& link = walk.link(n);
    const double busy_ns = nanoseconds(link.busy);
    if (result.busiest && result.busiest->busy_ns >= busy_ns) continue;
    result.busiest = {network.link_name(job.links[n].number), busy_ns, link.bytes};
  }
  return result;
}

void add_steps(Prediction& result, const Walk& walk, const Job& job, uint32_t actor) {
  const sim::CompactProgram& program = job.programs[job.actors[actor].program];
  for (uint32_t lane = 0; lane < program.lanes.size(); ++lane) {
    uint32_t number = 0;
    for (const sim::CompactLoop& loop : loops_of(program, program.lanes[lane])) {
      for (uint32_t n = 0; n < loop.step_count; ++n) {
        const Walk::StepState& step = walk.steps()[loop.first_step + n];
        result.steps.push_back(
            {lane, number++, step.chunks, nanoseconds(step.first_start), nanoseconds(step.last_end), nanoseconds(step.waited)});
      }
    }
  }
}

/// Everything grows from the shorter to the longer vector as from there on.
class Extrapolation {
 public:
  Extrapolation(uint64_t shorter, uint64_t longer, uint64_t wanted)
      : ratio_(static_cast<double>(wanted - longer) / static_cast<double>(longer - shorter)) {}

  void apply(const Prediction& shorter, Prediction& longer) const {
    apply(shorter.time_ns, longer.time_ns);
    apply(shorter.messages, longer.messages);
    apply(shorter.max_sent_bytes, longer.max_sent_bytes);
    apply(shorter.rounds, longer.rounds);
    if (longer.busiest && shorter.busiest) {
      apply(shorter.busiest->busy_ns, longer.busiest->busy_ns);
      apply(shorter.busiest->bytes, longer.busiest->bytes);
    }
    for (size_t n = 0; n < longer.ranks.size(); ++n) {
      apply(shorter.ranks[n].end_ns, longer.ranks[n].end_ns);
      apply(shorter.ranks[n].busy_ns, longer.ranks[n].busy_ns);
      apply(shorter.ranks[n].sent_messages, longer.ranks[n].sent_messages);
      apply(shorter.ranks[n].sent_bytes, longer.ranks[n].sent_bytes);
    }
    for (size_t n = 0; n < longer.steps.size(); ++n) {
      apply(shorter.steps[n].chunks, longer.steps[n].chunks);
      apply(shorter.steps[n].first_start_ns, longer.steps[n].first_start_ns);
      apply(shorter.steps[n].last_end_ns, longer.steps[n].last_end_ns);
      apply(shorter.steps[n].waited_ns, longer.steps[n].waited_ns);
    }
  }

 private:
  void apply(double shorter, double& longer) const { longer += std::max(0.0, (longer - shorter) * ratio_); }
  void apply(uint64_t shorter, uint64_t& longer) const {
    if (longer > shorter) longer += static_cast<uint64_t>(static_cast<double>(longer - shorter) * ratio_);
  }
  double ratio_;
};

Status check(const Network& network, const SimulationRequest& request) {
  if (request.algorithm == nullptr) return error(TUTTI_ERR_ARGUMENT, "no algorithm given");
  const AlgorithmInfo& algorithm = *request.algorithm;
  const uint32_t ranks = network.rank_count();
  if (request.parameters.size() != algorithm.parameters.size()) {
    return error(TUTTI_ERR_ARGUMENT, "{} has {} parameters, not {}", algorithm.name, algorithm.parameters.size(),
                 request.parameters.size());
  }
  if (ranks < algorithm.min_ranks || ranks > algorithm.max_ranks ||
      (algorithm.has(kPowerOfTwoRanks) && !std::has_single_bit(ranks))) {
    return error(TUTTI_ERR_ARGUMENT, "{} does not do for {} ranks", algorithm.name, ranks);
  }
  if (algorithm.fits != nullptr && !algorithm.fits(network.shape())) {
    return error(TUTTI_ERR_ARGUMENT, "{} does not do for how the ranks nest in groups", algorithm.name);
  }
  if (request.root >= ranks) return error(TUTTI_ERR_RANK, "root {} of {} ranks", request.root, ranks);
  if (request.element_bytes == 0) return error(TUTTI_ERR_ARGUMENT, "elements have a byte at least");
  return Status();
}

class Simulation {
 public:
  Simulation(const Network& network, const SimulationRequest& request) : network_(network), request_(request) {}

  Result<Prediction> run() {
    if (request_.method == WalkMethod::formula) return formula();
    Result<Job> built = sim::build_job(network_, request_, request_.max_steps_built);
    if (!built.ok()) {
      const bool too_much = built.status().code() == TUTTI_ERR_RESOURCE && request_.method == WalkMethod::automatic;
      if (!too_much) return built.status();
      say("{}: not walked, the cost formula instead", built.status().message());
      return formula();
    }
    job_ = std::move(*built);
    WalkMethod method = WalkMethod::every_event;
    if (wants_classes()) {
      // Who takes a shared processor first is not alike.
      std::optional<Job> quotient = network_.shares_processors() ? std::nullopt : sim::reduce_to_classes(job_);
      if (quotient) {
        job_ = std::move(*quotient);
        method = WalkMethod::classes;
      } else {
        say("the ranks are not alike: no classes");
      }
    }
    const uint64_t bytes = choose_bytes();
    if (request_.method == WalkMethod::automatic && steps(bytes) > request_.max_steps_walked * kPatience) {
      say("{} steps are too many to walk: the cost formula instead", steps(bytes));
      return formula();
    }
    Result<Prediction> result = walk(bytes);
    if (result.ok()) result->method = method;
    return result;
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    if (!note_.empty()) note_ += "; ";
    note_ += fmt::format(format, std::forward<Args>(args)...);
  }

  sim::Extent extent(uint64_t bytes) const { return sim::extent(job_, sim::slice_bytes(job_, bytes, request_.element_bytes)); }
  uint64_t steps(uint64_t bytes) const { return extent(bytes).steps; }

  bool wants_classes() const {
    if (request_.method == WalkMethod::classes) return true;
    const bool many = network_.rank_count() > kMaxRanksWalked || steps(request_.bytes) > request_.max_steps_walked;
    return request_.method == WalkMethod::automatic && many;
  }

  /// All, unless that takes too many steps and a shorter vector still fills the pipelines.
  uint64_t choose_bytes() const {
    const uint64_t full = std::max(kFullPipelineChunks, extent(request_.bytes).max_lag);
    uint64_t bytes = request_.bytes;
    while (steps(bytes) > request_.max_steps_walked && extent(bytes / 4).longest_chunks >= full) bytes /= 2;
    return bytes;
  }

  Result<Prediction> walk(uint64_t bytes) {
    std::optional<Prediction> shorter;
    if (bytes < request_.bytes) {
      Result<Prediction> half = walk_once(bytes / 2);
      if (!half.ok()) return half;
      shorter = std::move(*half);
    }
    Result<Prediction> result = walk_once(bytes);
    if (!result.ok()) return result;
    if (shorter) {
      Extrapolation(bytes / 2, bytes, request_.bytes).apply(*shorter, *result);
      say("walked for {} and {} bytes, the rest extrapolated", bytes / 2, bytes);
    }
    result->walked_bytes = bytes;
    result->note = note_;
    return result;
  }

  Result<Prediction> walk_once(uint64_t bytes) {
    Walk walk(job_, network_.spec(), request_.element_bytes);
    std::optional<uint32_t> traced;
    if (request_.traced_rank) traced = actor_of(*request_.traced_rank);
    if (traced) walk.trace(*traced);
    if (const Status end = walk.run(bytes); !end.ok()) return end.with_context(request_.algorithm->name);
    Prediction result = measure(walk, job_, network_);
    if (traced) add_steps(result, walk, job_, *traced);
    return result;
  }

  /// None where the rank is one of a class that another stands for.
  std::optional<uint32_t> actor_of(uint32_t rank) const {
    const auto found =
        std::find_if(job_.actors.begin(), job_.actors.end(), [&](const sim::Actor& actor) { return actor.rank == rank; });
    if (found == job_.actors.end()) return std::nullopt;
    return static_cast<uint32_t>(found - job_.actors.begin());
  }

  Prediction formula() const {
    Prediction result;
    result.method = WalkMethod::formula;
    result.note = note_;
    result.time_ns = request_.algorithm->cost_ns(network_.shape(), request_.bytes, request_.parameters, network_.cost_model());
    return result;
  }

  const Network& network_;
  const SimulationRequest& request_;
  Job job_;
  std::string note_;
};

}  // namespace

Result<Prediction> simulate(const Network& network, const SimulationRequest& request) {
  TUTTI_TRY(check(network, request));
  return Simulation(network, request).run();
}

}  // namespace tutti
