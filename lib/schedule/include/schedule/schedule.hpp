// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "schedule/shape.hpp"

/// A collective as data: what one rank does, as an algorithm writes it. Knows no transport, no byte count, no address.
///
/// There is one verb. A Step says
///
///     destinations[] = source[0] op source[1] op ...        (in this order; one source: a copy)
///
/// where each operand is a slice of a local buffer, or a message from a peer (as a source) or to a peer (as a destination).
/// Send, receive, receive-and-reduce, reduce-and-forward and publish-to-many are all cases of it:
///
///     send            {message to q}          = {input slice}
///     recv            {output slice}          = {message from q}
///     recv_reduce     {output slice}          = {message from q, input slice}     (operands in the order of the fold)
///     reduce_forward  {output, message to r}  = {message from q, input slice}
///     signal          a send whose slice has parts = 0: no data, but the message exists
///
/// Steps stand in lanes, which are independent of each other. A lane is one or more counted loops, each begun when this rank has
/// done the one before. In a loop iteration i works, for the step with lag L, on chunk i - L (software pipelining as data), in
/// the order of the steps. Chunk k of a slice is its elements [k * segment, (k + 1) * segment) cut off at the slice's end; an
/// empty chunk is skipped at both ends, its message does not exist. A loop runs until its longest slice is done.
///
/// One loop with lags overlaps what follows each other, chunk by chunk, but chunk k of every step must depend on nothing beyond
/// chunk k. A loop for each round has no such bond: a round may send in one piece what the one before received in several.
///
/// Messages of one lane from one rank to another form a FIFO: the n-th sent is the n-th received. Each (lane, peer, direction)
/// is a FIFO of its own, through all loops; ranks need not have as many loops as each other.
namespace tutti {

enum class Collective : uint8_t {
  allreduce,
  reduce,
  broadcast,
  allgather,
  gather,
  scatter,
  reduce_scatter,
  alltoall,
  scan,
  exscan,
  barrier
};
inline constexpr uint32_t kCollectiveCount = 11;
std::string_view name(Collective collective) noexcept;
/// TUTTI_ERR_ARGUMENT says what there is.
Result<Collective> parse_collective(std::string_view text);

/// Input and output are the caller's and hold what schedule/collective.hpp says; scratch is allocated once a plan, its contents
/// are undefined at the start.
enum class BufferId : uint8_t { input, output, scratch, scratch_b, scratch_c };
inline constexpr uint32_t kBufferCount = 5;

/// Where the vector of a call may be cut.
enum class Cut : uint8_t {
  even,     ///< into parts as long as each other: bound(i) = i * (count / parts) + min(i, count % parts)
  blocks,   ///< into a block for each rank, as long as the call says; each block into parts / size shares as even as possible
  received  ///< alltoall only, where `blocks` are what a rank sends: what it receives, a block from each rank
};

/// Parts [first, last) of a vector that is cut into `parts`. parts = 0: no data (a signal).
struct Slice {
  uint32_t parts = 1;
  uint32_t first = 0;
  uint32_t last = 1;
  Cut cut = Cut::even;
  bool operator==(const Slice&) const = default;
};
inline constexpr Slice kWhole{1, 0, 1, Cut::even};
inline constexpr Slice kNothing{1, 0, 0, Cut::even};
inline constexpr Slice kSignal{0, 0, 0, Cut::even};

struct Operand {
  enum class Kind : uint8_t { local, message };
  Kind kind = Kind::local;
  BufferId buffer = BufferId::input;  ///< local
  uint32_t peer = 0;                  ///< message: from (as source) or to (as destination) this rank
  Slice slice;                        ///< all operands of a step have slices of the same length
  bool operator==(const Operand&) const = default;
};

struct Step {
  std::vector<Operand> sources;
  std::vector<Operand> destinations;
  uint16_t lag = 0;
  uint16_t loop = 0;      ///< of the lane; its steps stand in the order of their loops
  bool finalize = false;  ///< the fold is complete with this step: `avg` divides here, exactly once an element
  bool operator==(const Step&) const = default;
};

struct Lane {
  std::vector<Step> steps;
  uint64_t segment_bytes = 0;  ///< chunk length; the same on all ranks; 0: as long as the transport allows
  bool operator==(const Lane&) const = default;
};

struct Schedule {
  Collective collective = Collective::allreduce;
  uint32_t rank = 0;
  uint32_t size = 1;
  uint32_t root = 0;
  std::vector<Lane> lanes;
  /// What part of the vector scratch, scratch_b and scratch_c hold; kNothing: not used.
  std::array<Slice, 3> scratch = {kNothing, kNothing, kNothing};
  bool operator==(const Schedule&) const = default;
};

}  // namespace tutti
