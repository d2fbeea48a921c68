// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

  /// Numbers above all lanes, for point-to-point.
  static constexpr uint16_t kPointToPoint = 0xffff;

 private:
  Fabric& fabric_;
  uint64_t id_base_;
  std::vector<uint32_t> world_ranks_;
  std::map<std::tuple<uint32_t, int, uint16_t>, ChannelHandle> open_;
};

/// One call's arguments.
struct Bindings {
  const void* input = nullptr;
  void* output = nullptr;
  uint64_t count = 0;
  uint32_t element_bytes = 1;
  uint32_t mark = 0;  ///< goes with every message and is expected with every message: equal where calls are the same
  FoldFunction fold = nullptr;         ///< may be null when the program folds nothing
  const void* fold_context = nullptr;  ///< handed to `fold`: an operation that the caller defined
  uint64_t divisor = 1;                ///< applied by finalizing steps
};

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
  static Result<std::unique_ptr<Plan>> create(Program program, ChannelSet& channels);

  const Program& program() const noexcept { return program_; }
  /// Memory held beside the program (staging, tickets).
  uint64_t memory_bytes() const noexcept;

 private:
  friend class Execution;
  explicit Plan(Program program) : program_(std::move(program)) {}
  void build_tables();

  struct Width {  // a slice width that occurs in a lane: decides how often it loops
    uint16_t divisor;
    uint32_t width;
  };
  struct LaneTable {
    std::vector<Width> widths;
    bool signals = false;
    std::vector<uint16_t> lag_from;  // smallest lag among this step and all later ones: lets an iteration stop early
  };

  Program program_;
  std::vector<ChannelHandle*> channels_;
  std::vector<LaneTable> lanes_;
  std::vector<std::unique_ptr<std::byte[]>> stages_;
  std::vector<uint64_t> stage_segment_bytes_;
  std::vector<std::vector<Ticket>> tickets_;
  std::vector<std::byte> scratch_;
  std::vector<uint64_t> quotient_;   // per divisor, bound at start
  std::vector<uint64_t> remainder_;
};

}  // namespace tutti
