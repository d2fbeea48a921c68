// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>

#include "hash.hpp"
#include "schedule/collective.hpp"

namespace tutti::sim {
namespace {

/// A channel as one rank sees it.
struct LocalChannel {
  uint32_t lane;
  uint32_t peer;
  bool sends;
};

/// One rank's schedule -> program and channels.
class Compaction {
 public:
  Compaction(std::vector<SliceSize>& slices, uint64_t longest_segment, uint32_t element_bytes)
      : slices_(slices), longest_segment_(longest_segment), element_bytes_(element_bytes) {}

  void run(const Schedule& schedule) {
    program = {};
    channels.clear();
    for (uint32_t lane = 0; lane < schedule.lanes.size(); ++lane) {
      known_.clear();
      compact(schedule.lanes[lane], lane);
    }
    program.channel_count = static_cast<uint32_t>(channels.size());
  }

  CompactProgram program;
  std::vector<LocalChannel> channels;

 private:
  void compact(const Lane& lane, uint32_t index) {
    CompactLane result;
    result.first_loop = static_cast<uint32_t>(program.loops.size());
    const uint64_t segment = lane.segment_bytes == 0 ? longest_segment_ : std::min(lane.segment_bytes, longest_segment_);
    result.segment_bytes = std::max<uint64_t>(1, segment / element_bytes_) * element_bytes_;
    for (size_t n = 0; n < lane.steps.size(); ++n) {
      if (n == 0 || lane.steps[n].loop != lane.steps[n - 1].loop) {
        program.loops.push_back({static_cast<uint32_t>(program.steps.size()), 0, 0});
      }
      compact(lane.steps[n], index);
      CompactLoop& loop = program.loops.back();
      ++loop.step_count;
      loop.max_lag = std::max(loop.max_lag, lane.steps[n].lag);
    }
    result.loop_count = static_cast<uint32_t>(program.loops.size()) - result.first_loop;
    for (uint32_t n = result.first_loop; n < program.loops.size(); ++n) note_later_lags(program.loops[n]);
    program.lanes.push_back(result);
  }

  void note_later_lags(const CompactLoop& loop) {
    uint16_t smallest = UINT16_MAX;
    for (uint32_t n = loop.first_step + loop.step_count; n-- > loop.first_step;) {
      smallest = std::min(smallest, program.steps[n].lag);
      program.steps[n].smallest_later_lag = smallest;
    }
  }

  void compact(const Step& step, uint32_t lane) {
    CompactStep result;
    result.lag = step.lag;
    result.first_message = static_cast<uint32_t>(program.messages.size());
    for (const Operand& operand : step.sources) {
      if (operand.kind != Operand::Kind::message) continue;
      program.messages.push_back(channel(lane, operand.peer, false));
      ++result.receives;
    }
    bool to_local = false;
    for (const Operand& operand : step.destinations) {
      to_local |= operand.kind == Operand::Kind::local;
      if (operand.kind != Operand::Kind::message) continue;
      program.messages.push_back(channel(lane, operand.peer, true));
      ++result.sends;
    }
    result.slice = slice(step.sources.empty() ? step.destinations[0].slice : step.sources[0].slice);
    result.folds = static_cast<uint16_t>(step.sources.empty() ? 0 : step.sources.size() - 1);
    result.local_copies = static_cast<uint16_t>(to_local && result.receives == 0 && result.folds == 0 ? 1 : 0);
    program.steps.push_back(result);
  }

  uint32_t channel(uint32_t lane, uint32_t peer, bool sends) {
    const auto [entry, is_new] =
        known_.try_emplace(uint64_t{peer} << 1 | uint64_t{sends}, static_cast<uint32_t>(channels.size()));
    if (is_new) channels.push_back({lane, peer, sends});
    return entry->second;
  }

  uint32_t slice(const Slice& slice) {
    if (slice.parts == 0) return kNoSlice;
    const SliceSize size{slice.parts, slice.last - slice.first, slice.cut != Cut::even};
    if (last_slice_ < slices_.size() && slices_[last_slice_] == size) return last_slice_;
    const auto found = std::find(slices_.begin(), slices_.end(), size);
    last_slice_ = static_cast<uint32_t>(found - slices_.begin());
    if (found == slices_.end()) slices_.push_back(size);
    return last_slice_;
  }

