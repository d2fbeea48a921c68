// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "directory.hpp"

#include <bit>
#include <new>

namespace tutti::shm {
namespace {

constexpr uint32_t entries_of(uint32_t table) { return kTableEntries << table; }

/// First entry of the key's set in that table.
uint32_t set_of(const RingKey& key, uint32_t table) {
  uint64_t h = key.id + 0x9e3779b97f4a7c15ull * (uint64_t{key.reader} * 2 + (key.notice ? 1 : 0) + 1);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  h ^= h >> 31;
  return static_cast<uint32_t>(h & (entries_of(table) / kWays - 1)) * kWays;
}

uint32_t reader_word(const RingKey& key) { return key.reader | (key.notice ? kNoticeFlag : 0); }

}  // namespace

bool Directory::find_free(const RingKey& key, EntryPlace& place) {
  for (uint32_t t = 0; t < tables_.size(); ++t) {
    const uint32_t first = set_of(key, t);
    for (uint32_t i = first; i < first + kWays; ++i) {
      if (tables_[t].used[i] != 0) continue;
      place = {t, i, arena_.at<Entry>(tables_[t].offset) + i};
      return true;
    }
  }
  return false;
}

Outcome Directory::grow() {
  const auto t = static_cast<uint32_t>(tables_.size());
  if (t == kTables) return Outcome::failure(TUTTI_ERR_RESOURCE, "too many channels are open on one rank");
  const uint32_t count = entries_of(t);
  Table table{0, std::pmr::vector<uint8_t>(count, uint8_t{0}, tables_.get_allocator().resource())};
  tables_.reserve(kTables);  // nothing fails once the table has its memory
  if (Outcome got = pool_.allocate(uint64_t{count} * sizeof(Entry), table.offset); !got.ok()) return got;
  auto* entries = arena_.at<Entry>(table.offset);
  for (uint32_t i = 0; i < count; ++i) new (entries + i) Entry{};
  const uint64_t offset = table.offset;
  tables_.push_back(std::move(table));
  arena_.control(self_).presence.tables[t].store(offset, std::memory_order_release);
  return Outcome::success();
}

Outcome Directory::add(const RingKey& key, uint64_t ring, uint32_t slots, EntryPlace& place) {
  while (!find_free(key, place)) {
    if (Outcome grown = grow(); !grown.ok()) return grown;
  }
  tables_[place.table].used[place.index] = 1;
  Entry& entry = *place.entry;
  entry.id.store(key.id, std::memory_order_release);
  entry.where.store(ring | static_cast<uint64_t>(std::bit_width(slots) - 1), std::memory_order_release);
  entry.reader.store(reader_word(key), std::memory_order_release);
  entry.reader_closed.store(0, std::memory_order_release);
  entry.generation.store(++generation_, std::memory_order_release);
  arena_.control(self_).presence.version.fetch_add(1, std::memory_order_seq_cst);
  return Outcome::success();
}

void Directory::mark_writer_closed(const EntryPlace& place) {
  place.entry->reader.fetch_or(kWriterClosedFlag, std::memory_order_acq_rel);
}

void Directory::remove(const EntryPlace& place) {
  place.entry->generation.store(0, std::memory_order_release);
  tables_[place.table].used[place.index] = 0;
}

Lookup find_ring(const Arena& arena, uint32_t writer, const RingKey& key, FoundRing& found) {
  const Presence& presence = arena.control(writer).presence;
  FoundRing best;
  for (uint32_t t = 0; t < kTables; ++t) {
    const uint64_t table = presence.tables[t].load(std::memory_order_acquire);
    if (table == 0) break;
    if (!arena.holds(table, uint64_t{entries_of(t)} * sizeof(Entry), kLine)) return Lookup::kCorrupt;
    Entry* entry = arena.at<Entry>(table) + set_of(key, t);
    for (uint32_t i = 0; i < kWays; ++i, ++entry) {
      const uint64_t generation = entry->generation.load(std::memory_order_acquire);
      if (generation == 0 || (best.entry != nullptr && generation > best.generation)) continue;
      const uint32_t reader = entry->reader.load(std::memory_order_acquire);
      const uint64_t id = entry->id.load(std::memory_order_acquire);
      const uint64_t where = entry->where.load(std::memory_order_acquire);
      const bool closed = entry->reader_closed.load(std::memory_order_acquire) != 0;
      // The writer may have given the entry to another ring meanwhile; then what was read may be a mixture.
      if (entry->generation.load(std::memory_order_acquire) != generation) continue;
      if ((reader & ~kWriterClosedFlag) != reader_word(key) || id != key.id || closed) continue;
      const uint32_t slots = 1u << (where & 31);
      const uint64_t ring = where & ~kSlotsMask;
      if ((where & kSlotsMask) > 31 || slots < kMinSlots || slots > kMaxSlots || !arena.holds(ring, ring_bytes(slots), kLine)) {
        return Lookup::kCorrupt;
      }
      best = {entry, ring, slots, (reader & kWriterClosedFlag) != 0, generation};
    }
  }
  if (best.entry == nullptr) return Lookup::kMissing;
  found = best;
  return Lookup::kFound;
}

}  // namespace tutti::shm
