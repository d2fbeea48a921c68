// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "structure.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "schedule/names.hpp"
#include "schedule/verify.hpp"
#include "tutti/transport.h"

namespace tutti {
namespace {

/// One program of the job.
class ProgramCheck {
 public:
  ProgramCheck(const Program& program, uint32_t rank, uint32_t size) : program_(program), rank_(rank), size_(size) {}

  Status run() {
    if (program_.rank != rank_ || program_.size != size_) {
      return fault("program of rank {} of {} stands at place {} of {}", program_.rank, program_.size, rank_, size_);
    }
    if (program_.lanes.size() > kMaxLanes) return fault("{} lanes; at most {}", program_.lanes.size(), kMaxLanes);
    TUTTI_TRY(divisions());
    TUTTI_TRY(channels());
    for (const Stage& stage : program_.stages) {
      if (stage.lane >= program_.lanes.size() || !std::has_single_bit(stage.depth)) {
        return fault("a stage of lane {} is {} deep", stage.lane, stage.depth);
      }
    }
    for (const PendingRing& ring : program_.pendings) {
      if (!std::has_single_bit(ring.depth)) return fault("a ring of {} tickets: not a power of two", ring.depth);
    }
    pending_users_.resize(program_.pendings.size(), PendingUser{});
    uint32_t next_step = 0;
    uint32_t next_loop = 0;
    for (uint32_t lane = 0; lane < program_.lanes.size(); ++lane) TUTTI_TRY(check_lane(lane, next_loop, next_step));
    if (next_loop != program_.loops.size()) return fault("{} loops stand in no lane", program_.loops.size() - next_loop);
    if (next_step != program_.steps.size()) return fault("{} steps stand in no loop", program_.steps.size() - next_step);
    return Status();
  }

 private:
  template <class... Args>
  Status fault(fmt::format_string<Args...> format, Args&&... args) const {
    return Status(TUTTI_ERR_INTERNAL, fmt::format("rank {}: {}", rank_, fmt::format(format, std::forward<Args>(args)...)));
  }

  Status divisions() const {
    for (const Division& division : program_.divisions) {
      if (division.parts == 0) return fault("a vector is cut into 0 parts");
      if (division.cut == Cut::even) continue;
      if (!has_blocks(program_.collective)) return fault("{} has no blocks", name(program_.collective));
      if (division.parts % size_ != 0) return fault("blocks of {} ranks are cut into {} parts", size_, division.parts);
    }
    for (const ProgramWindow& window : program_.windows) {
      if (window.division == ProgramOperand::kNoData) continue;
      TUTTI_TRY(range("window", window.division, window.first, window.last));
    }
    return Status();
  }

  Status range(std::string_view what, uint16_t division, uint32_t first, uint32_t last) const {
    if (division >= program_.divisions.size()) return fault("division {} of {}", division, program_.divisions.size());
    const uint32_t parts = program_.divisions[division].parts;
    if (first > last || last > parts) return fault("{} {}..{} of {} parts", what, first, last, parts);
    return Status();
  }

  Status channels() const {
    std::set<std::tuple<uint16_t, uint32_t, uint8_t>> seen;
    for (const ProgramChannel& channel : program_.channels) {
      if (channel.peer >= size_ || channel.peer == rank_) return fault("a channel to rank {}", channel.peer);
      if (channel.direction != TUTTI_TP_SEND && channel.direction != TUTTI_TP_RECV) {
        return fault("a channel in direction {}", channel.direction);
      }
      if (channel.lane >= program_.lanes.size()) return fault("a channel of lane {}", channel.lane);
      if (!seen.emplace(channel.lane, channel.peer, channel.direction).second) {
        return fault("lane {} has two channels to rank {}", channel.lane, channel.peer);
      }
    }
    return Status();
  }

  Status check_lane(uint32_t lane_index, uint32_t& next_loop, uint32_t& next_step) {
    const ProgramLane& lane = program_.lanes[lane_index];
    if (lane.first_loop != next_loop || lane.loop_count == 0 || lane.loop_count > program_.loops.size() - next_loop) {
      return fault("lane {} has loops {} to {} of {}", lane_index, lane.first_loop, lane.first_loop + lane.loop_count,
                   program_.loops.size());
    }
    if (lane.segment_bytes == 0) return fault("lane {} has segments of 0 bytes", lane_index);
    next_loop += lane.loop_count;
    for (uint32_t n = lane.first_loop; n < next_loop; ++n) TUTTI_TRY(check_loop(lane_index, n, next_step));
    return Status();
  }

  Status check_loop(uint32_t lane_index, uint32_t loop_index, uint32_t& next_step) {
    const ProgramLoop& loop = program_.loops[loop_index];
    if (loop.first_step != next_step || loop.step_count > program_.steps.size() - next_step) {
      return fault("loop {} has steps {} to {} of {}", loop_index, loop.first_step, loop.first_step + loop.step_count,
                   program_.steps.size());
    }
    next_step += loop.step_count;
    for (uint32_t n = loop.first_step; n < next_step; ++n) {
      const ProgramStep& step = program_.steps[n];
      if (step.lag > loop.max_lag) return fault("step {} lags {}, its loop at most {}", n, step.lag, loop.max_lag);
      const Status status = step.verb == Verb::fold         ? check_fold(step, lane_index)
                            : step.verb == Verb::drain_sent ? check_drain(step, lane_index)
                                                            : check_transfer(step, lane_index, loop_index);
      if (!status.ok()) return status.with_context(fmt::format("lane {} step {} ({})", lane_index, n, name(step.verb)));
    }
    return Status();
  }

