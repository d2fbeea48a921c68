// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "schedule/names.hpp"
#include "structure.hpp"
#include "tutti/transport.h"

namespace tutti {

Verifier::Machine::Machine(std::span<const Program> job)
    : job_(job), terms_(static_cast<uint32_t>(job.size())), ranks_(job.size()) {
  connect_channels();
  lay_out_tables();
  if (job[0].collective == Collective::barrier) heard_words_ = static_cast<uint32_t>((job.size() + 63) / 64);
}

void Verifier::Machine::connect_channels() {
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    ranks_[rank].first_process = static_cast<uint32_t>(processes_.size());
    for (uint32_t lane = 0; lane < job_[rank].lanes.size(); ++lane) {
      processes_.emplace_back();
      processes_.back().rank = rank;
      processes_.back().lane = lane;
    }
  }
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> known;  // (lane, from, to)
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    ranks_[rank].first_channel = static_cast<uint32_t>(channel_of_.size());
    for (const ProgramChannel& channel : job_[rank].channels) {
      const bool sends = channel.direction == TUTTI_TP_SEND;
      const auto key = std::make_tuple(uint32_t{channel.lane}, sends ? rank : channel.peer, sends ? channel.peer : rank);
      const auto [entry, is_new] = known.emplace(key, static_cast<uint32_t>(channels_.size()));
      if (is_new) channels_.emplace_back();
      channel_of_.push_back(entry->second);
      (sends ? channels_[entry->second].sender : channels_[entry->second].receiver) = ranks_[rank].first_process + channel.lane;
    }
  }
}

void Verifier::Machine::lay_out_tables() {
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    const Program& program = job_[rank];
    ranks_[rank].first_extent = static_cast<uint32_t>(extents_.size());
    extents_.resize(extents_.size() + program.operands.size());
    ranks_[rank].first_bounds = static_cast<uint32_t>(bounds_.size());
    for (const Division& division : program.divisions) bounds_.emplace_back(size_t{division.parts} + 1);
    ranks_[rank].first_stage = static_cast<uint32_t>(stages_.size());
    stages_.resize(stages_.size() + program.stages.size());
    ranks_[rank].first_ticket_ring = static_cast<uint32_t>(tickets_.size());
    for (const PendingRing& ring : program.pendings) tickets_.emplace_back(ring.depth, kNone);
    ranks_[rank].first_lag = static_cast<uint32_t>(lag_from_.size());
    lag_from_.resize(lag_from_.size() + program.steps.size());
    ranks_[rank].first_loop = static_cast<uint32_t>(loops_.size());
    loops_.resize(loops_.size() + program.loops.size());
    for (const ProgramLoop& loop : program.loops) {
      uint32_t smallest = UINT32_MAX;
      for (uint32_t n = loop.step_count; n-- > 0;) {
        smallest = std::min<uint32_t>(smallest, program.steps[loop.first_step + n].lag);
        lag_from_[ranks_[rank].first_lag + loop.first_step + n] = smallest;
      }
    }
  }
}

void Verifier::Machine::bind(const Call& call) {
  call_ = call;
  fault_.clear();
  transfers_.clear();
  values_.clear();
  ready_.clear();
  for (std::vector<uint32_t>& ring : tickets_) std::fill(ring.begin(), ring.end(), kNone);
  for (Channel& channel : channels_) {
    channel.sent.clear();
    channel.receives.clear();
    channel.released = 0;
  }
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    bind_bounds(rank);
    for (uint32_t loop = 0; loop < job_[rank].loops.size(); ++loop) bind_loop(rank, loop);
  }
  for (Process& process : processes_) {
    const ProgramLane& lane = job_[process.rank].lanes[process.lane];
    process.segment = std::max<uint64_t>(1, lane.segment_bytes / call.element_bytes);
    process.loop = lane.first_loop;
    process.finished = !enter_loop(process);
    process.queued = !process.finished;
    process.waits_for = kNone;
    if (process.queued) ready_.push_back(static_cast<uint32_t>(&process - processes_.data()));
  }
  uint64_t cells = 0;
  for (uint32_t rank = 0; rank < job_.size(); ++rank) bind_memory(rank, cells);
  cells_.assign(cells, Cell{});
  for (uint32_t rank = 0; rank < job_.size(); ++rank) bind_values(rank);
  heard_of_messages_.clear();
  heard_.assign(processes_.size() * heard_words_, 0);
  for (size_t n = 0; heard_words_ > 0 && n < processes_.size(); ++n) {
    heard_[n * heard_words_ + processes_[n].rank / 64] |= uint64_t{1} << (processes_[n].rank % 64);
  }
}

