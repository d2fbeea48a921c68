// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/types.hpp"
#include "schedule/schedule.hpp"

namespace tutti {

/// What a collective call asks for, as far as the ranks' calls have to go together. What a collective does not have (the
/// operation of a broadcast, the root of a barrier) keeps its default.
struct CallSignature {
  static constexpr uint8_t kInPlace = 1;                     ///< of this rank alone
  static constexpr uint8_t kCountIsOwn = 2;                  ///< each rank has a count of its own in this collective
  static constexpr uint8_t kGrouped = 4;                     ///< one of a group that is launched as a whole
  static constexpr uint8_t kUneven = 8;                      ///< of this rank alone: it gave a count for each block
  static constexpr Op kUserOp = static_cast<Op>(UINT8_MAX);  ///< one of the caller's, whichever
  uint64_t count = 0;
  uint32_t root = 0;
  uint32_t choice = 0;  ///< hash of the algorithm and its parameters
  Collective collective = Collective::barrier;
  DType dtype = DType::u8;
  Op op = Op::sum;
  uint8_t flags = 0;
  uint32_t part = 0;  ///< of a group: parts of one launch have one number among the calls
};
static_assert(sizeof(CallSignature) == 24);

/// What a call, whenever it is made, gives to its mark.
inline uint64_t mark_share(const CallSignature& call) noexcept {
  const uint64_t count = (call.flags & CallSignature::kCountIsOwn) != 0 ? 0 : call.count;
  const uint64_t kind = uint64_t{call.root} << 32 | uint64_t{static_cast<uint8_t>(call.collective)} << 16 |
                        uint64_t{static_cast<uint8_t>(call.dtype)} << 8 | uint64_t{static_cast<uint8_t>(call.op)};
  return count * 0xc2b2ae3d27d4eb4fu + kind * 0xd6e8feb86659fd93u + call.choice * 0xa0761d6478bd642fu;
}
/// The number that goes with each message of a call: different, but for one chance in 2^32, where two calls do not go together.
/// A linear hash of few instructions; the multipliers are odd, so that a difference in one place always shows. share: mark_share
/// of the call.
inline uint32_t mark_of(uint64_t sequence, uint64_t share) noexcept {
  return static_cast<uint32_t>((sequence * 0x9e3779b97f4a7c15u + share) >> 32);
}
inline uint32_t mark_of(uint64_t sequence, const CallSignature& call) noexcept { return mark_of(sequence, mark_share(call)); }

/// Whether ranks may make these two calls together.
bool agree(const CallSignature& a, const CallSignature& b) noexcept;
/// What is between two calls that do not agree: "different counts".
std::string difference(const CallSignature& a, const CallSignature& b);
/// "allreduce of 12 float32, sum (call 7)". The values may come from a peer.
std::string text(const CallSignature& call, uint64_t sequence);

/// One collective call of a communicator, in one cache line.
struct alignas(64) CallRecord {
  uint64_t sequence = 0;  ///< 1: the communicator's first; 0: none
  CallSignature call;
  uint32_t mark = 0;
};
static_assert(sizeof(CallRecord) == 64 && std::is_trivially_copyable_v<CallRecord>);

/// The last calls of a communicator, the current one included.
class CallLog {
 public:
  static constexpr size_t kKept = 16;

  /// The record of the next call, to be filled in by who makes it.
  CallRecord& open(uint64_t sequence) noexcept {
    CallRecord& record = records_[sequence % kKept];
    record.sequence = last_ = sequence;
    return record;
  }
  /// nullptr: not made yet, or too long ago.
  const CallRecord* find(uint64_t sequence) const noexcept;
  const CallRecord* find_mark(uint32_t mark) const noexcept;
  const CallRecord* last() const noexcept { return find(last_); }

 private:
  std::array<CallRecord, kKept> records_{};
  uint64_t last_ = 0;
};

}  // namespace tutti
