// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <queue>
#include <tuple>

#include "job.hpp"

namespace tutti::sim {

/// Walks every event of a job. See schedule/simulate.hpp for the model.
///
/// Lanes are processes. Each is at one step of one chunk, which it starts when the messages are there, the slots free and the
/// processor its own, and ends a cost later. All that ends at one instant is taken together: first slots come back, then the
/// messages leave at once, then the processes look for their next steps. So nothing depends on the order among equals.
class Walk {
 public:
  Walk(const Job& job, const NetworkSpec& spec, uint32_t element_bytes);

  /// TUTTI_ERR_INTERNAL if it does not come to its end.
  Status run(uint64_t bytes);
  /// From the next run on, keeps what the steps of this actor do.
  void trace(uint32_t actor) { traced_ = actor; }

  Picoseconds end() const;
  uint64_t rounds() const;
  uint64_t step_count() const { return step_count_; }
  uint64_t message_count() const { return message_count_; }

  struct ActorUse {
    Picoseconds end = 0;
    Picoseconds busy = 0;
    Picoseconds free = 0;  ///< runs nothing from then on
    uint64_t sent_messages = 0;
    uint64_t sent_bytes = 0;
  };
  const ActorUse& use(uint32_t actor) const { return uses_[actor]; }

  struct LinkState {
    Picoseconds free = 0;
    Picoseconds busy = 0;
    uint64_t bytes = 0;
    Picoseconds load = 0;  ///< of the messages that leave at this instant
  };
  const LinkState& link(uint32_t link) const { return links_[link]; }

  /// In the order of the traced actor's steps.
  struct StepState {
    uint64_t chunks = 0;
    Picoseconds first_start = 0;
    Picoseconds last_end = 0;
    Picoseconds waited = 0;
  };
  const std::vector<StepState>& steps() const { return steps_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Process {
    uint32_t actor = 0;
    uint32_t lane = 0;
    uint32_t loop = 0;        ///< of the program
    uint32_t step = 0;        ///< of the program
    uint32_t first_live = 0;  ///< steps of the loop before are done with all chunks
    uint64_t iteration = 0;
    uint64_t iterations = 0;  ///< of the loop
    Picoseconds free = 0;     ///< end of its last step
    uint64_t depth = 0;       ///< messages in the longest chain before
  };

  /// One of a node whose ranks share its processors, or a rank's own.
  struct Processor {
    Picoseconds free = 0;
    uint32_t actor = kNone;  ///< who ran on it last
  };

  /// Full: since when its message is there. Empty: since when the sender knows.
  struct Slot {
    Picoseconds since = 0;
    uint64_t depth = 0;
  };

  struct ChannelState {
    uint64_t sent = 0;
    uint64_t received = 0;
    uint32_t waiting_sender = kNone;
    uint32_t waiting_receiver = kNone;
  };

  struct Event {
    Picoseconds at;
    Picoseconds ready;  ///< who has waited longest for the processor gets it
    uint32_t process;
    bool ends;  ///< else: starts, if the processor is free
    bool operator>(const Event& other) const {
      return std::tie(at, ready, process) > std::tie(other.at, other.ready, other.process);
    }
  };

  struct Departure {
    uint32_t channel;
    uint64_t bytes;
    uint64_t depth;
  };

  void bind(uint64_t bytes);
  void enter_loop(Process& process, uint32_t loop) const;
  bool find_step(Process& process) const;
  bool find_step_of_loop(Process& process) const;
  void consider(uint32_t process);
  bool is_blocked(uint32_t process, Picoseconds& ready);
  void start(uint32_t process, Picoseconds at, Picoseconds ready);
  Processor& processor_for(const Actor& actor, uint32_t number, Picoseconds at);
  void end_step(uint32_t process, Picoseconds at);
  void send_all(Picoseconds at);
  Status deadlock() const;

  const CompactProgram& program(const Process& process) const { return job_.programs[job_.actors[process.actor].program]; }
  uint64_t chunks(const CompactStep& step, uint64_t segment_bytes) const {
    return step.slice == kNoSlice ? 1 : chunk_count(bytes_of_slice_[step.slice], segment_bytes);
  }
  uint64_t chunk_bytes(const Process& process, const CompactStep& step) const;
  Picoseconds cost(const Process& process, const CompactStep& step, uint64_t bytes) const;
  Slot& slot(uint32_t channel, uint64_t message) { return slots_[size_t{channel} * depth_ + message % depth(channel)]; }
  uint32_t depth(uint32_t channel) const {
    return job_.channels[channel].within_node ? prices_.node.slots : prices_.network.slots;
  }
  const Reach& reach(uint32_t channel) const { return job_.channels[channel].within_node ? prices_.node : prices_.network; }

  const Job& job_;
  const Prices prices_;
  const uint32_t element_bytes_;
  const uint32_t depth_;  ///< of the deepest channel
  const bool shares_processors_;
  const uint32_t ranks_per_node_;
  const uint32_t cores_per_node_;
  std::vector<Processor> processors_;  ///< of each actor, or cores_per_node_ of each node
  uint32_t traced_ = kNone;
  std::vector<uint64_t> bytes_of_slice_;
  std::vector<uint32_t> first_process_;  ///< of each actor
  std::vector<Process> processes_;
  std::vector<ChannelState> channels_;
  std::vector<Slot> slots_;
  std::vector<ActorUse> uses_;
  std::vector<LinkState> links_;
  std::vector<StepState> steps_;
  std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
  std::vector<uint32_t> ended_;        ///< processes, at this instant
  std::vector<uint32_t> freed_;        ///< processes that wait for a slot, likewise
  std::vector<Departure> departures_;  ///< likewise
  uint64_t step_count_ = 0;
  uint64_t message_count_ = 0;
};

}  // namespace tutti::sim
