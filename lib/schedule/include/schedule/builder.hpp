// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/algorithm.hpp"

/// Words that let an algorithm file read like its paper:
///
///     ScheduleBuilder plan(Collective::allreduce, request);
///     LaneBuilder lane = plan.lane(segment_bytes);
///     lane.at(0).send(next, input(block));
///     lane.at(0).recv_reduce(previous, input(block), output(block)).finalize();
///     lane.then().send(next, output());
namespace tutti {

inline Operand local(BufferId buffer, Slice slice) { return {Operand::Kind::local, buffer, 0, slice}; }
inline Operand input(Slice slice = kWhole) { return local(BufferId::input, slice); }
inline Operand output(Slice slice = kWhole) { return local(BufferId::output, slice); }
inline Operand scratch(Slice slice = kWhole) { return local(BufferId::scratch, slice); }
inline Operand scratch_b(Slice slice = kWhole) { return local(BufferId::scratch_b, slice); }
inline Operand scratch_c(Slice slice = kWhole) { return local(BufferId::scratch_c, slice); }
/// A message from a peer (as a source) or to one (as a destination).
inline Operand message(uint32_t peer, Slice slice = kWhole) { return {Operand::Kind::message, BufferId::input, peer, slice}; }
/// Part `index` of a vector cut evenly into `parts`.
inline Slice part(uint32_t index, uint32_t parts) { return {parts, index, index + 1, Cut::even}; }
/// Share `share` of `shares` of the block of rank `rank`, of `size` ranks.
inline Slice block_of(uint32_t rank, uint32_t size, uint32_t share = 0, uint32_t shares = 1) {
  return {size * shares, rank * shares + share, rank * shares + share + 1, Cut::blocks};
}
/// The blocks of ranks [first, last).
inline Slice blocks_of(uint32_t first, uint32_t last, uint32_t size) { return {size, first, last, Cut::blocks}; }
/// Alltoall: the share of what came, or comes, from rank `rank`.
inline Slice received_from(uint32_t rank, uint32_t size, uint32_t share = 0, uint32_t shares = 1) {
  return {size * shares, rank * shares + share, rank * shares + share + 1, Cut::received};
}

/// The step just added, to refine it.
class StepBuilder {
 public:
  explicit StepBuilder(Step& step) : step_(&step) {}
  /// Marks the fold as complete: exactly once for each output element of a reduction.
  StepBuilder& finalize(bool complete = true) {
    step_->finalize = complete;
    return *this;
  }

 private:
  Step* step_;
};

/// Appends steps to one lane. Cheap to copy; valid as long as the ScheduleBuilder that made it.
class LaneBuilder {
 public:
  LaneBuilder(Schedule& schedule, size_t lane) : schedule_(&schedule), lane_(lane) {}

  /// The same lane, with steps that work `lag` iterations behind the first.
  LaneBuilder at(uint32_t lag) const {
    LaneBuilder moved = *this;
    moved.lag_ = static_cast<uint16_t>(lag);
    return moved;
  }
  /// The same lane, with steps of a loop that begins when all steps before have done all their chunks.
  LaneBuilder then() const {
    LaneBuilder moved = *this;
    moved.lag_ = 0;
    const std::vector<Step>& steps = schedule_->lanes[lane_].steps;
    moved.loop_ = steps.empty() ? uint16_t{0} : static_cast<uint16_t>(steps.back().loop + 1);
    return moved;
  }

  /// destinations[] = sources[0] op sources[1] op ...: all other words are short for this one.
  StepBuilder fold(std::vector<Operand> sources, std::vector<Operand> destinations) const {
    std::vector<Step>& steps = schedule_->lanes[lane_].steps;
    steps.push_back({std::move(sources), std::move(destinations), lag_, loop_, false});
    return StepBuilder(steps.back());
  }
  StepBuilder copy(Operand from, Operand to) const { return fold({from}, {to}); }
  StepBuilder send(uint32_t peer, Operand from) const { return fold({from}, {message(peer, from.slice)}); }
  StepBuilder recv(uint32_t peer, Operand to) const { return fold({message(peer, to.slice)}, {to}); }
  /// to = message op own.
  StepBuilder recv_reduce(uint32_t peer, Operand own, Operand to) const { return fold({message(peer, to.slice), own}, {to}); }
  /// Receives, and passes on to `next` as well.
  StepBuilder forward(uint32_t peer, Operand to, const std::vector<uint32_t>& next) const {
    std::vector<Operand> destinations = {to};
    for (const uint32_t rank : next) destinations.push_back(message(rank, to.slice));
    return fold({message(peer, to.slice)}, std::move(destinations));
  }
  /// message to `next` = message from `peer` op own, kept nowhere.
  StepBuilder reduce_forward(uint32_t peer, Operand own, uint32_t next) const {
    return fold({message(peer, own.slice), own}, {message(next, own.slice)});
  }
  /// A message without data, and its receipt.
  StepBuilder signal(uint32_t peer) const { return send(peer, input(kSignal)); }
  StepBuilder await_signal(uint32_t peer) const { return recv(peer, output(kSignal)); }

 private:
  Schedule* schedule_;
  size_t lane_;
  uint16_t lag_ = 0;
  uint16_t loop_ = 0;
};

class ScheduleBuilder {
 public:
  ScheduleBuilder(Collective collective, const PlanRequest& request)
      : schedule_{collective, request.rank, request.shape.size, request.root, {}, {kNothing, kNothing, kNothing}} {}

  /// segment_bytes = 0: chunks as long as the transport allows.
  LaneBuilder lane(uint64_t segment_bytes = 0) {
    schedule_.lanes.push_back({{}, segment_bytes});
    return {schedule_, schedule_.lanes.size() - 1};
  }
  /// Declares what part of the vector scratch memory holds; needed before it is used.
  void hold(BufferId scratch, Slice window) {
    schedule_.scratch[static_cast<size_t>(scratch) - static_cast<size_t>(BufferId::scratch)] = window;
  }
  Schedule take() { return std::move(schedule_); }

 private:
  Schedule schedule_;
};

}  // namespace tutti
