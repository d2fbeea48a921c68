// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory_resource>
#include <vector>

#include "directory.hpp"
#include "node.hpp"
#include "tutti/transport.h"

namespace tutti::shm {

struct Counters {
  uint64_t slots_sent = 0;
  uint64_t bytes_sent = 0;
  uint64_t slots_received = 0;
  uint64_t bells_rung = 0;
};

/// What the rings of one endpoint share.
struct Share {
  Share(std::shared_ptr<Node> node_of_rank, uint32_t index, std::pmr::memory_resource* host_memory)
      : node{std::move(node_of_rank)},
        self{index},
        memory{host_memory},
        pool{*node->arena, host_memory},
        directory{*node->arena, pool, index, host_memory} {}

  std::shared_ptr<Node> node;
  uint32_t self;
  std::pmr::memory_resource* memory;
  Pool pool;
  Directory directory;
  Counters counters;
  Outcome last_failure;  // why the last call that returned TUTTI_ERR_RESOURCE did
};

/// The writing end of a channel.
///
/// The protocol of publishing and sleeping: the writer exchanges the slot's sequence (seq_cst) and then loads the reader's
/// `sleeping`; the reader exchanges its `sleeping` to 1 (seq_cst) and then loads the sequence once more. In the single order of
/// these four at least one sees the other. Credits go the other way likewise.
class Sender {
 public:
  Sender(Share& share, uint32_t reader) : share_{share}, reader_{reader}, bodies_{share.memory} {}

  Outcome open(const RingKey& key);
  tutti_status_t reserve(uint64_t bytes, void** slot);
  tutti_status_t commit(uint64_t bytes, uint32_t mark);
  /// No more messages will come; those committed stay for the reader.
  void close() { Directory::mark_writer_closed(place_); }
  /// Whether the reader will never look at the ring again, as far as the ring tells.
  bool abandoned() const { return place_.entry->reader_closed.load(std::memory_order_seq_cst) != 0; }
  /// Gives the memory back. Only when the reader has closed its end or is no more.
  void free_memory();
  uint32_t reader() const { return reader_; }

 private:
  struct Body {
    uint64_t offset = 0;
    uint64_t bytes = 0;  // 0: none
  };
  SlotHead& head(uint64_t message) const { return heads_[message & mask_]; }
  tutti_status_t refresh_credit();
  tutti_status_t provide_body(uint64_t bytes);
  tutti_status_t borrow_body(uint64_t bytes);

  Share& share_;
  uint32_t reader_;
  bool in_body_ = false;
  uint64_t next_ = 0;      // messages committed
  uint64_t released_ = 0;  // the reader's tail as last seen
  uint64_t mask_ = 0;
  uint64_t reserved_bytes_ = kNothingReserved;
  SlotHead* heads_ = nullptr;
  RingTail* tail_ = nullptr;
  uint64_t ring_ = 0;
  std::pmr::vector<Body> bodies_;  // by slot
  EntryPlace place_;

  static constexpr uint64_t kNothingReserved = ~uint64_t{0};
};

/// The reading end of a channel. Finds its ring when there is one. TUTTI_ERR_PROTOCOL: the writer wrote nonsense.
class Receiver {
 public:
  Receiver(Share& share, uint32_t writer, const RingKey& key) : share_{share}, writer_{writer}, key_{key} {}

  tutti_status_t peek(const void** slot, uint64_t* bytes, uint32_t* mark);
  tutti_status_t release();
  /// Tells the writer that nobody reads here any more. False: there was no ring yet to write that into.
  bool close();
  /// Finds the ring if that is still to do. AGAIN: there is none.
  tutti_status_t attach();
  /// The first `uses` rings found are earlier uses of the id: closes them unread.
  void skip(uint32_t uses) { skip_ = uses; }
  uint32_t skipped() const { return skip_; }
  uint32_t writer() const { return writer_; }
  const RingKey& key() const { return key_; }

 private:
  tutti_status_t locate(SlotHead& head);
  void close_found();

  Share& share_;
  uint32_t writer_;
  bool attached_ = false;
  uint64_t next_ = 0;  // messages released
  uint64_t mask_ = 0;
  SlotHead* heads_ = nullptr;
  RingTail* tail_ = nullptr;
  const std::byte* data_ = nullptr;  // of the message peeked at; nullptr: none
  uint32_t length_ = 0;
  uint32_t mark_ = 0;
  RingKey key_;
  FoundRing found_;
  uint32_t skip_ = 0;
  bool looked_ = false;
  uint64_t seen_version_ = 0;
};

}  // namespace tutti::shm