  std::vector<SliceSize>& slices_;
  const uint64_t longest_segment_;
  const uint32_t element_bytes_;
  uint32_t last_slice_ = 0;
  std::unordered_map<uint64_t, uint32_t> known_;
};

uint64_t hash_of(const CompactProgram& program) {
  uint64_t hash = mix(program.channel_count, program.steps.size());
  for (const CompactStep& step : program.steps) {
    hash = mix(hash, uint64_t{step.slice} << 32 | step.first_message);
    hash = mix(hash, uint64_t{step.lag} << 48 | uint64_t{step.receives} << 32 | uint64_t{step.sends} << 16 | step.folds);
    hash = mix(hash, step.local_copies);
  }
  for (const uint32_t message : program.messages) hash = mix(hash, message);
  for (const CompactLoop& loop : program.loops) hash = mix(hash, loop.first_step);
  for (const CompactLane& lane : program.lanes) hash = mix(mix(hash, lane.first_loop), lane.segment_bytes);
  return hash;
}

/// One end of a channel before it has found the other.
struct LooseEnd {
  uint32_t from;  // ranks
  uint32_t to;
  End end;
  bool sends;
  auto key() const { return std::tuple(from, to, end.lane, !sends); }
};

class JobBuilder {
 public:
  JobBuilder(const Network& network, const SimulationRequest& request, uint64_t max_steps)
      : network_(network), request_(request), max_steps_(max_steps) {}

  Result<Job> run() {
    job_.rank_count = network_.rank_count();
    job_.has_blocks = has_blocks(request_.algorithm->collective);
    TUTTI_TRY(add_ranks());
    TUTTI_TRY(join_ends());
    return std::move(job_);
  }

 private:
  Status add_ranks() {
    PlanRequest plan;
    plan.shape = network_.shape();
    plan.root = request_.root;
    plan.parameters = request_.parameters;
    Compaction compaction(job_.slices, network_.spec().prices.segment_bytes, request_.element_bytes);
    std::unordered_multimap<uint64_t, uint32_t> known;
    uint64_t steps = 0;
    size_t lightest = SIZE_MAX;
    for (uint32_t rank = 0; rank < job_.rank_count; ++rank) {
      plan.rank = rank;
      compaction.run(request_.algorithm->build(plan));
      // What is too much shows early, by the least that a rank has to do; a root may have far more than the others.
      steps += compaction.program.steps.size() + 1;
      lightest = std::min(lightest, compaction.program.steps.size());
      const uint64_t forecast = rank == 0 || rank == request_.root ? 0 : lightest * (job_.rank_count - rank);
      if (steps + forecast > max_steps_) {
        return error(TUTTI_ERR_RESOURCE, "the schedules of {} ranks have more than {} steps", job_.rank_count, max_steps_);
      }
      Actor actor;
      actor.rank = rank;
      actor.first_channel = static_cast<uint32_t>(ends_.size());
      actor.program = intern(known, std::move(compaction.program));
      for (uint32_t local = 0; local < compaction.channels.size(); ++local) {
        const LocalChannel& channel = compaction.channels[local];
        const uint32_t from = channel.sends ? rank : channel.peer;
        const uint32_t to = channel.sends ? channel.peer : rank;
        ends_.push_back({from, to, {rank, local, channel.lane}, channel.sends});
      }
      job_.actors.push_back(actor);
    }
    return Status();
  }

  uint32_t intern(std::unordered_multimap<uint64_t, uint32_t>& known, CompactProgram program) {
    const uint64_t hash = hash_of(program);
    const auto [first, last] = known.equal_range(hash);
    for (auto entry = first; entry != last; ++entry) {
      if (job_.programs[entry->second] == program) return entry->second;
    }
    const auto number = static_cast<uint32_t>(job_.programs.size());
    known.emplace(hash, number);
    job_.programs.push_back(std::move(program));
    return number;
  }