/// What the rank knows of the call's lengths, as bounds.
void Verifier::Machine::bind_bounds(uint32_t rank) {
  const Program& program = job_[rank];
  const uint32_t size = program.size;
  Lengths lengths;
  lengths.count = call_.count;
  if (!call_.counts.empty()) {
    const bool to_each = program.collective == Collective::alltoall;
    own_counts_.assign(size, 0);
    received_counts_.assign(size, 0);
    for (uint32_t other = 0; other < size; ++other) {
      if (to_each) received_counts_[other] = call_.counts[size_t{other} * size + rank];
      const bool known = !hides_counts(program.collective) || other == rank || rank == call_.root;
      if (to_each || known) own_counts_[other] = to_each ? call_.counts[size_t{rank} * size + other] : call_.counts[other];
    }
    lengths.counts = own_counts_;
    lengths.received_counts = received_counts_;
  }
  for (size_t n = 0; n < program.divisions.size(); ++n) {
    fill_bounds(program.divisions[n], size, lengths, bounds_[ranks_[rank].first_bounds + n]);
  }
}

/// Extents of the loop's operands, and its length.
void Verifier::Machine::bind_loop(uint32_t rank, uint32_t loop_index) {
  const Program& program = job_[rank];
  const ProgramLoop& loop = program.loops[loop_index];
  uint64_t longest = 0;
  bool signals = false;
  for (uint32_t n = loop.first_step; n < loop.first_step + loop.step_count; ++n) {
    const ProgramStep& step = program.steps[n];
    for (uint32_t index = step.first_operand; index < step.first_operand + operand_count(step); ++index) {
      const ProgramOperand& operand = program.operands[index];
      Extent& extent = extents_[ranks_[rank].first_extent + index];
      extent = {};
      extent.signal = operand.division == ProgramOperand::kNoData;
      signals |= extent.signal;
      if (extent.signal) continue;
      const std::vector<uint64_t>& bound = bounds(rank, operand.division);
      extent.start = bound[operand.first];
      extent.length = static_cast<uint32_t>(bound[operand.last] - bound[operand.first]);
      longest = std::max<uint64_t>(longest, extent.length);
    }
  }
  loops_[ranks_[rank].first_loop + loop_index] = {longest, signals};
}

/// The process's loop, or the next of its lane that has anything to do; false if there is none. Counts chunks as the engine does.
bool Verifier::Machine::enter_loop(Process& process) {
  const ProgramLane& lane = job_[process.rank].lanes[process.lane];
  for (; process.loop < lane.first_loop + lane.loop_count; ++process.loop) {
    const LoopLength& length = loops_[ranks_[process.rank].first_loop + process.loop];
    process.iterations = (length.longest + process.segment - 1) / process.segment;
    if (length.signals) process.iterations = std::max<uint64_t>(process.iterations, 1);
    process.iteration = 0;
    process.step = process.first_live = 0;
    if (process.iterations > 0) return true;
  }
  return false;
}

/// No chunk is longer than the lane's longest slice: the rest of a segment is not needed.
uint64_t Verifier::Machine::stage_stride(uint32_t rank, uint32_t lane_index) const {
  const ProgramLane& lane = job_[rank].lanes[lane_index];
  uint64_t longest = 0;
  for (uint32_t n = lane.first_loop; n < lane.first_loop + lane.loop_count; ++n) {
    longest = std::max(longest, loops_[ranks_[rank].first_loop + n].longest);
  }
  return std::min(longest, processes_[ranks_[rank].first_process + lane_index].segment);
}

