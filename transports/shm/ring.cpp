// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "ring.hpp"

#include <algorithm>
#include <new>

namespace tutti::shm {
namespace {

/// Few classes, so that a slot seldom needs another body: a slot keeps its largest.
uint64_t body_class(uint64_t bytes, uint64_t slot_bytes) {
  for (const uint64_t size : {uint64_t{1} << 10, uint64_t{8} << 10}) {
    if (bytes <= size && size < slot_bytes) return size;
  }
  return slot_bytes;
}

}  // namespace

Outcome Sender::open(const RingKey& key) {
  const uint32_t slots = share_.node->slots;
  bodies_.assign(slots, Body{});
  if (Outcome got = share_.pool.allocate(ring_bytes(slots), ring_); !got.ok()) return got;
  const Arena& arena = *share_.node->arena;
  tail_ = new (arena.at<RingTail>(ring_)) RingTail{};
  heads_ = arena.at<SlotHead>(ring_ + sizeof(RingTail));
  for (uint32_t i = 0; i < slots; ++i) new (heads_ + i) SlotHead{};
  mask_ = slots - 1;
  try {
    Outcome added = share_.directory.add(key, ring_, slots, place_);
    if (!added.ok()) share_.pool.release(ring_, ring_bytes(slots));
    return added;
  } catch (const std::bad_alloc&) {
    share_.pool.release(ring_, ring_bytes(slots));
    throw;
  }
}

tutti_status_t Sender::refresh_credit() {
  const uint64_t released = tail_->released.load(std::memory_order_seq_cst);
  if (released > next_ || released < released_) return TUTTI_ERR_PROTOCOL;
  released_ = released;
  if (next_ - released_ <= mask_) return TUTTI_OK;
  // A reader that closed its end takes no more messages, but must not hold up the writer: they are dropped.
  if (!abandoned()) return TUTTI_TP_AGAIN;
  released_ = next_;
  tail_->released.store(next_, std::memory_order_relaxed);
  return TUTTI_OK;
}

tutti_status_t Sender::reserve(uint64_t bytes, void** slot) {
  if (next_ - released_ > mask_) {
    if (const tutti_status_t credit = refresh_credit(); credit != TUTTI_OK) return credit;
  }
  if (bytes <= kInlineBytes && !in_body_) {
    *slot = head(next_).payload;
  } else {
    if (bytes > share_.node->slot_bytes) return TUTTI_ERR_ARGUMENT;
    const Body& body = bodies_[next_ & mask_];
    if (body.bytes < bytes) [[unlikely]] {
      if (const tutti_status_t provided = provide_body(bytes); provided != TUTTI_OK) return provided;
    }
    in_body_ = true;
    *slot = share_.node->arena->at<std::byte>(body.offset);
  }
  reserved_bytes_ = bytes;
  return TUTTI_OK;
}

tutti_status_t Sender::commit(uint64_t bytes, uint32_t mark) {
  if (reserved_bytes_ == kNothingReserved || bytes > reserved_bytes_) return TUTTI_ERR_ARGUMENT;
  SlotHead& slot = head(next_);
  uint64_t label = bytes | (uint64_t{mark} << kMarkShift);
  if (in_body_) {
    std::memcpy(slot.payload, &bodies_[next_ & mask_].offset, sizeof(uint64_t));
    label |= kBodyFlag;
  }
  slot.label.store(label, std::memory_order_relaxed);
  slot.sequence.exchange(++next_, std::memory_order_seq_cst);
  in_body_ = false;
  reserved_bytes_ = kNothingReserved;
  ++share_.counters.slots_sent;
  share_.counters.bytes_sent += bytes;
  if (share_.node->ring(reader_)) ++share_.counters.bells_rung;
  return TUTTI_OK;
}

tutti_status_t Sender::provide_body(uint64_t bytes) {
  Body& body = bodies_[next_ & mask_];
  const uint64_t size = body_class(bytes, share_.node->slot_bytes);
  uint64_t offset = 0;
  Outcome got = share_.pool.allocate(size, offset);
  if (!got.ok()) {
    const tutti_status_t borrowed = borrow_body(bytes);
    if (borrowed == TUTTI_ERR_RESOURCE) share_.last_failure = std::move(got);
    return borrowed;
  }
  if (body.bytes != 0) share_.pool.release(body.offset, body.bytes);
  body = {offset, size};
  return TUTTI_OK;
}

/// There is no more memory: goes on with the bodies that the channel has, if there are enough of them to be called a channel.
tutti_status_t Sender::borrow_body(uint64_t bytes) {
  const uint64_t count = mask_ + 1;
  const auto enough = std::count_if(bodies_.begin(), bodies_.end(), [&](const Body& b) { return b.bytes >= bytes; });
  if (enough < TUTTI_TP_MIN_SLOTS) return TUTTI_ERR_RESOURCE;
  for (;;) {
    // Slots that hold no message the reader may still read: those of messages next_ .. released_ + count - 1.
    for (uint64_t message = next_ + 1; message < released_ + count; ++message) {
      Body& other = bodies_[message & mask_];
      if (other.bytes < bytes) continue;
      std::swap(other, bodies_[next_ & mask_]);
      return TUTTI_OK;
    }
    const uint64_t before = released_;
    const uint64_t released = tail_->released.load(std::memory_order_seq_cst);
    if (released > next_ || released < before) return TUTTI_ERR_PROTOCOL;
    released_ = abandoned() ? next_ : released;
    if (released_ == before) return TUTTI_TP_AGAIN;
  }
}

void Sender::free_memory() {
  share_.directory.remove(place_);
  for (const Body& body : bodies_) {
    if (body.bytes != 0) share_.pool.release(body.offset, body.bytes);
  }
  share_.pool.release(ring_, ring_bytes(mask_ + 1));
}

tutti_status_t Receiver::attach() {
  if (attached_) return TUTTI_OK;
  const Arena& arena = *share_.node->arena;
  const uint64_t version = arena.control(writer_).presence.version.load(std::memory_order_seq_cst);
  if (looked_ && version == seen_version_) return TUTTI_TP_AGAIN;
  looked_ = true;
  seen_version_ = version;
  for (;; --skip_) {
    const Lookup lookup = find_ring(arena, writer_, key_, found_);
    if (lookup == Lookup::kCorrupt) return TUTTI_ERR_PROTOCOL;
    if (lookup == Lookup::kMissing) return TUTTI_TP_AGAIN;
    if (skip_ == 0) break;
    close_found();
  }
  tail_ = arena.at<RingTail>(found_.ring);
  heads_ = arena.at<SlotHead>(found_.ring + sizeof(RingTail));
  mask_ = found_.slots - 1;
  attached_ = true;
  return TUTTI_OK;
}

void Receiver::close_found() {
  found_.entry->reader_closed.exchange(1, std::memory_order_seq_cst);
  // The writer may wait for credit, and has memory to take back.
  if (share_.node->call_attention(writer_)) ++share_.counters.bells_rung;
}

tutti_status_t Receiver::locate(SlotHead& head) {
  const Arena& arena = *share_.node->arena;
  const uint64_t label = head.label.load(std::memory_order_relaxed);
  const uint32_t length = static_cast<uint32_t>(label) & ~kBodyFlag;
  if ((label & kBodyFlag) == 0) {
    if (length > kInlineBytes) return TUTTI_ERR_PROTOCOL;
    data_ = head.payload;
  } else {
    uint64_t offset = 0;
    std::memcpy(&offset, head.payload, sizeof(offset));
    if (length > share_.node->slot_bytes || !arena.holds(offset, length, 64)) return TUTTI_ERR_PROTOCOL;
    data_ = arena.at<std::byte>(offset);
  }
  length_ = length;
  mark_ = static_cast<uint32_t>(label >> kMarkShift);
  return TUTTI_OK;
}

tutti_status_t Receiver::peek(const void** slot, uint64_t* bytes, uint32_t* mark) {
  if (data_ == nullptr) {
    if (!attached_) [[unlikely]] {
      if (const tutti_status_t found = attach(); found != TUTTI_OK) return found;
    }
    SlotHead& head = heads_[next_ & mask_];
    const uint64_t sequence = head.sequence.load(std::memory_order_seq_cst);
    if (sequence != next_ + 1) return sequence > next_ + 1 ? TUTTI_ERR_PROTOCOL : TUTTI_TP_AGAIN;
    if (const tutti_status_t located = locate(head); located != TUTTI_OK) return located;
  }
  *slot = data_;
  *bytes = length_;
  *mark = mark_;
  return TUTTI_OK;
}

tutti_status_t Receiver::release() {
  if (data_ == nullptr) return TUTTI_ERR_ARGUMENT;
  data_ = nullptr;
  ++next_;
  tail_->released.exchange(next_, std::memory_order_seq_cst);
  ++share_.counters.slots_received;
  if (share_.node->ring(writer_)) ++share_.counters.bells_rung;
  return TUTTI_OK;
}

bool Receiver::close() {
  if (attach() != TUTTI_OK) return false;
  close_found();
  return true;
}

}  // namespace tutti::shm
