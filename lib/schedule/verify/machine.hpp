// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/verify.hpp"
#include "terms.hpp"

namespace tutti {

/// Runs the programs of a job on terms, by the rules of the engine: chunks, lags, empty chunks and tickets as it has them.
class Verifier::Machine {
 public:
  explicit Machine(std::span<const Program> job);
  Status run(const Call& call);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Value {
    uint32_t term = Terms::kUndefined;
    uint32_t element = 0;
    bool operator==(const Value&) const = default;
  };
  /// An element's worth of memory.
  struct Cell {
    Value value;
    uint16_t sending = 0;  ///< posted sends that may still read it
    bool receiving = false;
    uint8_t writer = 0;  ///< lane + 1 of those who touched it; kSeveral
    uint8_t reader = 0;
  };
  static constexpr uint8_t kSeveral = UINT8_MAX;

  struct Message {
    uint64_t first_value = 0;  ///< in values_
    uint32_t length = 0;
    uint32_t transfer = kNone;  ///< of the sender; none for slots
    size_t first_heard = 0;     ///< in heard_of_messages_
  };
  /// FIFO: the n-th message meets the n-th receive.
  struct Channel {
    uint32_t sender = kNone;  ///< processes
    uint32_t receiver = kNone;
    std::vector<Message> sent;
    std::vector<uint32_t> receives;  ///< transfers
    size_t released = 0;             ///< slots
  };
  struct Transfer {
    uint32_t first_cell = 0;
    uint32_t length = 0;
    uint32_t channel = 0;
    uint32_t number = 0;  ///< which message of the channel
    bool receives = false;
    bool done = false;
  };
  /// One lane of one rank.
  struct Process {
    uint32_t rank = 0;
    uint32_t lane = 0;
    uint64_t segment = 1;  ///< elements
    uint32_t loop = 0;     ///< the current one, of the program
    uint64_t iterations = 0;
    uint64_t iteration = 0;
    uint32_t step = 0;
    uint32_t first_live = 0;
    bool queued = false;
    bool finished = false;
    uint32_t waits_for = kNone;  ///< rank; for the report of a deadlock
  };
  struct Extent {
    uint64_t start = 0;  ///< in the vector
    uint32_t length = 0;
    bool signal = false;
  };
  /// A buffer: cells [first, first + length) hold the elements [origin, origin + length) of the vector.
  struct Memory {
    uint32_t first = 0;
    uint32_t length = 0;
    uint64_t origin = 0;
  };
  /// Where the parts of a rank begin in the flat arrays.
  struct Rank {
    uint32_t first_process = 0;
    uint32_t first_channel = 0;
    uint32_t first_ticket_ring = 0;
    uint32_t first_extent = 0;
    uint32_t first_lag = 0;
    uint32_t first_stage = 0;
    uint32_t first_bounds = 0;
    uint32_t first_loop = 0;
    Memory memory[kBufferCount];
  };
  /// What a call makes of a loop.
  struct LoopLength {
    uint64_t longest = 0;  ///< elements of its longest slice
    bool signals = false;
  };
  struct StageCells {
    uint32_t first_cell = 0;
    uint32_t stride = 0;
  };
  enum class Outcome : uint8_t { done, blocked, failed };

  // ---- machine.cpp: set-up, processes, results
  void connect_channels();
  void lay_out_tables();
  void bind(const Call& call);
  void bind_bounds(uint32_t rank);
  void bind_memory(uint32_t rank, uint64_t& cells);
  void bind_values(uint32_t rank);
  void bind_loop(uint32_t rank, uint32_t loop);
  bool enter_loop(Process& process);
  uint64_t stage_stride(uint32_t rank, uint32_t lane) const;
  Status check_windows() const;
  Status run_all();
  Outcome run_process(uint32_t index);
  Outcome run_loop(Process& process);
  void wake(uint32_t process);
  Status deadlock() const;
  Status leftovers() const;

