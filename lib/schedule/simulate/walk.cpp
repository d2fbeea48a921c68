// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "walk.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tutti::sim {
namespace {

Picoseconds picoseconds(double ns) { return std::llround(ns * 1000); }

}  // namespace

Walk::Walk(const Job& job, const NetworkSpec& spec, uint32_t element_bytes)
    : job_(job),
      prices_(spec.prices),
      element_bytes_(element_bytes),
      depth_(std::max(spec.prices.node.slots, spec.prices.network.slots)),
      shares_processors_(spec.cores_per_node > 0 && spec.cores_per_node < spec.ranks_per_node),
      ranks_per_node_(spec.ranks_per_node),
      cores_per_node_(spec.cores_per_node) {
  for (uint32_t actor = 0; actor < job.actors.size(); ++actor) {
    first_process_.push_back(static_cast<uint32_t>(processes_.size()));
    for (uint32_t lane = 0; lane < job.programs[job.actors[actor].program].lanes.size(); ++lane) {
      processes_.push_back({actor, lane});
    }
  }
}

void Walk::bind(uint64_t bytes) {
  bytes_of_slice_ = slice_bytes(job_, bytes, element_bytes_);
  channels_.assign(job_.channels.size(), {});
  slots_.assign(job_.channels.size() * depth_, {});
  uses_.assign(job_.actors.size(), {});
  const size_t nodes = (job_.actors.size() + ranks_per_node_ - 1) / ranks_per_node_;
  processors_.assign(shares_processors_ ? nodes * cores_per_node_ : job_.actors.size(), {});
  links_.assign(job_.links.size(), {});
  step_count_ = message_count_ = 0;
  steps_.clear();
  if (traced_ != kNone) steps_.resize(job_.programs[job_.actors[traced_].program].steps.size());
  for (Process& process : processes_) {
    process = {process.actor, process.lane};
    enter_loop(process, program(process).lanes[process.lane].first_loop);
  }
}

void Walk::enter_loop(Process& process, uint32_t index) const {
  const CompactProgram& program = this->program(process);
  const CompactLane& lane = program.lanes[process.lane];
  process.loop = index;
  process.iteration = process.iterations = 0;
  if (index == lane.first_loop + lane.loop_count) return;
  const CompactLoop& loop = program.loops[index];
  uint64_t most = 0;
  for (uint32_t n = loop.first_step; n < loop.first_step + loop.step_count; ++n) {
    most = std::max(most, chunks(program.steps[n], lane.segment_bytes));
  }
  process.step = process.first_live = loop.first_step;
  process.iterations = most == 0 ? 0 : most + loop.max_lag;
}

/// The next step that has a chunk; false at the end of the lane.
bool Walk::find_step(Process& process) const {
  const CompactLane& lane = program(process).lanes[process.lane];
  const uint32_t end = lane.first_loop + lane.loop_count;
  while (process.loop < end) {
    if (find_step_of_loop(process)) return true;
    enter_loop(process, process.loop + 1);
  }
  return false;
}

bool Walk::find_step_of_loop(Process& process) const {
  const CompactProgram& program = this->program(process);
  const CompactLane& lane = program.lanes[process.lane];
  const uint32_t end = program.loops[process.loop].first_step + program.loops[process.loop].step_count;
  while (process.iteration < process.iterations) {
    for (; process.step < end && program.steps[process.step].smallest_later_lag <= process.iteration; ++process.step) {
      const CompactStep& step = program.steps[process.step];
      if (step.lag > process.iteration) continue;
      if (process.iteration - step.lag < chunks(step, lane.segment_bytes)) return true;
      if (process.step == process.first_live) ++process.first_live;
    }
    ++process.iteration;
    process.step = process.first_live;
  }
  return false;
}

uint64_t Walk::chunk_bytes(const Process& process, const CompactStep& step) const {
  if (step.slice == kNoSlice) return 0;
  const uint64_t segment = program(process).lanes[process.lane].segment_bytes;
  const uint64_t whole = bytes_of_slice_[step.slice];
  return std::min(segment, whole - (process.iteration - step.lag) * segment);
}

