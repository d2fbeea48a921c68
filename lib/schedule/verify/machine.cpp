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
    ranks_[rank].first_stage = static_cast<uint32_t>(stages_.size());
    stages_.resize(stages_.size() + program.stages.size());
    ranks_[rank].first_ticket_ring = static_cast<uint32_t>(tickets_.size());
    for (const PendingRing& ring : program.pendings) tickets_.emplace_back(ring.depth, kNone);
    ranks_[rank].first_lag = static_cast<uint32_t>(lag_from_.size());
    lag_from_.resize(lag_from_.size() + program.steps.size());
    for (const ProgramLane& lane : program.lanes) {
      uint32_t smallest = UINT32_MAX;
      for (uint32_t n = lane.step_count; n-- > 0;) {
        smallest = std::min<uint32_t>(smallest, program.steps[lane.first_step + n].lag);
        lag_from_[ranks_[rank].first_lag + lane.first_step + n] = smallest;
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
  for (Process& process : processes_) {
    const ProgramLane& lane = job_[process.rank].lanes[process.lane];
    process.segment = std::max<uint64_t>(1, lane.segment_bytes / call.element_bytes);
    process.iterations = bind_lane(process.rank, process.lane, process.segment);
    process.iteration = 0;
    process.step = process.first_live = 0;
    process.queued = true;
    process.finished = false;
    process.waits_for = kNone;
    ready_.push_back(static_cast<uint32_t>(&process - processes_.data()));
  }
  uint64_t cells = 0;
  for (uint32_t rank = 0; rank < job_.size(); ++rank) bind_memory(rank, cells);
  cells_.assign(cells, Cell{});
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    if (job_[rank].collective == Collective::broadcast && rank != call.root) continue;
    const BufferId given = job_[rank].collective == Collective::broadcast ? BufferId::output : BufferId::input;
    for (uint32_t n = 0; n < call.count; ++n) {
      cells_[ranks_[rank].buffer[static_cast<size_t>(given)] + n].value = {Terms::leaf(rank), n};
    }
  }
  heard_of_messages_.clear();
  heard_.assign(processes_.size() * heard_words_, 0);
  for (size_t n = 0; heard_words_ > 0 && n < processes_.size(); ++n) {
    heard_[n * heard_words_ + processes_[n].rank / 64] |= uint64_t{1} << (processes_[n].rank % 64);
  }
}

/// Extents of the lane's operands; the number of its chunks, as the engine counts them.
uint64_t Verifier::Machine::bind_lane(uint32_t rank, uint32_t lane_index, uint64_t segment) {
  const Program& program = job_[rank];
  const ProgramLane& lane = program.lanes[lane_index];
  uint64_t longest = 0;
  bool signals = false;
  for (uint32_t n = lane.first_step; n < lane.first_step + lane.step_count; ++n) {
    const ProgramStep& step = program.steps[n];
    const uint32_t operands = step.verb == Verb::fold ? uint32_t{step.source_count} + step.destination_count : 1;
    for (uint32_t index = step.first_operand; index < step.first_operand + operands; ++index) {
      const ProgramOperand& operand = program.operands[index];
      Extent& extent = extents_[ranks_[rank].first_extent + index];
      extent = {};
      extent.signal = operand.divisor == ProgramOperand::kNoData;
      signals |= extent.signal;
      if (extent.signal) continue;
      const uint64_t quotient = call_.count / program.divisors[operand.divisor];
      const uint64_t remainder = call_.count % program.divisors[operand.divisor];
      const auto bound = [&](uint64_t part) { return part * quotient + std::min(part, remainder); };
      extent.start = static_cast<uint32_t>(bound(operand.first));
      extent.length = static_cast<uint32_t>(bound(operand.last) - bound(operand.first));
      const uint64_t width = operand.last - operand.first;
      longest = std::max(longest, width * quotient + std::min(width, remainder));
    }
  }
  const uint64_t iterations = (longest + segment - 1) / segment;
  return signals ? std::max<uint64_t>(iterations, 1) : iterations;
}

void Verifier::Machine::bind_memory(uint32_t rank, uint64_t& cells) {
  const auto take = [&cells](uint64_t count) {
    const auto first = static_cast<uint32_t>(cells);
    cells += count;
    return first;
  };
  Rank& own = ranks_[rank];
  own.buffer[0] = take(call_.count);
  own.buffer[1] = call_.in_place ? own.buffer[0] : take(call_.count);
  own.buffer[2] = job_[rank].uses_scratch ? take(call_.count) : 0;
  for (size_t n = 0; n < job_[rank].stages.size(); ++n) {
    const Stage& stage = job_[rank].stages[n];
    // No chunk is longer than the buffers: the rest of a segment is not needed.
    const uint64_t stride = std::min(call_.count, processes_[own.first_process + stage.lane].segment);
    stages_[own.first_stage + n] = {take(stride * stage.depth), static_cast<uint32_t>(stride)};
  }
}