  Status check_operand(uint32_t index, uint32_t lane, bool written) const {
    if (index >= program_.operands.size()) return fault("operand {} of {}", index, program_.operands.size());
    const ProgramOperand& operand = program_.operands[index];
    const bool signal = operand.division == ProgramOperand::kNoData;
    if (!signal) TUTTI_TRY(range("slice", operand.division, operand.first, operand.last));
    switch (operand.kind) {
      case ProgramOperand::Kind::local:
        if (static_cast<size_t>(operand.buffer) >= kBufferCount) return fault("operand {} is of no buffer", index);
        if (operand.buffer == BufferId::input && written && !signal) return fault("writes the caller's input");
        if (!signal && program_.windows[static_cast<size_t>(operand.buffer)].division == ProgramOperand::kNoData) {
          return fault("uses {}, which a {} does not have here", name(operand.buffer), name(program_.collective));
        }
        return Status();
      case ProgramOperand::Kind::staged:
        if (operand.index >= program_.stages.size()) return fault("stage {} of {}", operand.index, program_.stages.size());
        if (program_.stages[operand.index].lane != lane) return fault("a stage of lane {}", program_.stages[operand.index].lane);
        return Status();
      case ProgramOperand::Kind::slot:
        return check_channel(operand.index, lane, Carrier::slots, written ? TUTTI_TP_SEND : TUTTI_TP_RECV);
    }
    return fault("operand {} is of no kind", index);
  }

  Status check_channel(uint32_t index, uint32_t lane, Carrier carrier, int direction) const {
    if (index >= program_.channels.size()) return fault("channel {} of {}", index, program_.channels.size());
    const ProgramChannel& channel = program_.channels[index];
    if (channel.lane != lane) return fault("a channel of lane {}", channel.lane);
    if (channel.carrier != carrier) return fault("channel {} carries {}", index, name(channel.carrier));
    if (channel.direction != direction) return fault("channel {} goes the other way", index);
    return Status();
  }

  Status check_fold(const ProgramStep& step, uint32_t lane) const {
    const uint32_t operands = operand_count(step);
    if (step.source_count == 0) return fault("a fold of nothing");
    if (step.destination_count == 0) return fault("a fold into nothing");
    if (operands > kMaxStepOperands) return fault("{} operands; at most {}", operands, kMaxStepOperands);
    for (uint32_t n = 0; n < operands; ++n) {
      TUTTI_TRY(check_operand(step.first_operand + n, lane, n >= step.source_count));
      const ProgramOperand& operand = program_.operands[step.first_operand + n];
      for (uint32_t other = 0; operand.kind == ProgramOperand::Kind::slot && other < n; ++other) {
        const ProgramOperand& slot = program_.operands[step.first_operand + other];
        // Both would be the same message.
        if (slot.kind == ProgramOperand::Kind::slot && slot.index == operand.index) return fault("channel {} twice", slot.index);
      }
    }
    return Status();
  }

  Status check_drain(const ProgramStep& step, uint32_t lane) const {
    if (step.pending >= program_.pendings.size()) return fault("ticket ring {} of {}", step.pending, program_.pendings.size());
    const PendingUser& user = pending_users_[step.pending];
    if (!user.known || user.receives || user.lane != lane) return fault("ticket ring {} is no send's of this lane", step.pending);
    return Status();
  }

  Status check_transfer(const ProgramStep& step, uint32_t lane, uint32_t loop) {
    const bool receives = step.verb == Verb::post_recv || step.verb == Verb::await_received;
    TUTTI_TRY(check_operand(step.first_operand, lane, receives));
    if (program_.operands[step.first_operand].kind == ProgramOperand::Kind::slot) return fault("a transfer of a slot");
    if (step.pending >= program_.pendings.size()) return fault("ticket ring {} of {}", step.pending, program_.pendings.size());
    PendingUser& user = pending_users_[step.pending];
    if (user.known && (user.receives != receives || user.loop != loop)) return fault("ticket ring {} has two uses", step.pending);
    user = {true, receives, lane, loop};
    if (step.verb != Verb::post_send && step.verb != Verb::post_recv) return Status();
    return check_channel(step.channel, lane, Carrier::messages, receives ? TUTTI_TP_RECV : TUTTI_TP_SEND);
  }

  struct PendingUser {
    bool known = false;
    bool receives = false;
    uint32_t lane = 0;
    uint32_t loop = 0;
  };