Picoseconds Walk::cost(const Process& process, const CompactStep& step, uint64_t bytes) const {
  const Actor& actor = job_.actors[process.actor];
  const uint32_t* message = program(process).messages.data() + step.first_message;
  double ns_per_byte = prices_.reduce_ns_per_byte * step.folds + prices_.copy_ns_per_byte * step.local_copies;
  double ns = prices_.step_ns;
  for (uint32_t n = 0; n < uint32_t{step.receives} + step.sends; ++n) {
    const Reach& reach = this->reach(job_.channel(actor, message[n]));
    ns += reach.overhead_ns;
    // A fold reads straight out of the slot.
    if (n >= step.receives || step.folds == 0) ns_per_byte += reach.copy_ns_per_byte;
  }
  return picoseconds(ns + ns_per_byte * static_cast<double>(bytes));
}

/// Whether the process's step waits for something that has not happened; if not, when the last of it did.
bool Walk::is_blocked(uint32_t index, Picoseconds& ready) {
  const Process& process = processes_[index];
  const Actor& actor = job_.actors[process.actor];
  const CompactStep& step = program(process).steps[process.step];
  const uint32_t* message = program(process).messages.data() + step.first_message;
  ready = process.free;
  for (uint32_t n = 0; n < uint32_t{step.receives} + step.sends; ++n) {
    const uint32_t channel = job_.channel(actor, message[n]);
    ChannelState& state = channels_[channel];
    if (n < step.receives) {
      if (state.sent == state.received) {
        state.waiting_receiver = index;
        return true;
      }
      ready = std::max(ready, slot(channel, state.received).since);
    } else if (state.sent >= depth(channel)) {
      if (state.sent - state.received >= depth(channel)) {
        state.waiting_sender = index;
        return true;
      }
      ready = std::max(ready, slot(channel, state.sent).since);
    }
  }
  return false;
}

/// Starts the process's step, or leaves it to whoever does what it waits for.
void Walk::consider(uint32_t index) {
  Picoseconds ready = 0;
  if (is_blocked(index, ready)) return;
  // With one lane nobody else wants the processor.
  if (!shares_processors_ && program(processes_[index]).lanes.size() == 1) {
    start(index, ready, ready);
  } else {
    events_.push({ready, ready, index, false});
  }
}

/// The one that is free first; but the own, if that is free when the others are.
Walk::Processor& Walk::processor_for(const Actor& actor, uint32_t number, Picoseconds at) {
  if (!shares_processors_) return processors_[number];
  const auto first = processors_.begin() + actor.rank / ranks_per_node_ * cores_per_node_;
  return *std::min_element(first, first + cores_per_node_, [&](const Processor& a, const Processor& b) {
    return std::tuple(std::max(a.free, at), a.actor != number) < std::tuple(std::max(b.free, at), b.actor != number);
  });
}

void Walk::start(uint32_t index, Picoseconds at, Picoseconds ready) {
  const Process& process = processes_[index];
  ActorUse& use = uses_[process.actor];
  Processor& processor = processor_for(job_.actors[process.actor], process.actor, at);
  if (const Picoseconds free = std::max(processor.free, use.free); free > at) {
    events_.push({free, ready, index, false});
    return;
  }
  const CompactStep& step = program(process).steps[process.step];
  Picoseconds end = at + cost(process, step, chunk_bytes(process, step));
  if (processor.actor != kNone && processor.actor != process.actor) end += picoseconds(prices_.switch_ns);
  processor = {end, process.actor};
  use.free = end;
  use.busy += end - at;
  if (process.actor == traced_) {
    StepState& state = steps_[process.step];
    if (state.chunks++ == 0) state.first_start = at;
    state.last_end = end;
    state.waited += at - process.free;
  }
  events_.push({end, ready, index, true});
}