Status Verifier::Machine::run(const Call& call) {
  constexpr uint64_t kMaxCount = 1 << 24;
  if (call.count > kMaxCount) return error(TUTTI_ERR_ARGUMENT, "the verifier judges up to {} elements", kMaxCount);
  if (call.root >= job_.size()) return error(TUTTI_ERR_ARGUMENT, "root {} of {} ranks", call.root, job_.size());
  bind(call);
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
  const Program& program = job_[process.rank];
  const ProgramLane& lane = program.lanes[process.lane];
  const ProgramStep* steps = program.steps.data() + lane.first_step;
  const uint32_t* lag_from = lag_from_.data() + ranks_[process.rank].first_lag + lane.first_step;
  const uint64_t end = process.iterations == 0 ? 0 : process.iterations + lane.max_lag;
  while (process.iteration < end) {
    while (process.step < lane.step_count && lag_from[process.step] <= process.iteration) {
      const ProgramStep& step = steps[process.step];
      if (process.iteration >= step.lag && process.iteration - step.lag < process.iterations) {
        const uint64_t chunk = process.iteration - step.lag;
        const Outcome outcome = run_step(process, step, chunk);
        if (outcome == Outcome::failed) {
          fault_ = fmt::format("rank {} lane {} step {} ({}) chunk {}: {}", process.rank, process.lane, process.step,
                               name(step.verb), chunk, fault_);
        }
        if (outcome != Outcome::done) return outcome;
      }
      ++process.step;
    }
    ++process.iteration;
    while (process.first_live < lane.step_count && process.iteration >= process.iterations + steps[process.first_live].lag) {
      ++process.first_live;
    }
    process.step = process.first_live;
  }
  process.finished = true;
  return Outcome::done;
}

Status Verifier::Machine::deadlock() const {
  constexpr size_t kShown = 4;
  std::string text;
  size_t count = 0;
  for (const Process& process : processes_) {
    if (process.finished || ++count > kShown) continue;
    const Program& program = job_[process.rank];
    const ProgramStep& step = program.steps[program.lanes[process.lane].first_step + process.step];
    text += fmt::format("; rank {} lane {} waits at step {} ({}) chunk {} for rank {}", process.rank, process.lane, process.step,
                        name(step.verb), process.iteration - step.lag, process.waits_for);
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

Status Verifier::Machine::judge_results() {
  // Everything has arrived: what was not awaited within the program is by the engine, at the end.
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    for (size_t ring = 0; ring < job_[rank].pendings.size(); ++ring) {
      for (uint32_t& ticket : tickets_[ranks_[rank].first_ticket_ring + ring]) {
        if (ticket == kNone) continue;
        const Channel& channel = channels_[transfers_[ticket].channel];
        const uint32_t owner = transfers_[ticket].receives ? channel.receiver : channel.sender;
        if (settle(processes_[owner], ticket) != Outcome::done) return error(TUTTI_ERR_INTERNAL, "a transfer never ends");
      }
    }
  }
  if (job_[0].collective == Collective::barrier) return judge_barrier();
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    for (uint64_t n = 0; n < call_.count; ++n) {
      const Value& value = cells_[ranks_[rank].buffer[1] + n].value;
      if (value.term == Terms::kUndefined) return error(TUTTI_ERR_INTERNAL, "rank {}: element {} has no result", rank, n);
      if (value.element != n) return error(TUTTI_ERR_INTERNAL, "rank {}: element {} holds element {}", rank, n, value.element);
      TUTTI_TRY(judge_reduction(rank, n, value));
      const Value& first = cells_[ranks_[0].buffer[1] + n].value;
      if (value.term == first.term) continue;
      return error(TUTTI_ERR_INTERNAL, "element {} is {} on rank 0, but {} on rank {}", n, terms_.text(first.term),
                   terms_.text(value.term), rank);
    }
  }
  return Status();
}

Status Verifier::Machine::judge_reduction(uint32_t rank, uint64_t element, const Value& value) const {
  if (job_[0].collective == Collective::broadcast) {
    if (value.term == Terms::leaf(call_.root)) return Status();
    return error(TUTTI_ERR_INTERNAL, "rank {}: element {} is {}, not the root's", rank, element, terms_.text(value.term));
  }
  const Terms::Facts& facts = terms_.facts(value.term);
  const char* why = nullptr;
  if (facts.repeated) why = "a contribution is in it twice";
  if (facts.contributions < job_.size()) why = "a contribution is missing";
  if (!facts.finalized || facts.misfinalized) why = "it is not finalized exactly once, at the end";
  if (call_.rank_ordered && !facts.in_order) why = "it is not in rank order";
  if (why == nullptr) return Status();
  return error(TUTTI_ERR_INTERNAL, "rank {}: element {} is {}: {}", rank, element, terms_.text(value.term), why);
}

Status Verifier::Machine::judge_barrier() const {
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    for (uint32_t other = 0; other < job_.size(); ++other) {
      bool heard = rank == other;
      for (size_t lane = 0; lane < job_[rank].lanes.size(); ++lane) {
        const size_t process = ranks_[rank].first_process + lane;
        heard |= (heard_[process * heard_words_ + other / 64] >> (other % 64) & 1) != 0;
      }
      if (!heard) return error(TUTTI_ERR_INTERNAL, "rank {} may end before rank {} begins", rank, other);
    }
  }
  return Status();
}

Verifier::Verifier(std::span<const Program> job) : structure_(check_structure(job)) {
  if (structure_.ok()) machine_ = std::make_unique<Machine>(job);
}
Verifier::~Verifier() = default;

Status Verifier::judge(const Call& call) { return structure_.ok() ? machine_->run(call) : structure_; }

}  // namespace tutti
