// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/collective.hpp"
#include "schedule/schedule.hpp"

/// What the engine runs: a Schedule lowered for what each pair of ranks can do. Still free of byte counts and addresses.
///
/// Messages are carried in one of two ways, per pair and the same in both directions:
///   slots     the transport's memory: a fold writes into the next slot and commits it, or reads the next slot and releases it.
///   messages  post_send / post_recv on local memory (the caller's buffers or staging), completed later.
///
/// Lowering keeps, for every channel, the order of its messages as the Schedule has it, whatever the peer's carriers are. It adds
/// what makes asynchronous transfer safe: a step that writes local bytes runs only after every posted send of those bytes was
/// awaited; a step that reads or writes the bytes of a posted receive only after that receive was awaited. At the end the engine
/// awaits everything posted. With prefetch d, receives are posted d iterations ahead: post_recv keeps its step's lag and all
/// other verbs of the loop get lag + d, which changes no order on any channel.
namespace tutti {

enum class Carrier : uint8_t { slots, messages };

enum class Verb : uint8_t {
  fold,            ///< destinations = fold(sources); operands may be local, staged, or slots
  post_send,       ///< operand 0 (local or staged) to `channel`; ticket `pending`
  await_sent,      ///< the post_send with the same `pending`, of the same chunk
  post_recv,       ///< operand 0 (local or staged) from `channel`; ticket `pending`
  await_received,  ///< the post_recv with the same `pending`, of the same chunk
  drain_sent,      ///< once, with chunk 0: all that the post_send with the same `pending` sent, in an earlier loop of the lane
};

struct ProgramOperand {
  enum class Kind : uint8_t { local, slot, staged };
  Kind kind = Kind::local;
  BufferId buffer = BufferId::input;  ///< local
  uint16_t division = 0;              ///< index into Program::divisions; kNoData for a signal
  uint32_t index = 0;                 ///< slot: channel; staged: stage
  uint32_t first = 0;
  uint32_t last = 0;
  static constexpr uint16_t kNoData = UINT16_MAX;
  bool operator==(const ProgramOperand&) const = default;
};

struct ProgramStep {
  Verb verb = Verb::fold;
  uint8_t source_count = 0;       ///< fold: the first operands are sources,
  uint8_t destination_count = 0;  ///<       then destinations
  bool finalize = false;
  uint16_t lag = 0;
  uint32_t channel = 0;        ///< post_*
  uint32_t pending = 0;        ///< all but fold
  uint32_t first_operand = 0;  ///< into Program::operands; await_*: the extent of the post (operand 0)
  bool operator==(const ProgramStep&) const = default;
};

/// How many operands a step has, from first_operand on.
inline uint32_t operand_count(const ProgramStep& step) noexcept {
  if (step.verb == Verb::fold) return uint32_t{step.source_count} + step.destination_count;
  return step.verb == Verb::drain_sent ? 0 : 1;
}

struct ProgramLoop {
  uint32_t first_step = 0;
  uint32_t step_count = 0;
  uint16_t max_lag = 0;
  bool operator==(const ProgramLoop&) const = default;
};

/// Loops that run one after another.
struct ProgramLane {
  uint32_t first_loop = 0;
  uint32_t loop_count = 0;
  uint64_t segment_bytes = 0;  ///< never 0; at most what every carrier of the lane takes
  bool operator==(const ProgramLane&) const = default;
};

struct ProgramChannel {
  uint32_t peer = 0;
  uint8_t direction = 0;  ///< TUTTI_TP_SEND or TUTTI_TP_RECV
  Carrier carrier = Carrier::messages;
  uint16_t lane = 0;
  bool operator==(const ProgramChannel&) const = default;
};

/// A ring of `depth` segment-sized staging buffers of one lane: chunk k uses buffer k % depth. depth is a power of two.
struct Stage {
  uint16_t lane = 0;
  uint16_t depth = 1;
  bool operator==(const Stage&) const = default;
};

/// Tickets of one posting step: chunk k uses ticket k % depth; before it is used again the older transfer is awaited.
struct PendingRing {
  uint16_t depth = 1;
  bool operator==(const PendingRing&) const = default;
};

/// The part of the vector that a buffer holds.
struct ProgramWindow {
  uint16_t division = ProgramOperand::kNoData;  ///< kNoData: the program does not have the buffer
  uint32_t first = 0;
  uint32_t last = 0;
  bool operator==(const ProgramWindow&) const = default;
};

struct Program {
  Collective collective = Collective::allreduce;
  uint32_t rank = 0;
  uint32_t size = 1;
  std::array<ProgramWindow, kBufferCount> windows;  ///< by BufferId
  std::vector<ProgramStep> steps;
  std::vector<ProgramOperand> operands;
  std::vector<ProgramLoop> loops;
  std::vector<ProgramLane> lanes;
  std::vector<ProgramChannel> channels;
  std::vector<Division> divisions;  ///< the different ways in which its slices cut the vector
  std::vector<Stage> stages;
  std::vector<PendingRing> pendings;
  bool operator==(const Program&) const = default;
};

/// What lowering knows of a pair of ranks; symmetric. carrier[q] is for peer q (own entry ignored).
struct Capabilities {
  std::vector<Carrier> carrier;
  uint64_t max_segment_bytes = 65536;  ///< smallest slot of any pair of the communicator; agreed by all ranks
  uint16_t prefetch = 1;               ///< receives posted ahead, where safe
};

/// Pure. Never fails for a schedule that the verifier accepts.
Program lower(const Schedule& schedule, const Capabilities& capabilities);

}  // namespace tutti
