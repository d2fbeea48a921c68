// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "schedule/program.hpp"

/// The symbolic verifier. It runs a whole job, the programs of all ranks, on symbols in place of numbers: each element of a
/// buffer is a term, such as "(contribution of 0 op contribution of 1), finalized". A call is right if
///
///   results   reductions: each output element is made of each contribution exactly once (scan: of those it is to have),
///             finalized exactly once, by the same term on all ranks (hence the same bits), in rank order if the operation needs
///             it, in the one association of the deterministic mode if that is claimed; data movement: the right element of
///             the right rank, as it was; barrier: no rank ends before all have begun
///   messages  every send meets a receive of the same length, and nothing is left over at the end
///   progress  no deadlock, with messages that are not buffered at all and with TUTTI_TP_MIN_SLOTS slots
///   memory    nothing is read before it is written, all is within its window, its slice and its segment; input is never
///             written, nor the root's buffer of a broadcast; no byte is written while a posted transfer may still read or write it, nor read
///             while one may write it; lanes do not touch each other's bytes
///
/// One order of execution is enough to judge all. Each lane of each rank is a sequential process; a channel has one process at
/// either end, is FIFO and blocks; no process ever asks whether it would block. So an action that can be taken stays possible
/// until it is taken, and whatever the order, the same actions happen with the same operands (Kahn's networks; with bounded
/// channels they stay confluent). Every maximal run takes all of them, or ends in the same deadlock. More buffering or more
/// slots only make actions possible earlier: what ends with the smallest ends with all. Races are not left to the order that
/// happens to be run either: see memory above, where an access is judged against all that may be concurrent with it. Lanes have
/// channels of their own, so nothing orders one lane of a rank against another: any common byte that one writes is a race.
/// Within a lane a transfer may touch its bytes from its post until it is awaited, wherever the peer stands. That is the whole
/// happens-before relation of a rank's memory: a vector clock would never hold more than the lane's own position.
namespace tutti {

/// One call to judge.
struct Call {
  uint64_t count = 0;
  uint32_t element_bytes = 4;
  uint32_t root = 0;
  bool in_place = false;      ///< input and output are the same memory where their windows meet
  bool rank_ordered = false;  ///< contributions must be folded in rank order
  bool canonical = false;     ///< each result must be canonical_term(): the association of deterministic mode
  /// Blocks of different lengths: one for each rank; alltoall: counts[from * size + to]. Empty: all blocks have `count`.
  /// Where the collective hides_counts(), the program of a rank is judged with what this rank knows only.
  std::vector<uint64_t> counts;
};

/// Judges one job under many calls; what depends on the programs only is checked once.
class Verifier {
 public:
  /// job[r]: the program of rank r. Must outlive the Verifier.
  explicit Verifier(std::span<const Program> job);
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  /// TUTTI_OK, or TUTTI_ERR_INTERNAL with the first fault found.
  Status judge(const Call& call);

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
  Status structure_;
};

Status verify(std::span<const Program> job, const Call& call);

/// Judges the schedules of all ranks: their own form, then what they are lowered to for messages only, slots only and mixed
/// pairs, with long and short segments and receives posted 0, 1 and 2 iterations ahead.
Status verify(std::span<const Schedule> job, const Call& call);

/// The form of one schedule: ranks, slices and operands in range, no peer twice among the sources or destinations of a step.
Status check(const Schedule& schedule);

/// capabilities[r]: what rank r knows of its pairs.
std::vector<Program> lower_job(std::span<const Schedule> job, std::span<const Capabilities> capabilities);

/// All pairs alike.
std::vector<Capabilities> uniform_pairs(uint32_t size, Carrier carrier, uint64_t max_segment_bytes, uint16_t prefetch);
/// Slots between ranks of one node (`node_size` neighbouring ranks), messages between nodes.
std::vector<Capabilities> node_pairs(uint32_t size, uint32_t node_size, uint64_t max_segment_bytes, uint16_t prefetch);
/// A carrier for each pair, and a prefetch of 0..3 for each rank, drawn from `seed`.
std::vector<Capabilities> random_pairs(uint32_t size, uint64_t max_segment_bytes, uint64_t seed);

}  // namespace tutti