void Verifier::Machine::bind_memory(uint32_t rank, uint64_t& cells) {
  const Program& program = job_[rank];
  const auto take = [&cells](uint64_t count) {
    const auto first = static_cast<uint32_t>(cells);
    cells += count;
    return first;
  };
  for (size_t n = 0; n < kBufferCount; ++n) {
    const ProgramWindow& held = program.windows[n];
    Memory& memory = ranks_[rank].memory[n];
    memory = {};
    if (held.division == ProgramOperand::kNoData) continue;
    const std::vector<uint64_t>& bound = bounds(rank, held.division);
    memory.origin = bound[held.first];
    memory.length = static_cast<uint32_t>(bound[held.last] - bound[held.first]);
    memory.first = static_cast<uint32_t>(cells);
    const bool shared = n == static_cast<size_t>(BufferId::output) && call_.in_place && may_alias(program.collective);
    if (!shared) cells += memory.length;
  }
  if (call_.in_place && may_alias(program.collective)) {
    // One memory: the smaller window lies within the larger.
    Memory& input = memory(rank, BufferId::input);
    Memory& output = memory(rank, BufferId::output);
    Memory& larger = input.length >= output.length ? input : output;
    Memory& smaller = input.length >= output.length ? output : input;
    larger.first = take(larger.length);
    smaller.first = static_cast<uint32_t>(larger.first + (smaller.length == 0 ? 0 : smaller.origin - larger.origin));
  }
  for (size_t n = 0; n < program.stages.size(); ++n) {
    const Stage& stage = program.stages[n];
    const uint64_t stride = stage_stride(rank, stage.lane);
    stages_[ranks_[rank].first_stage + n] = {take(stride * stage.depth), static_cast<uint32_t>(stride)};
  }
}

/// What the caller's buffers hold before the call.
void Verifier::Machine::bind_values(uint32_t rank) {
  const bool broadcast = job_[rank].collective == Collective::broadcast;
  if (broadcast && rank != call_.root) return;
  const Memory& given = memory(rank, broadcast ? BufferId::output : BufferId::input);
  for (uint32_t n = 0; n < given.length; ++n) {
    cells_[given.first + n].value = {Terms::leaf(rank), static_cast<uint32_t>(given.origin + n)};
  }
}

/// Every local operand lies within its buffer.
Status Verifier::Machine::check_windows() const {
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    const Program& program = job_[rank];
    for (size_t index = 0; index < program.operands.size(); ++index) {
      const ProgramOperand& operand = program.operands[index];
      const Extent& extent = extents_[ranks_[rank].first_extent + index];
      if (operand.kind != ProgramOperand::Kind::local || extent.length == 0) continue;
      const Memory& held = memory(rank, operand.buffer);
      if (extent.start >= held.origin && extent.start + extent.length <= held.origin + held.length) continue;
      return error(TUTTI_ERR_INTERNAL, "rank {}: elements {} to {} are outside of {}", rank, extent.start,
                   extent.start + extent.length, name(operand.buffer));
    }
  }
  return Status();
}

Status Verifier::Machine::run(const Call& call) {
  constexpr uint64_t kMaxCount = 1 << 24;
  if (call.count > kMaxCount) return error(TUTTI_ERR_ARGUMENT, "the verifier judges up to {} elements", kMaxCount);
  if (call.root >= job_.size()) return error(TUTTI_ERR_ARGUMENT, "root {} of {} ranks", call.root, job_.size());
  const uint64_t vectors = job_[0].collective == Collective::alltoall ? job_.size() * job_.size() : job_.size();
  if (!call.counts.empty() && call.counts.size() != vectors) {
    return error(TUTTI_ERR_ARGUMENT, "{} counts for {} blocks", call.counts.size(), vectors);
  }
  bind(call);
  TUTTI_TRY(check_windows());
  TUTTI_TRY(run_all());
  TUTTI_TRY(leftovers());
  return judge_results();
}

