// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory_resource>
#include <vector>

#include "pool.hpp"

namespace tutti::shm {

/// Names a ring among those of one writer.
struct RingKey {
  uint32_t reader = 0;  // node index
  bool notice = false;  // the ring of notices; id is 0
  uint64_t id = 0;

  bool operator==(const RingKey&) const = default;
};

/// Where an entry lies in its writer's tables.
struct EntryPlace {
  uint32_t table = 0;
  uint32_t index = 0;
  Entry* entry = nullptr;
};

/// The writer's side of its lookup tables: set-associative, and a new table of double size when a set is full everywhere.
/// Entries never move, so that a reader may keep a pointer to one, and a miss costs a reader one set per table.
class Directory {
 public:
  Directory(Arena& arena, Pool& pool, uint32_t self, std::pmr::memory_resource* memory)
      : arena_{arena}, pool_{pool}, self_{self}, tables_{memory} {}

  /// Publishes a ring, whose memory is initialised. The same key may be there already (an earlier use of the id that its
  /// reader has not closed): readers take the oldest first.
  Outcome add(const RingKey& key, uint64_t ring, uint32_t slots, EntryPlace& place);
  static void mark_writer_closed(const EntryPlace& place);
  void remove(const EntryPlace& place);

 private:
  struct Table {
    uint64_t offset;
    std::pmr::vector<uint8_t> used;  // private, so that a peer cannot make us overwrite a live entry
  };
  bool find_free(const RingKey& key, EntryPlace& place);
  Outcome grow();

  Arena& arena_;
  Pool& pool_;
  uint32_t self_;
  std::pmr::vector<Table> tables_;
  uint64_t generation_ = 0;
};

/// What a reader finds.
struct FoundRing {
  Entry* entry = nullptr;
  uint64_t ring = 0;
  uint32_t slots = 0;
  bool writer_closed = false;
  uint64_t generation = 0;
};
enum class Lookup { kMissing, kFound, kCorrupt };

/// The oldest ring of `writer` with this key that its reader has not closed. Everything read is checked against the arena.
Lookup find_ring(const Arena& arena, uint32_t writer, const RingKey& key, FoundRing& found);

}  // namespace tutti::shm
