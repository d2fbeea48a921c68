// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/execution.hpp"

#include <algorithm>

namespace tutti {
namespace {

/// Its lengths are in no arrays, which may change between two calls.
bool is_plain(const Bindings& x) noexcept {
  return x.lengths.counts.empty() && x.lengths.received_counts.empty() && x.input_places.empty() && x.output_places.empty();
}

}  // namespace

void Execution::start(Plan& plan, const Bindings& bindings) {
  const bool repeats = plan_ == &plan && plan.bound_by_ == this && is_plain(bindings) &&
                       bindings.lengths.count == bindings_.lengths.count && bindings.element_bytes == bindings_.element_bytes;
  plan_ = &plan;
  bindings_ = bindings;
  if (!repeats) bind();
  // Buffers are written through output and scratch only; a program never names input as a destination (the verifier proves it).
  buffers_[0] = from_origin(BufferId::input, const_cast<void*>(bindings.input));
  buffers_[1] = from_origin(BufferId::output, bindings.output);
  rewind();
}

void Execution::start_again(uint32_t mark) {
  bindings_.mark = mark;
  if (plan_->bound_by_ == this) {
    rewind();
  } else {
    start_anew();
  }
}

void Execution::start_anew() { start(*plan_, Bindings(bindings_)); }

void Execution::start_again(uint32_t mark, const void* input, void* output, uint64_t count) {
  if (count != bindings_.lengths.count) {
    bindings_.lengths.count = count;
    if (plan_->bound_by_ != this || !plan_->bind_whole(count, bindings_.element_bytes)) bind();
  }
  bindings_.input = input;
  bindings_.output = output;
  buffers_[0] = from_origin(BufferId::input, const_cast<void*>(input));
  buffers_[1] = from_origin(BufferId::output, output);
  start_again(mark);
}

void Execution::rewind() {
  if (!status_.ok() || lanes_.size() != first_lanes_.size()) forget_failure();
  culprit_ = UINT32_MAX;
  outstanding_ = 0;
  const LaneState* first = first_lanes_.data();
  for (LaneState& lane : lanes_) lane = *first++;  // few: a call of memmove costs more
  lanes_left_ = first_lanes_left_;
}

/// Also for the first run.
void Execution::forget_failure() {
  status_ = Status();
  lanes_.resize(first_lanes_.size());
}

/// Everything that only the lengths of the call decide.
void Execution::bind() {
  Plan& plan = *plan_;
  plan.bound_by_ = nullptr;  // if there is no memory for the rest
  plan.bind(bindings_);
  for (size_t n = 0; plan.has_scratch_ && n < plan.scratch_.size(); ++n) {
    const size_t buffer = static_cast<size_t>(BufferId::scratch) + n;
    buffers_[buffer] = from_origin(static_cast<BufferId>(buffer), plan.scratch_[n].data());
  }
  const std::vector<ProgramLane>& lanes = plan.program_.lanes;
  first_lanes_.resize(lanes.size());
  first_lanes_left_ = 0;
  for (size_t l = 0; l < lanes.size(); ++l) {
    LaneState& state = first_lanes_[l];
    state = LaneState{plan.iterations(lanes[l], 0, bindings_.element_bytes)};
    state.done = state.iterations == 0 && !enter_next_loop(lanes[l], state);
    first_lanes_left_ += !state.done;
  }
  if (is_plain(bindings_)) plan.bound_by_ = this;
}

/// Where element 0 of the vector would lie, given where the buffer's first one does. A number, since it may be no object's
/// address.
uintptr_t Execution::from_origin(BufferId buffer, const void* memory) const noexcept {
  const ProgramWindow& held = plan_->program_.windows[static_cast<size_t>(buffer)];
  const auto address = reinterpret_cast<uintptr_t>(memory);
  // Also where there is no such buffer, and where its blocks have places of their own: these are counted from its first byte.
  if (held.first == 0) return address;
  if (buffer <= BufferId::output && plan_->bounds_[held.division].places[static_cast<size_t>(buffer)] != nullptr) return address;
  return address - plan_->bound(held.division, held.first) * bindings_.element_bytes;
}

Execution::Outcome Execution::advance(bool& moved) {
  for (uint32_t l = 0; l < lanes_.size() && lanes_left_ > 0; ++l) {
    if (lanes_[l].done) continue;
    if (advance_lane(l, moved)) {
      lanes_[l].done = true;
      --lanes_left_;
    }
    if (!status_.ok()) return Outcome::failed;
  }
  if (lanes_left_ > 0) return Outcome::blocked;
  if (outstanding_ > 0 && !drained()) return status_.ok() ? Outcome::blocked : Outcome::failed;
  return Outcome::done;
}

bool Execution::advance_lane(uint32_t lane_index, bool& moved) {
  const ProgramLane& lane = plan_->program_.lanes[lane_index];
  LaneState& state = lanes_[lane_index];
  do {
    if (!advance_loop(lane, state, moved)) return false;
  } while (enter_next_loop(lane, state));
  return true;
}

/// The next that has anything to do.
bool Execution::enter_next_loop(const ProgramLane& lane, LaneState& state) const noexcept {
  for (uint32_t loop = state.loop + 1; loop < lane.loop_count; ++loop) {
    const uint64_t iterations = plan_->iterations(lane, loop, bindings_.element_bytes);
    if (iterations == 0) continue;
    state = LaneState{iterations};
    state.loop = loop;
    return true;
  }
  return false;
}

bool Execution::advance_loop(const ProgramLane& lane, LaneState& state, bool& moved) {
  const ProgramLoop& loop = plan_->program_.loops[lane.first_loop + state.loop];
  if (state.iterations == 1 && loop.max_lag == 0) return advance_once(loop, state, moved);
  const Plan::LoopTable& table = plan_->loops_[lane.first_loop + state.loop];
  const ProgramStep* steps = plan_->program_.steps.data() + loop.first_step;
  const uint64_t end = state.iterations + loop.max_lag;
  while (state.iteration < end) {
    while (state.step < loop.step_count && table.lag_from[state.step] <= state.iteration) {
      const ProgramStep& step = steps[state.step];
      if (state.iteration >= step.lag && state.iteration - step.lag < state.iterations) {
        const StepResult result = run_step(loop.first_step + state.step, state.iteration - step.lag);
        if (result != StepResult::done) {
          state.blocked_peer = blocked_peer_;
          return false;
        }
        moved = true;
      }
      ++state.step;
    }
    ++state.iteration;
    while (state.first_live < loop.step_count && state.iteration >= state.iterations + steps[state.first_live].lag)
      ++state.first_live;
    state.step = state.first_live;
  }
  return true;
}

/// A loop of one chunk, as short messages are.
inline bool Execution::advance_once(const ProgramLoop& loop, LaneState& state, bool& moved) {
  for (; state.step < loop.step_count; ++state.step) {
    if (run_step(loop.first_step + state.step, 0) != StepResult::done) {
      state.blocked_peer = blocked_peer_;
      return false;
    }
    moved = true;
  }
  return true;
}

inline void* Execution::memory(const Plan::BoundOperand& operand, uint64_t chunk) const noexcept {
  return reinterpret_cast<void*>(buffers_[operand.buffer] + operand.offset_bytes + (chunk & operand.mask) * operand.stride_bytes);
}

inline Execution::StepResult Execution::run_step(uint32_t index, uint64_t chunk) {
  const ProgramStep& step = plan_->program_.steps[index];
  switch (step.verb) {
    case Verb::fold:
      return fold(index, chunk);
    case Verb::post_send:
    case Verb::post_recv:
      return post(index, chunk);
    case Verb::await_sent:
    case Verb::await_received:
      return await(step, chunk);
    case Verb::drain_sent:
      return chunk > 0 || settle_all(plan_->tickets_[step.pending]) ? StepResult::done : blocked_or_failed();
  }
  return fail(error(TUTTI_ERR_INTERNAL, "program of rank {} has an unknown verb", plan_->program_.rank));
}

Execution::StepResult Execution::take_slots(const ProgramStep& step, uint64_t bytes, void** places) {
  const Plan::BoundOperand* operands = plan_->bound_operands_.data() + step.first_operand;
  const uint32_t operand_count = tutti::operand_count(step);
  for (uint32_t i = 0; i < operand_count; ++i) {
    if (operands[i].channel == nullptr) continue;
    const ChannelHandle& channel = *operands[i].channel;
    tutti_status_t status;
    uint64_t got_bytes = bytes;
    uint32_t got_mark = bindings_.mark;
    if (i < step.source_count) {
      const void* slot = nullptr;
      status = channel.table->slot_peek(channel.channel, &slot, &got_bytes, &got_mark);
      places[i] = const_cast<void*>(slot);
    } else {
      status = channel.table->slot_reserve(channel.channel, bytes, &places[i]);
    }
    if (status == TUTTI_TP_AGAIN) {
      blocked_peer_ = channel.peer;
      return StepResult::blocked;
    }
    if (status != TUTTI_OK) return link_failed(status, channel);
    if (got_bytes != bytes || got_mark != bindings_.mark) return foreign(got_mark, got_bytes, bytes, channel.peer);
  }
  return StepResult::done;
}

Execution::StepResult Execution::give_slots(const ProgramStep& step, uint64_t bytes) {
  const Plan::BoundOperand* operands = plan_->bound_operands_.data() + step.first_operand;
  const uint32_t operand_count = tutti::operand_count(step);
  for (uint32_t i = 0; i < operand_count; ++i) {
    if (operands[i].channel == nullptr) continue;
    const ChannelHandle& channel = *operands[i].channel;
    const tutti_status_t status = i < step.source_count ? channel.table->slot_release(channel.channel)
                                                        : channel.table->slot_commit(channel.channel, bytes, bindings_.mark);
    if (status != TUTTI_OK) return link_failed(status, channel);
  }
  return StepResult::done;
}

Execution::StepResult Execution::fold(uint32_t index, uint64_t chunk) {
  const Plan::BoundStep& bound = plan_->bound_steps_[index];
  const uint64_t from = chunk * bound.segment;
  if (from >= bound.length && !(bound.signals && chunk == 0)) return StepResult::done;
  const uint64_t elements = std::min(bound.segment, bound.length - from);
  const uint64_t bytes = elements * bindings_.element_bytes;
  const ProgramStep& step = plan_->program_.steps[index];
  const Plan::BoundOperand* operands = plan_->bound_operands_.data() + step.first_operand;
  const uint32_t operand_count = uint32_t{step.source_count} + step.destination_count;
  void* places[kMaxOperands];
  for (uint32_t i = 0; i < operand_count; ++i) places[i] = memory(operands[i], chunk);
  if (bound.has_slots)
    if (const StepResult result = take_slots(step, bytes, places); result != StepResult::done) return result;
  if (elements > 0 && step.destination_count > 0) {
    void** destinations = places + step.source_count;
    const uint64_t divisor = step.finalize ? bindings_.divisor : 1;
    if (step.source_count == 1 && divisor <= 1)
      copy_bytes(destinations, step.destination_count, places[0], bytes);
    else
      bindings_.fold(
          {destinations, places, step.destination_count, step.source_count, elements, divisor, bindings_.fold_context});
  }
  return bound.has_slots ? give_slots(step, bytes) : StepResult::done;
}

Execution::StepResult Execution::post(uint32_t index, uint64_t chunk) {
  const Plan::BoundStep& bound = plan_->bound_steps_[index];
  const uint64_t from = chunk * bound.segment;
  if (from >= bound.length && !(bound.signals && chunk == 0)) return StepResult::done;
  const uint64_t elements = std::min(bound.segment, bound.length - from);
  const ProgramStep& step = plan_->program_.steps[index];
  std::vector<Ticket>& ring = plan_->tickets_[step.pending];
  Ticket& ticket = ring[chunk & (ring.size() - 1)];
  if (ticket.posted)
    if (const StepResult result = settle(ticket); result != StepResult::done) return result;
  const ChannelHandle& channel = *plan_->channels_[step.channel];
  const uint64_t bytes = elements * bindings_.element_bytes;
  void* place = memory(plan_->bound_operands_[step.first_operand], chunk);
  ticket.op = tutti_tp_op_t{};
  const tutti_status_t status = step.verb == Verb::post_send
                                    ? channel.table->post_send(channel.channel, place, bytes, bindings_.mark, &ticket.op)
                                    : channel.table->post_recv(channel.channel, place, bytes, &ticket.op);
  if (status == TUTTI_TP_AGAIN) return StepResult::blocked;
  if (status != TUTTI_OK) return link_failed(status, channel);
  ticket.posted = true;
  ticket.peer = channel.peer;
  ticket.bytes = bytes;
  ticket.receives = step.verb == Verb::post_recv;
  ++outstanding_;
  return StepResult::done;
}

Execution::StepResult Execution::await(const ProgramStep& step, uint64_t chunk) {
  std::vector<Ticket>& ring = plan_->tickets_[step.pending];
  Ticket& ticket = ring[chunk & (ring.size() - 1)];
  return ticket.posted ? settle(ticket) : StepResult::done;
}

Execution::StepResult Execution::settle(Ticket& ticket) {
  if (!ticket.op.done) return StepResult::blocked;
  ticket.posted = false;
  --outstanding_;
  const tutti_status_t status = ticket.op.status;
  const auto wrong = [&] { return ticket.op.bytes != ticket.bytes || ticket.op.mark != bindings_.mark; };
  if (status == TUTTI_ERR_TRUNCATED || (status == TUTTI_OK && ticket.receives && wrong()))
    return foreign(ticket.op.mark, ticket.op.bytes, ticket.bytes, ticket.peer);
  if (status != TUTTI_OK)
    return fail(error(status < 0 ? status : TUTTI_ERR_INTERNAL, "{}: the transfer with rank {} failed",
                      name(plan_->program_.collective), ticket.peer),
                ticket.peer);
  return StepResult::done;
}

Execution::StepResult Execution::fail(Status status, uint32_t culprit) {
  if (status_.ok()) {
    status_ = std::move(status);
    culprit_ = culprit;
  }
  return StepResult::failed;
}

Execution::StepResult Execution::link_failed(tutti_status_t status, const ChannelHandle& channel) {
  return fail(error(status < 0 ? status : TUTTI_ERR_INTERNAL, "{}: the {} link to rank {} failed",
                    name(plan_->program_.collective), channel.table->name, channel.peer),
              channel.peer);
}

Execution::StepResult Execution::foreign(uint32_t got_mark, uint64_t got_bytes, uint64_t wanted_bytes, uint32_t peer) {
  foreign_mark_ = got_mark;
  return fail(error(TUTTI_ERR_MISMATCH, "{}: a message of rank {} does not belong to this call ({} bytes, expected {})",
                    name(plan_->program_.collective), peer, got_bytes, wanted_bytes),
              peer);
}

bool Execution::settle_all(std::vector<Ticket>& ring) {
  return std::all_of(ring.begin(), ring.end(),
                     [this](Ticket& ticket) { return !ticket.posted || settle(ticket) == StepResult::done; });
}

bool Execution::drained() {
  return std::all_of(plan_->tickets_.begin(), plan_->tickets_.end(), [this](auto& ring) { return settle_all(ring); });
}

std::vector<uint32_t> Execution::waiting_for() const {
  std::vector<uint32_t> peers;
  if (lanes_left_ == 0 && outstanding_ == 0) return peers;  // ended: the plan may be gone
  const Program& program = plan_->program_;
  for (size_t l = 0; l < lanes_.size(); ++l) {
    if (lanes_[l].done) continue;
    const ProgramLoop& loop = program.loops[program.lanes[l].first_loop + lanes_[l].loop];
    if (lanes_[l].step >= loop.step_count) continue;
    const ProgramStep& step = program.steps[loop.first_step + lanes_[l].step];
    if (step.verb == Verb::fold) {
      // Its other slots are there already, or not looked at yet.
      if (lanes_[l].blocked_peer != UINT32_MAX) peers.push_back(lanes_[l].blocked_peer);
      continue;
    }
    for (const ProgramStep& other : program.steps)  // the post that this await belongs to, or the post itself
      if ((other.verb == Verb::post_send || other.verb == Verb::post_recv) && other.pending == step.pending)
        peers.push_back(plan_->channels_[other.channel]->peer);
  }
  if (lanes_left_ == 0 && outstanding_ > 0)
    for (const ProgramStep& step : program.steps)
      if (step.verb == Verb::post_send || step.verb == Verb::post_recv)
        for (const Ticket& ticket : plan_->tickets_[step.pending])
          if (ticket.posted && !ticket.op.done) peers.push_back(plan_->channels_[step.channel]->peer);
  return peers;
}

void Execution::abandon() noexcept {
  // Of a run that has ended the plan may be gone.
  if (lanes_left_ > 0 || outstanding_ > 0)
    for (std::vector<Ticket>& ring : plan_->tickets_)
      for (Ticket& ticket : ring) ticket.posted = false;
  outstanding_ = 0;
  lanes_left_ = 0;
}

}  // namespace tutti