Status Verifier::Machine::run_all() {
  while (!ready_.empty()) {
    const uint32_t index = ready_.back();
    ready_.pop_back();
    processes_[index].queued = false;
    if (run_process(index) == Outcome::failed) return Status(TUTTI_ERR_INTERNAL, fault_);
  }
  const auto unfinished = [](const Process& process) { return !process.finished; };
  return std::any_of(processes_.begin(), processes_.end(), unfinished) ? deadlock() : Status();
}

void Verifier::Machine::wake(uint32_t index) {
  if (index == kNone || processes_[index].queued || processes_[index].finished) return;
  processes_[index].queued = true;
  ready_.push_back(index);
}

/// As far as it goes.
Verifier::Machine::Outcome Verifier::Machine::run_process(uint32_t index) {
  Process& process = processes_[index];
  if (process.finished) return Outcome::done;  // woken by its own last step
  do {
    if (const Outcome outcome = run_loop(process); outcome != Outcome::done) return outcome;
    ++process.loop;
  } while (enter_loop(process));
  process.finished = true;
  return Outcome::done;
}

Verifier::Machine::Outcome Verifier::Machine::run_loop(Process& process) {
  const Program& program = job_[process.rank];
  const ProgramLoop& loop = program.loops[process.loop];
  const ProgramStep* steps = program.steps.data() + loop.first_step;
  const uint32_t* lag_from = lag_from_.data() + ranks_[process.rank].first_lag + loop.first_step;
  const uint64_t end = process.iterations + loop.max_lag;
  while (process.iteration < end) {
    while (process.step < loop.step_count && lag_from[process.step] <= process.iteration) {
      const ProgramStep& step = steps[process.step];
      if (process.iteration >= step.lag && process.iteration - step.lag < process.iterations) {
        const uint64_t chunk = process.iteration - step.lag;
        const Outcome outcome = run_step(process, step, chunk);
        if (outcome == Outcome::failed) {
          fault_ = fmt::format("rank {} lane {} step {} ({}) chunk {}: {}", process.rank, process.lane,
                               &step - first_of_lane(process), name(step.verb), chunk, fault_);
        }
        if (outcome != Outcome::done) return outcome;
      }
      ++process.step;
    }
    ++process.iteration;
    while (process.first_live < loop.step_count && process.iteration >= process.iterations + steps[process.first_live].lag) {
      ++process.first_live;
    }
    process.step = process.first_live;
  }
  return Outcome::done;
}

Status Verifier::Machine::deadlock() const {
  constexpr size_t kShown = 4;
  std::string text;
  size_t count = 0;
  for (const Process& process : processes_) {
    if (process.finished || ++count > kShown) continue;
    const Program& program = job_[process.rank];
    const ProgramStep& step = program.steps[program.loops[process.loop].first_step + process.step];
    text += fmt::format("; rank {} lane {} waits at step {} ({}) chunk {} for rank {}", process.rank, process.lane,
                        &step - first_of_lane(process), name(step.verb), process.iteration - step.lag, process.waits_for);
  }
  return error(TUTTI_ERR_INTERNAL, "deadlock of {} lanes{}", count, text);
}

Status Verifier::Machine::leftovers() const {
  for (const Channel& channel : channels_) {
    const uint32_t from = channel.sender == kNone ? kNone : processes_[channel.sender].rank;
    const uint32_t to = channel.receiver == kNone ? kNone : processes_[channel.receiver].rank;
    const bool by_slots = channel.receives.empty() && (channel.sent.empty() || channel.sent[0].transfer == kNone);
    const size_t received = by_slots ? channel.released : channel.receives.size();
    if (channel.sent.size() == received) continue;
    return error(TUTTI_ERR_INTERNAL, "rank {} sends {} messages, rank {} receives {}", static_cast<int32_t>(from),
                 channel.sent.size(), static_cast<int32_t>(to), received);
  }
  return Status();
}

Verifier::Verifier(std::span<const Program> job) : structure_(check_structure(job)) {
  if (structure_.ok()) machine_ = std::make_unique<Machine>(job);
}
Verifier::~Verifier() = default;

Status Verifier::judge(const Call& call) { return structure_.ok() ? machine_->run(call) : structure_; }

}  // namespace tutti
