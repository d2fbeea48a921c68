// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "framing.hpp"
#include "ring.hpp"
#include "tutti/transport.h"

namespace tutti::tcp {

class Link;

/// What the C table's channel handle points to.
struct Channel {
  Link* link = nullptr;
  std::uint64_t id = 0;
  int direction = TUTTI_TP_SEND;
};

/// Posted operations in order, chained through their plugin words. Words: 0 next, 1 memory, 2 receive: its capacity.
/// A send keeps its length in op->bytes and its mark in op->mark.
class OpQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  tutti_tp_op_t* front() const { return head_; }
  void push(tutti_tp_op_t* op) {
    op->plugin[0] = nullptr;
    if (head_ == nullptr) {
      head_ = op;
    } else {
      tail_->plugin[0] = op;
    }
    tail_ = op;
  }
  tutti_tp_op_t* pop() {
    tutti_tp_op_t* op = head_;
    head_ = static_cast<tutti_tp_op_t*>(op->plugin[0]);
    return op;
  }

 private:
  tutti_tp_op_t* head_ = nullptr;
  tutti_tp_op_t* tail_ = nullptr;
};

inline void finish(tutti_tp_op_t* op, tutti_status_t status) {
  op->status = status;
  op->done = 1;
}

/// The receiving end of a channel: matches messages with posted receives, buffers what nobody awaits yet up to the window,
/// and counts the credit that the sender has and is owed. Knows no socket. It outlives the handle of its channel while
/// bytes of that use are still on their way, and exists before the handle when they come early.
class Inbound : public Channel {
 public:
  Inbound(Host& host, std::uint64_t window_bytes);

  // ---- what arrives; texts are violations
  const char* begin_frame(const FrameHeader& header);
  Target target();
  void advance(std::uint64_t bytes);
  void end_frame();
  const char* end(bool aborted);

  // ---- what the host does
  bool is_open() const { return open_; }
  void open() { open_ = true; }
  void post(tutti_tp_op_t* op);
  /// Ends what is posted with TUTTI_ERR_ABORTED; the rest of what the peer sends in this use is thrown away.
  void close();

  /// The link is gone: what is posted ends with status. Complete messages stay readable if keep.
  void link_gone(tutti_status_t status, bool keep);
  bool has_message() const { return !records_empty(); }

  /// Credit to be sent now; 0: none, or it can wait. took_credit() follows when it is on its way.
  std::uint64_t credit_due() const;
  std::uint64_t take_credit();
  std::uint32_t stream() const { return stream_; }

  /// Nothing is known of this channel any more; it can be forgotten.
  bool idle() const { return !open_ && drop_ends_ == 0 && !ended_ && !arriving_ && records_empty() && !started_; }
  /// Receives that wait: while there are any, looking at the socket is worth while.
  std::uint32_t waiting() const { return waiting_; }
  std::uint64_t messages() const { return messages_; }

  bool credit_queued = false;  ///< in the writer's list
  bool early = false;          ///< made by the peer's frames; never opened here

 private:
  enum class Mode : std::uint8_t { kPosted, kBuffered, kDiscarded };
  struct Record {  // of a buffered message; only the last may still be arriving
    std::uint64_t total;
    std::uint32_t mark;
  };

  bool records_empty() const { return records_.empty(); }
  void consume(std::uint64_t total, bool more_to_come);
  void complete(tutti_tp_op_t* op, std::uint64_t total, std::uint32_t mark);
  const char* begin_message(const FrameHeader& header);
  void forget_stream();

  std::uint64_t window_bytes_;
  std::uint64_t outstanding_;  ///< what the sender may still send
  std::uint64_t owed_ = 0;     ///< consumed, not yet told to the sender
  bool urgent_ = false;        ///< the sender may be waiting for it
  bool open_ = false;
  bool started_ = false;       ///< a stream is under way
  bool ended_ = false;         ///< the sender has closed this use
  bool arriving_ = false;      ///< between two frames of a message, or within one
  Mode mode_ = Mode::kBuffered;
  std::uint32_t stream_ = 0;
  std::uint32_t mark_ = 0;       ///< of the message that arrives
  std::uint32_t drop_ends_ = 0;  ///< uses closed here of which the sender's end has not been seen yet
  std::uint32_t waiting_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t begun_ = 0;    ///< bytes of the message covered by the frames whose headers were seen
  std::uint64_t arrived_ = 0;
  std::uint64_t messages_ = 0;
  tutti_tp_op_t* op_ = nullptr;
  OpQueue posted_;
  ByteRing bytes_;
  ValueRing<Record> records_;
};

/// The sending end of a channel: cuts posted messages into frames as far as credit allows.
class Outbound : public Channel {
 public:
  Outbound(std::uint32_t stream, std::uint64_t window_bytes)
      : stream_(stream), window_bytes_(window_bytes), credit_(window_bytes) {}

  struct Piece {
    FrameHeader header;
    const std::uint8_t* payload = nullptr;
    tutti_tp_op_t* op = nullptr;
    bool last = false;  ///< of its message
  };

  void post(tutti_tp_op_t* op) { queue_.push(op); }
  bool empty() const { return queue_.empty(); }
  bool sendable() const;
  /// Only if sendable().
  Piece next();
  /// False: more than any honest peer would give.
  bool add_credit(std::uint32_t stream, std::uint64_t bytes);
  /// The peer's window is known (the link is up).
  void set_window(std::uint64_t bytes) { window_bytes_ = credit_ = bytes; }
  void finish_all(tutti_status_t status);

  bool starved = false;          ///< counted by its link as waiting for credit
  bool ready_queued = false;     ///< in the writer's list
  bool message_on_wire = false;  ///< a frame was written whose message is not complete yet

 private:
  std::uint32_t stream_;
  std::uint64_t window_bytes_;
  std::uint64_t credit_;
  std::uint64_t offset_ = 0;  ///< of the first message in the queue
  bool started_ = false;      ///< its first frame was cut
  OpQueue queue_;
};

}  // namespace tutti::tcp