  const Program& program_;
  const uint32_t rank_;
  const uint32_t size_;
  std::vector<PendingUser> pending_users_;
};

Status check_slice(const Slice& slice, const Schedule& schedule) {
  if (slice.parts == 0 && slice == kSignal) return Status();
  if (slice.parts == 0 || slice.first > slice.last || slice.last > slice.parts) {
    return error(TUTTI_ERR_INTERNAL, "slice {}..{} of {} parts", slice.first, slice.last, slice.parts);
  }
  if (slice.cut == Cut::even) return Status();
  const bool received_elsewhere = slice.cut == Cut::received && schedule.collective != Collective::alltoall;
  if (received_elsewhere || !has_blocks(schedule.collective) || slice.parts % schedule.size != 0) {
    return error(TUTTI_ERR_INTERNAL, "blocks of {} ranks in {} parts, in a {}", schedule.size, slice.parts,
                 name(schedule.collective));
  }
  return Status();
}

bool holds(const Schedule& schedule, BufferId buffer) {
  if (buffer == BufferId::input || buffer == BufferId::output) {
    return window(schedule.collective, buffer, schedule.rank, schedule.root, schedule.size) != kNothing;
  }
  return schedule.scratch[static_cast<size_t>(buffer) - static_cast<size_t>(BufferId::scratch)] != kNothing;
}

Status check_operands(const std::vector<Operand>& operands, const Schedule& schedule, bool written) {
  std::set<uint32_t> peers;
  for (const Operand& operand : operands) {
    TUTTI_TRY(check_slice(operand.slice, schedule));
    if (operand.kind == Operand::Kind::message) {
      if (operand.peer >= schedule.size || operand.peer == schedule.rank) {
        return error(TUTTI_ERR_INTERNAL, "a message {} rank {}", written ? "to" : "from", operand.peer);
      }
      if (!peers.insert(operand.peer).second) return error(TUTTI_ERR_INTERNAL, "rank {} twice in one step", operand.peer);
    } else if (operand.buffer == BufferId::input && written && operand.slice.parts != 0) {
      return error(TUTTI_ERR_INTERNAL, "writes the caller's input");
    } else if (operand.slice.parts != 0 && !holds(schedule, operand.buffer)) {
      return error(TUTTI_ERR_INTERNAL, "uses {}, which a {} does not have here", name(operand.buffer), name(schedule.collective));
    }
  }
  return Status();
}

Status check_step(const Step& step, const Schedule& schedule) {
  if (step.sources.empty() || step.destinations.empty()) return error(TUTTI_ERR_INTERNAL, "no source or no destination");
  if (step.sources.size() + step.destinations.size() > kMaxStepOperands) return error(TUTTI_ERR_INTERNAL, "too many operands");
  TUTTI_TRY(check_operands(step.sources, schedule, false));
  TUTTI_TRY(check_operands(step.destinations, schedule, true));
  const bool signal = step.sources.front().slice.parts == 0;
  const auto differs = [signal](const Operand& operand) { return (operand.slice.parts == 0) != signal; };
  if (std::any_of(step.sources.begin(), step.sources.end(), differs) ||
      std::any_of(step.destinations.begin(), step.destinations.end(), differs)) {
    return error(TUTTI_ERR_INTERNAL, "a signal among data");
  }
  return Status();
}

}  // namespace

Status check(const Schedule& schedule) {
  if (schedule.rank >= schedule.size) return error(TUTTI_ERR_INTERNAL, "rank {} of {}", schedule.rank, schedule.size);
  if (schedule.lanes.size() > kMaxLanes)
    return error(TUTTI_ERR_INTERNAL, "{} lanes; at most {}", schedule.lanes.size(), kMaxLanes);
  for (const Slice& window : schedule.scratch) TUTTI_TRY(check_slice(window, schedule));
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    const std::vector<Step>& steps = schedule.lanes[lane].steps;
    for (size_t n = 0; n < steps.size(); ++n) {
      const bool follows = n == 0 || steps[n].loop >= steps[n - 1].loop;
      const Status status = follows ? check_step(steps[n], schedule) : Status(TUTTI_ERR_INTERNAL, "stands after a later loop");
      if (!status.ok()) return status.with_context(fmt::format("rank {} lane {} step {}", schedule.rank, lane, n));
    }
  }
  return Status();
}

Status check_structure(std::span<const Program> job) {
  if (job.empty()) return error(TUTTI_ERR_INTERNAL, "a job of no ranks");
  const auto size = static_cast<uint32_t>(job.size());
  std::map<std::tuple<uint16_t, uint32_t, uint32_t>, Carrier> carriers;  // (lane, from, to)
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (job[rank].collective != job[0].collective) return error(TUTTI_ERR_INTERNAL, "rank {}: another collective", rank);
    TUTTI_TRY(ProgramCheck(job[rank], rank, size).run());
    for (const ProgramChannel& channel : job[rank].channels) {
      const bool sends = channel.direction == TUTTI_TP_SEND;
      const auto key = std::make_tuple(channel.lane, sends ? rank : channel.peer, sends ? channel.peer : rank);
      const auto [entry, is_new] = carriers.emplace(key, channel.carrier);
      if (!is_new && entry->second != channel.carrier) {
        return error(TUTTI_ERR_INTERNAL, "ranks {} and {} use different carriers", rank, channel.peer);
      }
    }
  }
  return Status();
}

}  // namespace tutti