  // ---- results.cpp
  Status settle_all();
  Status judge_results();
  Status judge_rank(uint32_t rank);
  Status judge_reduction(uint32_t rank, uint64_t element, const Value& value);
  Status judge_barrier() const;
  Value moved_here(uint32_t rank, uint64_t element) const;

  // ---- steps.cpp: what one step does
  Outcome run_step(Process& process, const ProgramStep& step, uint64_t chunk);
  Outcome fold(Process& process, const ProgramStep& step, uint64_t chunk);
  bool slots_ready(Process& process, const ProgramStep& step, bool& failed, uint32_t length);
  Outcome fold_values(Process& process, const ProgramStep& step, uint64_t chunk, uint32_t length);
  bool fold_overlaps(const Process& process, const ProgramStep& step, uint64_t chunk, uint32_t length) const;
  void publish_slots(Process& process, const ProgramStep& step, uint32_t length);
  Outcome post(Process& process, const ProgramStep& step, uint64_t chunk);
  Outcome post_send(Process& process, Transfer transfer, uint32_t& ticket);
  Outcome post_recv(Process& process, Transfer transfer, uint32_t& ticket);
  Outcome settle(Process& process, uint32_t& ticket);
  Outcome drain(Process& process, uint32_t pending);
  bool match(uint32_t channel_index, size_t number);
  Outcome check_length(const Process& process, const ProgramStep& step, uint64_t chunk, uint32_t& length, bool& signal);
  bool read(const Process& process, uint32_t cell);
  bool write(const Process& process, uint32_t cell);
  bool touch(const Process& process, Cell& cell, bool writes);
  Message new_message(const Process& process, uint32_t length);
  void hear(const Process& process, const Message& message);
  Outcome fault(std::string text);

  Memory& memory(uint32_t rank, BufferId buffer) { return ranks_[rank].memory[static_cast<size_t>(buffer)]; }
  const Memory& memory(uint32_t rank, BufferId buffer) const { return ranks_[rank].memory[static_cast<size_t>(buffer)]; }
  const std::vector<uint64_t>& bounds(uint32_t rank, uint16_t division) const {
    return bounds_[ranks_[rank].first_bounds + division];
  }
  const Extent& extent(const Process& process, uint32_t operand) const {
    return extents_[ranks_[process.rank].first_extent + operand];
  }
  const ProgramStep* first_of_lane(const Process& process) const {
    const Program& program = job_[process.rank];
    return program.steps.data() + program.loops[program.lanes[process.lane].first_loop].first_step;
  }
  uint32_t cell_of(const Process& process, uint32_t operand, uint64_t chunk) const;
  uint32_t& ticket(const Process& process, uint32_t pending, uint64_t chunk);

  std::span<const Program> job_;
  Call call_;
  Terms terms_;
  std::vector<Rank> ranks_;
  std::vector<Process> processes_;
  std::vector<uint32_t> channel_of_;  ///< of (rank, its channel)
  std::vector<Channel> channels_;
  std::vector<uint32_t> lag_from_;  ///< of (rank, its step): smallest lag of it and the later steps of its loop
  std::vector<LoopLength> loops_;   ///< of (rank, its loop)
  std::vector<Extent> extents_;
  std::vector<std::vector<uint64_t>> bounds_;  ///< of (rank, its division)
  std::vector<uint64_t> own_counts_;           ///< scratch of bind_bounds
  std::vector<uint64_t> received_counts_;
  std::vector<uint32_t> first_terms_;  ///< by element: what the first rank that has it got
  std::vector<Cell> cells_;
  std::vector<StageCells> stages_;
  std::vector<std::vector<uint32_t>> tickets_;  ///< transfers, kNone when free
  std::vector<Transfer> transfers_;
  std::vector<Value> values_;  ///< payloads
  std::vector<uint32_t> ready_;
  // A barrier moves no data but knowledge: the ranks that a process has heard of, directly or not.
  uint32_t heard_words_ = 0;
  std::vector<uint64_t> heard_;
  std::vector<uint64_t> heard_of_messages_;
  std::vector<uint32_t> fold_terms_;  ///< scratch of fold_values
  std::string fault_;
};

}  // namespace tutti