  /// Sorted, the two ends of a channel are neighbours.
  Status join_ends() {
    job_.channel_of.resize(ends_.size());
    std::sort(ends_.begin(), ends_.end(), [](const LooseEnd& a, const LooseEnd& b) { return a.key() < b.key(); });
    std::vector<uint32_t> used(network_.link_count(), UINT32_MAX);
    Network::Route route;
    for (size_t n = 0; n < ends_.size(); n += 2) {
      const LooseEnd& sender = ends_[n];
      const bool pair = n + 1 < ends_.size() && ends_[n + 1].from == sender.from && ends_[n + 1].to == sender.to &&
                        ends_[n + 1].end.lane == sender.end.lane && sender.sends && !ends_[n + 1].sends;
      if (!pair) {
        return error(TUTTI_ERR_INTERNAL, "lane {}: rank {} and rank {} do not agree that the first sends to the second",
                     sender.end.lane, sender.from, sender.to);
      }
      network_.route(sender.from, sender.to, route);
      Channel channel;
      channel.from = sender.end;
      channel.to = ends_[n + 1].end;
      channel.first_hop = static_cast<uint32_t>(job_.hops.size());
      channel.hop_count = static_cast<uint32_t>(route.links.size());
      channel.latency = std::llround(route.latency_ns * 1000);
      channel.within_node = route.within_node;
      for (const uint32_t link : route.links) {
        if (used[link] == UINT32_MAX) {
          used[link] = static_cast<uint32_t>(job_.links.size());
          job_.links.push_back({link, network_.ps_per_byte(link)});
        }
        job_.hops.push_back({used[link], 1});
      }
      for (const End& end : {channel.from, channel.to}) {
        job_.channel_of[job_.actors[end.actor].first_channel + end.local] = static_cast<uint32_t>(job_.channels.size());
      }
      job_.channels.push_back(channel);
    }
    return Status();
  }

  const Network& network_;
  const SimulationRequest& request_;
  const uint64_t max_steps_;
  Job job_;
  std::vector<LooseEnd> ends_;
};

}  // namespace

Result<Job> build_job(const Network& network, const SimulationRequest& request, uint64_t max_steps) {
  return JobBuilder(network, request, max_steps).run();
}

std::vector<uint64_t> slice_bytes(const Job& job, uint64_t bytes, uint32_t element_bytes) {
  const auto divide_up = [](uint64_t value, uint64_t by) { return (value + by - 1) / by; };
  const uint64_t elements = divide_up(bytes, element_bytes);
  const uint64_t block = divide_up(elements, job.rank_count);
  std::vector<uint64_t> result;
  for (const SliceSize& slice : job.slices) {
    const uint64_t whole = slice.of_blocks ? block * job.rank_count : job.has_blocks ? block : elements;
    result.push_back(divide_up(whole * slice.taken, slice.parts) * element_bytes);
  }
  return result;
}

Extent extent(const Job& job, std::span<const uint64_t> bytes_of_slice) {
  std::vector<uint64_t> steps_of(job.programs.size(), 0);
  Extent result;
  for (size_t n = 0; n < job.programs.size(); ++n) {
    const CompactProgram& program = job.programs[n];
    for (const CompactLane& lane : program.lanes) {
      for (const CompactLoop& loop : loops_of(program, lane)) {
        result.max_lag = std::max<uint64_t>(result.max_lag, loop.max_lag);
        for (uint32_t step = loop.first_step; step < loop.first_step + loop.step_count; ++step) {
          const uint32_t slice = program.steps[step].slice;
          const uint64_t chunks = slice == kNoSlice ? 1 : chunk_count(bytes_of_slice[slice], lane.segment_bytes);
          steps_of[n] += chunks;
          result.longest_chunks = std::max(result.longest_chunks, chunks);
        }
      }
    }
  }
  for (const Actor& actor : job.actors) result.steps += steps_of[actor.program];
  return result;
}

}  // namespace tutti::sim
