// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "engine/operation.hpp"
#include "engine/plan.hpp"

namespace tutti {

/// A send or receive between two ranks. Completed by its PointToPoint.
class MessageOperation : public Operation {
 public:
  void bind_send(const void* data, uint64_t bytes, uint32_t peer, int32_t tag) {
    data_ = const_cast<void*>(data);
    bytes_ = bytes;
    peer_ = peer;
    tag_ = tag;
    sending_ = true;
  }
  void bind_recv(void* data, uint64_t capacity_bytes, uint32_t peer, int32_t tag) {
    bind_send(data, capacity_bytes, peer, tag);
    sending_ = false;
  }
  bool sending() const noexcept { return sending_; }
  uint64_t received_bytes() const noexcept { return received_bytes_; }

  Execution::Outcome advance(bool&) override { return Execution::Outcome::blocked; }  // driven by PointToPoint
  MessageOperation* as_message() noexcept override { return this; }

 private:
  friend class PointToPoint;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t peer_ = 0;
  int32_t tag_ = 0;
  bool sending_ = true;
  uint64_t received_bytes_ = 0;
};

/// Tagged messages between the ranks of one group, over one channel per pair and direction. A message is a head (tag, length, and
/// the payload itself when it is short) and, when it is longer, a body. The receiver takes a message off the channel only while
/// a receive from that peer is posted, so a sender that runs ahead is held back by the transport, not buffered here; a message
/// whose tag nobody awaits yet is set aside so that later ones can be matched: messages with one tag never overtake each other.
class PointToPoint {
 public:
  PointToPoint(ChannelSet& channels, uint32_t rank);

  /// Takes over an operation (driver only). Completion is told by `finish`.
  void submit(MessageOperation& operation);
  /// Drives everything; calls finish(operation, status) for each one that ended.
  template <class Finish>
  void advance(bool& moved, Finish&& finish);
  bool idle() const noexcept { return active_ == 0 && ended_.empty(); }
  std::vector<uint32_t> waiting_for() const;
  /// Ends all operations with `status`; the channels are closed.
  template <class Finish>
  void fail_all(const Status& status, Finish&& finish) noexcept;
  /// The earliest deadline of all that is outstanding.
  Deadline earliest_deadline() const;
  /// Messages sent to each rank, empty when there were none: what a peer that still waits needs to know once we have left.
  std::vector<uint64_t> sent_counts() const;
  /// Waits for `peer` (rank of the group), which sent `sent_count` messages in all and has left.
  bool waits_in_vain(uint32_t peer, uint64_t sent_count) const;
  uint64_t unexpected_bytes() const noexcept { return unexpected_bytes_; }
  /// A link error that breaks the whole group, if any, and the world rank at the other end.
  const Status& broken() const noexcept { return broken_; }
  uint32_t culprit() const noexcept { return culprit_; }

  static constexpr uint64_t kShortBytes = 1008;                 ///< carried in the head
  static constexpr uint64_t kUnexpectedLimitBytes = 64u << 20;  ///< set aside at most, per group
  static constexpr uint64_t kUnexpectedOverheadBytes = 64;      ///< what each one costs beside its payload

 private:
  struct Head {
    uint64_t bytes;
    int32_t tag;
    uint32_t magic;
  };
  static constexpr uint32_t kMagic = 0x74757474;
  static constexpr size_t kHeadBytes = sizeof(Head);

  /// Messages in order, linked through themselves, so that nothing is allocated for them.
  class Queue {
   public:
    bool empty() const noexcept { return head_ == nullptr; }
    MessageOperation* front() const noexcept { return static_cast<MessageOperation*>(head_); }
    void push_back(MessageOperation& operation) noexcept;
    MessageOperation* pop_front() noexcept;
    /// The first with this tag, taken out; null if there is none.
    MessageOperation* take(int32_t tag) noexcept;
    uint64_t earliest_ns() const noexcept;

   private:
    Operation* head_ = nullptr;
    Operation* tail_ = nullptr;
  };
  struct Unexpected {
    int32_t tag = 0;
    uint64_t bytes = 0;
    std::unique_ptr<std::byte[]> data;
    MessageOperation* lender = nullptr;  ///< a send to oneself that is still outstanding: the data lies in its buffer
  };
  struct Sender {
    Queue queue;
    ChannelHandle* channel = nullptr;
    enum class State : uint8_t { head, head_posted, body, body_posted } state = State::head;
    uint64_t sent_bytes = 0;
    uint64_t messages = 0;  ///< handed to the transport to the last byte
    Ticket ticket;
    std::unique_ptr<std::byte[]> staging;
  };
  struct Receiver {
    Queue posted;
    std::list<Unexpected> unexpected;
    ChannelHandle* channel = nullptr;
    enum class State : uint8_t { head, head_posted, body, body_posted } state = State::head;
    MessageOperation* target = nullptr;  ///< of the message on its way; null: it is set aside
    Unexpected aside;
    Head head{};
    uint64_t got_bytes = 0;
    uint64_t messages = 0;  ///< whose head has been taken off the channel
    Ticket ticket;
    std::unique_ptr<std::byte[]> staging;
  };
  void drive_sender(uint32_t peer, Sender& sender, bool& moved);
  bool send_head(Sender& sender);
  bool send_body(Sender& sender);
  void drive_receiver(uint32_t peer, Receiver& receiver, bool& moved);
  bool take_head(Receiver& receiver);
  bool accept_head(Receiver& receiver, const std::byte* message, uint64_t bytes);
  bool set_aside(Receiver& receiver);
  bool take_body(Receiver& receiver);
  void end_message(Receiver& receiver);
  bool match_unexpected(Receiver& receiver);
  void deliver(MessageOperation& operation, const std::byte* data, uint64_t bytes) noexcept;
  void to_self(MessageOperation& operation);
  uint64_t short_bytes(const ChannelHandle& channel) const;
  bool link_error(tutti_status_t status, const ChannelHandle& channel);
  void end(MessageOperation* operation, Status status) noexcept;
  void end_all(Queue& queue, const Status& status) noexcept;
  template <class Finish>
  void finish_ended(Finish&& finish) noexcept;

  ChannelSet& channels_;
  uint32_t rank_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  Queue ended_;  ///< with their results
  size_t active_ = 0;
  uint64_t unexpected_bytes_ = 0;
  Status broken_;
  uint32_t culprit_ = UINT32_MAX;
};

template <class Finish>
void PointToPoint::advance(bool& moved, Finish&& finish) {
  for (uint32_t peer = 0; peer < senders_.size() && broken_.ok(); ++peer) {
    if (senders_[peer]) drive_sender(peer, *senders_[peer], moved);
    if (receivers_[peer]) drive_receiver(peer, *receivers_[peer], moved);
  }
  finish_ended(finish);
}

template <class Finish>
void PointToPoint::finish_ended(Finish&& finish) noexcept {
  while (MessageOperation* operation = ended_.pop_front()) finish(*operation, std::move(operation->result_));
}

template <class Finish>
void PointToPoint::fail_all(const Status& status, Finish&& finish) noexcept {
  for (auto& sender : senders_)
    if (sender) end_all(sender->queue, status);
  for (auto& receiver : receivers_) {
    if (!receiver) continue;
    if (receiver->target) end(receiver->target, copy_of(status));
    receiver->target = nullptr;
    end_all(receiver->posted, status);
    for (Unexpected& message : receiver->unexpected)
      if (message.lender) end(std::exchange(message.lender, nullptr), copy_of(status));
    receiver->unexpected.clear();
  }
  unexpected_bytes_ = 0;
  finish_ended(finish);
}

}  // namespace tutti