/// Gives back the slots that were read, and puts the messages with those that leave now.
void Walk::end_step(uint32_t index, Picoseconds at) {
  Process& process = processes_[index];
  const Actor& actor = job_.actors[process.actor];
  ActorUse& use = uses_[process.actor];
  const CompactStep& step = program(process).steps[process.step];
  const uint32_t* message = program(process).messages.data() + step.first_message;
  ++step_count_;
  for (uint32_t n = 0; n < step.receives; ++n) {
    const uint32_t channel = job_.channel(actor, message[n]);
    ChannelState& state = channels_[channel];
    Slot& read = slot(channel, state.received++);
    process.depth = std::max(process.depth, read.depth);
    read.since = at + job_.channels[channel].latency;
    if (state.waiting_sender != kNone) freed_.push_back(std::exchange(state.waiting_sender, kNone));
  }
  const uint64_t bytes = chunk_bytes(process, step);
  for (uint32_t n = step.receives; n < uint32_t{step.receives} + step.sends; ++n) {
    departures_.push_back({job_.channel(actor, message[n]), bytes, process.depth + 1});
  }
  use.sent_messages += step.sends;
  use.sent_bytes += step.sends * bytes;
  use.end = std::max(use.end, at);
  process.free = at;
  ended_.push_back(index);
}

/// All that leave at this instant: they queue behind those that left before, and share among each other.
void Walk::send_all(Picoseconds at) {
  for (const Departure& departure : departures_) {
    for (const Hop& hop : job_.path(job_.channels[departure.channel])) {
      LinkState& link = links_[hop.link];
      link.load += hop.weight * std::llround(job_.links[hop.link].ps_per_byte * static_cast<double>(departure.bytes));
      link.bytes += hop.weight * departure.bytes;
    }
  }
  for (const Departure& departure : departures_) {
    for (const Hop& hop : job_.path(job_.channels[departure.channel])) {
      LinkState& link = links_[hop.link];
      link.free = std::max(link.free, at) + link.load;
      link.busy += link.load;
      link.load = 0;  // once, though several share it
    }
  }
  for (const Departure& departure : departures_) {
    const Channel& channel = job_.channels[departure.channel];
    Picoseconds through = at;
    for (const Hop& hop : job_.path(channel)) through = std::max(through, links_[hop.link].free);
    ChannelState& state = channels_[departure.channel];
    slot(departure.channel, state.sent++) = {through + channel.latency, departure.depth};
    message_count_ += job_.actors[channel.from.actor].members;
  }
  // Receivers look when all that arrives is known.
  for (const Departure& departure : departures_) {
    const uint32_t receiver = std::exchange(channels_[departure.channel].waiting_receiver, kNone);
    if (receiver != kNone) consider(receiver);
  }
  departures_.clear();
}

Status Walk::run(uint64_t bytes) {
  bind(bytes);
  size_t unfinished = 0;
  for (uint32_t n = 0; n < processes_.size(); ++n) {
    if (!find_step(processes_[n])) continue;
    ++unfinished;
    consider(n);
  }
  while (!events_.empty()) {
    const Picoseconds now = events_.top().at;
    while (!events_.empty() && events_.top().at == now) {
      const Event event = events_.top();
      events_.pop();
      event.ends ? end_step(event.process, now) : start(event.process, now, event.ready);
    }
    send_all(now);
    for (const uint32_t sender : freed_) consider(sender);
    freed_.clear();
    for (const uint32_t index : ended_) {
      Process& process = processes_[index];
      ++process.step;
      if (find_step(process)) {
        consider(index);
      } else {
        --unfinished;
      }
    }
    ended_.clear();
  }
  return unfinished == 0 ? Status() : deadlock();
}

Status Walk::deadlock() const {
  for (uint32_t n = 0; n < channels_.size(); ++n) {
    const ChannelState& state = channels_[n];
    const uint32_t waiting = state.waiting_receiver != kNone ? state.waiting_receiver : state.waiting_sender;
    if (waiting == kNone) continue;
    const Channel& channel = job_.channels[n];
    const bool receives = state.waiting_receiver != kNone;
    const End& own = receives ? channel.to : channel.from;
    const End& other = receives ? channel.from : channel.to;
    return error(TUTTI_ERR_INTERNAL, "the walk stands still: lane {} of rank {} waits for {} rank {}", own.lane,
                 job_.actors[own.actor].rank, receives ? "a message from" : "a slot to", job_.actors[other.actor].rank);
  }
  return Status(TUTTI_ERR_INTERNAL, "the walk stands still");
}

Picoseconds Walk::end() const {
  Picoseconds last = 0;
  for (const ActorUse& use : uses_) last = std::max(last, use.end);
  return last;
}

uint64_t Walk::rounds() const {
  uint64_t most = 0;
  for (const Process& process : processes_) most = std::max(most, process.depth);
  return most;
}

}  // namespace tutti::sim
