// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "engine/plan.hpp"

namespace tutti {

/// One run of a Plan: a resumable interpreter. Its position (loop, iteration, step) in each lane is its whole state, so that
/// blocking, non-blocking and simulated calls are the same code. Driven by one thread at a time.
class Execution {
 public:
  enum class Outcome : uint8_t { done, blocked, failed };

  /// Binds arguments; touches no channel. The plan must not be running.
  void start(Plan& plan, const Bindings& bindings);
  /// The run that was started last once more, with the same arguments but for the mark; or with other data as well.
  void start_again(uint32_t mark);
  void start_again(uint32_t mark, const void* input, void* output, uint64_t count);
  /// Goes as far as possible without blocking. `moved` tells whether anything was done. After `failed` status() says why; then
  /// the communicator's channels must be closed before the caller's buffers are given back.
  Outcome advance(bool& moved);
  const Status& status() const noexcept { return status_; }
  /// Transfers that are posted and not completed.
  uint32_t outstanding() const noexcept { return outstanding_; }
  /// World rank at the other end of what failed; UINT32_MAX if it was no peer.
  uint32_t culprit() const noexcept { return culprit_; }
  /// The mark of the message whose mark or length was wrong.
  uint32_t foreign_mark() const noexcept { return foreign_mark_; }
  /// After `failed`: goes no further, and says `blocked`.
  void hold() noexcept {
    lanes_.clear();
    lanes_left_ = 1;
  }
  /// World ranks that the run waits for now (one a lane at most), for diagnosis and for peers that left.
  std::vector<uint32_t> waiting_for() const;
  /// Forgets everything posted (its channels have been closed).
  void abandon() noexcept;

  static constexpr uint32_t kMaxLanes = 64;
  static constexpr uint32_t kMaxOperands = 64;

 private:
  struct LaneState {
    uint64_t iterations = 0;  // chunks of the current loop
    uint64_t iteration = 0;
    uint32_t step = 0;        // within the loop
    uint32_t first_live = 0;  // steps before it have done all their chunks
    bool done = false;
    uint32_t loop = 0;                   // within the lane
    uint32_t blocked_peer = UINT32_MAX;  // world rank whose slot a blocked fold waits for
  };
  enum class StepResult : uint8_t { done, blocked, failed };

  void bind();
  void rewind();
  [[gnu::noinline]] void forget_failure();
  [[gnu::noinline]] void start_anew();                                        // another run has bound the plan since
  bool advance_lane(uint32_t lane_index, bool& moved);                        // true: lane done
  bool advance_loop(const ProgramLane& lane, LaneState& state, bool& moved);  // true: at its end
  bool advance_once(const ProgramLoop& loop, LaneState& state, bool& moved);
  bool enter_next_loop(const ProgramLane& lane, LaneState& state) const noexcept;
  StepResult run_step(uint32_t index, uint64_t chunk);
  StepResult fold(uint32_t index, uint64_t chunk);
  StepResult post(uint32_t index, uint64_t chunk);
  StepResult await(const ProgramStep& step, uint64_t chunk);
  StepResult take_slots(const ProgramStep& step, uint64_t bytes, void** places);
  StepResult give_slots(const ProgramStep& step, uint64_t bytes);
  StepResult settle(Ticket& ticket);
  StepResult fail(Status status, uint32_t culprit = UINT32_MAX);
  StepResult link_failed(tutti_status_t status, const ChannelHandle& channel);
  StepResult foreign(uint32_t got_mark, uint64_t got_bytes, uint64_t wanted_bytes, uint32_t peer);
  bool drained();
  bool settle_all(std::vector<Ticket>& ring);
  StepResult blocked_or_failed() const noexcept { return status_.ok() ? StepResult::blocked : StepResult::failed; }
  uintptr_t from_origin(BufferId buffer, const void* memory) const noexcept;
  void* memory(const Plan::BoundOperand& operand, uint64_t chunk) const noexcept;

  Plan* plan_ = nullptr;
  Bindings bindings_;
  uintptr_t buffers_[kBufferCount + 1] = {};  // the last one for operands that are addresses
  std::vector<LaneState> lanes_;
  std::vector<LaneState> first_lanes_;  // as a run with the bound lengths begins
  uint32_t first_lanes_left_ = 0;
  uint32_t lanes_left_ = 0;
  uint32_t outstanding_ = 0;  // tickets posted and not yet settled
  Status status_;
  uint32_t culprit_ = UINT32_MAX;
  uint32_t foreign_mark_ = 0;
  uint32_t blocked_peer_ = UINT32_MAX;
};

}  // namespace tutti
