// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/matching.hpp"
#include "engine/operation.hpp"

namespace tutti {

struct Arrived;

/// A send, a receive, or a look for a message. Completed by its PointToPoint.
class MessageOperation : public Operation, private PostedReceive {
 public:
  void bind_send(const void* data, uint64_t bytes, uint32_t dest, int32_t tag) {
    bind(Kind::send, const_cast<void*>(data), bytes);
    envelope_.tag = tag;
    dest_ = dest;
  }
  /// source may be kAnySource, tag kAnyTag.
  void bind_recv(void* data, uint64_t capacity_bytes, uint32_t source, int32_t tag) {
    bind(Kind::receive, data, capacity_bytes);
    from = source;
    with_tag = tag;
  }
  /// Receives what a claiming look has found.
  void bind_recv(void* data, uint64_t capacity_bytes, Arrived& claimed) {
    bind(Kind::receive_claimed, data, capacity_bytes);
    arrived_ = &claimed;
  }
  /// Ends when there is a message that such a receive would take; if `once`, after one look at what has come. If `claim`, the
  /// message is then nobody else's.
  void bind_look(uint32_t source, int32_t tag, bool once, bool claim) {
    bind_recv(nullptr, 0, source, tag);
    kind_ = claim ? Kind::claim : Kind::probe;
    looks_left_ = once ? 2 : 0;
  }

  bool receives() const noexcept { return kind_ == Kind::receive || kind_ == Kind::receive_claimed; }
  /// Once done: of the message that was received or found. bytes: as it was sent, even if it was truncated.
  const Envelope& envelope() const noexcept { return envelope_; }
  uint64_t received_bytes() const noexcept { return std::min(envelope_.bytes, bytes_); }
  /// Once a look is done: whether there was such a message.
  bool found() const noexcept { return found_; }
  /// Of a look that claimed one; the group's.
  Arrived* claimed() const noexcept { return arrived_; }

  Execution::Outcome advance(bool&) override { return Execution::Outcome::blocked; }  // driven by PointToPoint
  MessageOperation* as_message() noexcept override { return this; }

 private:
  friend class PointToPoint;
  enum class Kind : uint8_t { send, receive, receive_claimed, probe, claim };

  void bind(Kind kind, void* data, uint64_t bytes) {
    kind_ = kind;
    data_ = data;
    bytes_ = bytes;
    envelope_ = Envelope();
    envelope_.bytes = kind == Kind::send ? bytes : 0;
    arrived_ = nullptr;
    found_ = false;
    looks_left_ = 0;
  }

  Kind kind_ = Kind::send;
  bool found_ = false;
  uint8_t looks_left_ = 0;  ///< 0: no limit
  uint32_t dest_ = 0;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;  ///< to send, or room for what is received
  Envelope envelope_;
  Arrived* arrived_ = nullptr;
};

}  // namespace tutti
