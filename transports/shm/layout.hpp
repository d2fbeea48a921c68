// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0

/// What lies in the shared memory of a node (the arena). Offsets count from the arena's first byte; every one that is read
/// from the arena is checked before use, because another process wrote it.
///
///   header | control blocks, one a rank | notice bits and cut bits, one row a rank | extents, handed out once
///
/// Everything past the header belongs to one rank, which alone allocates there: rings and lookup tables of its outgoing
/// channels in its extents. Other ranks write only the words that say so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::shm {

/// Part of the node key: builds that differ here do not share an arena.
constexpr uint32_t kLayoutVersion = 2;
constexpr uint64_t kArenaMagic = 0x616e657261697474ull;

/// Two cache lines: x86 fetches lines in pairs, so that neighbours closer than this disturb each other.
constexpr size_t kLine = 128;
constexpr size_t kPage = 4096;
constexpr size_t kInlineBytes = 48;
constexpr uint32_t kTables = 12;
constexpr uint32_t kTableEntries = 64;
constexpr uint32_t kWays = 4;
constexpr uint32_t kMaxNodeRanks = 4096;
constexpr uint32_t kMinSlots = 4;
constexpr uint32_t kMaxSlots = 1024;
constexpr uint64_t kMaxSlotBytes = uint64_t{256} << 20;

constexpr bool valid_geometry(uint64_t slots, uint64_t slot_bytes) {
  return slots >= kMinSlots && slots <= kMaxSlots && (slots & (slots - 1)) == 0 && slot_bytes >= 64 && slot_bytes % 64 == 0 &&
         slot_bytes <= kMaxSlotBytes;
}

/// One slot: payload, length, mark and flag in one 64-byte line, so that a small message is one transfer. A longer message
/// lies in a body elsewhere; its offset then takes the place of the payload.
struct alignas(kLine) SlotHead {
  std::byte payload[kInlineBytes];
  std::atomic<uint64_t> label;     // length | kBodyFlag | mark << kMarkShift
  std::atomic<uint64_t> sequence;  // number of the message that lies here, from 1
};
constexpr uint32_t kBodyFlag = uint32_t{1} << 31;  // the payload is the offset of a body
constexpr int kMarkShift = 32;
static_assert(kMaxSlotBytes < kBodyFlag);

/// Messages that the reader has released; the only word of a ring that the reader writes.
struct alignas(kLine) RingTail {
  std::atomic<uint64_t> released;
};

constexpr uint64_t ring_bytes(uint64_t slots) { return sizeof(RingTail) + slots * sizeof(SlotHead); }

/// Finds a ring by (reader, id). Written by the ring's writer, but for reader_closed.
struct Entry {
  std::atomic<uint64_t> generation;  // 0: free; else unique for this writer and growing
  std::atomic<uint64_t> id;
  std::atomic<uint64_t> where;   // offset of the ring; the low bits hold log2 of its slots
  std::atomic<uint32_t> reader;  // node index and the flags below
  std::atomic<uint32_t> reader_closed;
};
constexpr uint32_t kReaderMask = 0xffff;
constexpr uint32_t kNoticeFlag = 1u << 30;
constexpr uint32_t kWriterClosedFlag = 1u << 31;
constexpr uint64_t kSlotsMask = kLine - 1;

enum class RankState : uint32_t { kAbsent = 0, kAttached = 1, kLeft = 2, kDead = 3 };

/// Words that others write to reach a rank.
struct alignas(kLine) Bell {
  std::atomic<uint32_t> sleeping;   // 1: write the rank's eventfd after publishing
  std::atomic<uint64_t> attention;  // grows when something rare happened: a notice, a leave, a death, a channel opened or closed
};

/// Words of a rank that others read.
struct alignas(kLine) Presence {
  std::atomic<uint32_t> state;            // RankState
  std::atomic<uint64_t> version;          // grows when a ring was added
  std::atomic<uint64_t> tables[kTables];  // table k has kTableEntries << k entries; 0: not there yet
};

struct Control {
  Bell bell;
  Presence presence;
};

struct alignas(kLine) ArenaHeader {
  uint64_t magic;
  uint64_t arena_bytes;
  uint32_t version;
  uint32_t ranks;
  alignas(kLine) std::atomic<uint64_t> next;  // first byte not yet handed out
};

static_assert(sizeof(SlotHead) == kLine && offsetof(SlotHead, sequence) == 56);
static_assert(sizeof(RingTail) == kLine && sizeof(Entry) == 32 && kWays * sizeof(Entry) == kLine);
static_assert(sizeof(Bell) == kLine && sizeof(Presence) == kLine && sizeof(Control) == 2 * kLine);
static_assert(sizeof(ArenaHeader) == 2 * kLine);
static_assert(kMaxNodeRanks <= kReaderMask && kMaxSlots < (1u << 11));
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

constexpr uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

/// Where the fixed parts lie for a number of ranks.
struct Layout {
  explicit Layout(uint32_t rank_count)
      : ranks{rank_count},
        row_bytes{round_up((uint64_t{rank_count} + 63) / 64 * 8, kLine)},
        controls{sizeof(ArenaHeader)},
        notices{controls + sizeof(Control) * rank_count},
        cuts{notices + row_bytes * rank_count},
        extents{round_up(cuts + row_bytes * rank_count, kPage)} {}

  uint32_t ranks;
  uint64_t row_bytes;
  uint64_t controls;
  uint64_t notices;
  uint64_t cuts;
  uint64_t extents;  // first byte of the part that is handed out
};

}  // namespace tutti::shm
