// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "base/status.hpp"
#include "engine/fabric.hpp"
#include "kernels/kernels.hpp"
#include "schedule/program.hpp"

namespace tutti {

/// The channels of one communicator, opened on first use and shared by all its plans. A channel carries the messages of one
/// lane number in one direction between two ranks; collectives of a communicator run one after another, so their messages
/// follow each other on it in the same order at both ends.
class ChannelSet {
 public:
  /// id_base: the communicator's id, low 16 bits zero. world_ranks[r]: the context-wide rank of rank r.
  ChannelSet(Fabric& fabric, uint64_t id_base, std::vector<uint32_t> world_ranks)
      : fabric_(fabric), id_base_(id_base), world_ranks_(std::move(world_ranks)) {}
  ~ChannelSet() { close_all(); }
  ChannelSet(const ChannelSet&) = delete;
  ChannelSet& operator=(const ChannelSet&) = delete;

  /// The address of the result is stable until close_all().
  Result<ChannelHandle*> get(uint32_t rank, int direction, uint16_t number);
  void close_all() noexcept;
  /// Ranks (of the communicator) with an open channel.
  std::vector<uint32_t> neighbours() const;
  const std::vector<uint32_t>& world_ranks() const noexcept { return world_ranks_; }
  uint64_t slot_bytes(uint32_t world_rank) const { return fabric_.route(world_rank).slot_bytes; }
  /// Whether that rank of the communicator has closed its endpoint in order.
  bool is_silent(uint32_t rank) const { return fabric_.is_silent(world_ranks_[rank]); }

  /// Numbers above all lanes, for point-to-point.
  static constexpr uint16_t kPointToPoint = 0xffff;

 private:
  Fabric& fabric_;
  uint64_t id_base_;
  std::vector<uint32_t> world_ranks_;
  std::map<std::tuple<uint32_t, int, uint16_t>, ChannelHandle> open_;
};

/// One call's arguments. Arrays are the caller's and have an entry for each rank.
struct Bindings {
  const void* input = nullptr;  ///< what the collective's window says (schedule/collective.hpp)
  void* output = nullptr;
  Lengths lengths;
  std::span<const uint64_t> input_places;   ///< element at which each block of the input begins; empty: one after another
  std::span<const uint64_t> output_places;  ///< likewise
  uint32_t element_bytes = 1;
  uint32_t mark = 0;            ///< goes with every message and is expected with every message: equal where calls are the same
  FoldFunction fold = nullptr;  ///< may be null when the program folds nothing
  const void* fold_context = nullptr;  ///< handed to `fold`: an operation that the caller defined
  uint64_t divisor = 1;                ///< applied by finalizing steps
};

class Execution;

/// A ticket of a posted transfer.
struct Ticket {
  tutti_tp_op_t op{};
  uint64_t bytes = 0;
  uint32_t peer = 0;  ///< world rank
  bool posted = false;
  bool receives = false;
};

/// A Program made ready to run on a communicator: channels open, staging and tickets allocated, look-up tables built. Runs one
/// execution at a time. After creation running it allocates nothing.
class Plan {
 public:
  /// choice: hash of the algorithm and its parameters, for the signature of calls.
  static Result<std::unique_ptr<Plan>> create(Program program, ChannelSet& channels, uint32_t choice = 0);

  const Program& program() const noexcept { return program_; }
  /// Whether a step takes several blocks of the caller's buffer as one piece, so that they have to follow each other in memory.
  bool joins_blocks(BufferId buffer) const noexcept { return joins_blocks_[static_cast<size_t>(buffer)]; }
  uint32_t choice() const noexcept { return choice_; }
  /// Memory held beside the program (staging, tickets).
  uint64_t memory_bytes() const noexcept;

 private:
  friend class Execution;
  /// Where a division cuts the vector of the running call: part i begins at i * quotient + min(i, remainder), or at table[i].
  struct Bounds {
    uint64_t quotient = 0;
    uint64_t remainder = 0;
    const uint64_t* table = nullptr;
    const uint64_t* places[2] = {};  // by BufferId: where the parts lie in a caller's buffer that is not in one piece
    std::vector<uint64_t> memory;    // of table and places
  };
  struct Extent {  // a kind of slice that occurs in a loop: decides how often it goes round
    uint16_t division;
    uint32_t first;
    uint32_t last;
    auto operator<=>(const Extent&) const = default;
  };
  /// A step with the lengths of the running call: its slice has `length` elements and goes in chunks of `segment`.
  struct BoundStep {
    uint64_t length = 0;
    uint64_t segment = 0;
    bool signals = false;  // it carries no data, and runs once
    bool has_slots = false;
  };
  /// Where the operand's chunk lies: buffers[buffer] + offset_bytes + (chunk & mask) * stride_bytes; or in the channel's slot.
  struct BoundOperand {
    uintptr_t offset_bytes = 0;
    uint64_t stride_bytes = 0;
    uint64_t mask = UINT64_MAX;
    const ChannelHandle* channel = nullptr;
    uint32_t buffer = 0;  // a BufferId, or kBufferCount: `offset_bytes` is an address
  };
  struct LoopTable {
    std::vector<Extent> widths;   // one of each width: enough where parts are alike
    std::vector<Extent> extents;  // all that differ, of divisions into blocks
    bool signals = false;
    std::vector<uint16_t> lag_from;  // smallest lag among this step and all later ones: lets an iteration stop early
  };

  Plan(Program program, uint32_t choice) : program_(std::move(program)), choice_(choice) {}
  void build_tables();
  void note_extent(LoopTable& table, const ProgramOperand& operand);
  void bind(const Bindings& bindings);
  bool bind_whole(uint64_t count, uint32_t element_bytes) noexcept;
  void bind_scratch(uint64_t element_bytes);
  void bind_division(size_t index, const Bindings& bindings);
  void prepare_steps();
  void find_most_whole_bytes();
  void bind_chunks(uint32_t element_bytes);
  void bind_steps(uint32_t element_bytes);
  uint64_t longest(const LoopTable& table) const noexcept;
  /// Chunks of the lane's loop in the running call.
  uint64_t iterations(const ProgramLane& lane, uint32_t loop, uint32_t element_bytes) const noexcept;
  uint64_t bound(uint16_t division, uint32_t index) const noexcept {
    const Bounds& bounds = bounds_[division];
    if (bounds.table != nullptr) return bounds.table[index];
    return index * bounds.quotient + std::min<uint64_t>(index, bounds.remainder);
  }

  Program program_;
  uint32_t choice_;
  std::vector<ChannelHandle*> channels_;
  std::vector<LoopTable> loops_;
  std::vector<std::unique_ptr<std::byte[]>> stages_;
  std::vector<uint64_t> stage_segment_bytes_;
  std::vector<std::vector<Ticket>> tickets_;
  std::array<std::vector<std::byte>, 3> scratch_;
  bool has_scratch_ = false;
  std::vector<Bounds> bounds_;  // by division, for the running call
  std::vector<BoundStep> bound_steps_;
  std::vector<BoundOperand> bound_operands_;
  std::vector<uint32_t> local_operands_;  // those with data
  uint32_t bound_element_bytes_ = 0;
  uint64_t bound_count_ = 0;
  uint64_t most_whole_bytes_ = 0;  // with so few, a program that never divides the vector goes round once; 0: it does divide it
  const Execution* bound_by_ = nullptr;  // whose lengths they are, where no arrays say more
  bool by_table_ = false;                // of the running call: some bounds are tables
  bool placed_ = false;                  // likewise: a buffer of the caller's is not in one piece
  std::array<bool, kBufferCount> joins_blocks_{};
};

}  // namespace tutti
