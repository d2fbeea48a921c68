// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/matching.hpp"
#include "engine/message.hpp"
#include "engine/plan.hpp"

namespace tutti {

/// A message that no receive awaited when it came.
struct Arrived : WaitingMessage {
  enum class Place : uint8_t {
    channel,  ///< at the front of its channel
    moving,   ///< from there to memory of ours
    memory,   ///< of ours
    lent      ///< the sender's: a message to oneself for which we have no room
  };
  Place place = Place::channel;
  bool claimed = false;  ///< by a look: it waits no longer
  std::unique_ptr<std::byte[]> data;
  uint64_t capacity_bytes = 0;         ///< of data
  MessageOperation* lender = nullptr;  ///< the send, when lent
  MessageOperation* target = nullptr;  ///< the receive that gets it when all of it is here, when moving
  size_t index = 0;                    ///< in its pool
};

/// Where arrived messages are kept: nodes and memory for short ones are used again.
class ArrivedPool {
 public:
  Arrived& take();
  void give_back(Arrived& message) noexcept;
  void clear() noexcept;
  /// Those in use, and others that have nothing to tell.
  const std::vector<std::unique_ptr<Arrived>>& all() const noexcept { return all_; }

  static constexpr uint64_t kKeptBytes = 1024;  ///< memory that a node keeps for its next message
  static constexpr size_t kKeptNodes = 256;

 private:
  std::vector<std::unique_ptr<Arrived>> all_;
  std::vector<Arrived*> free_;
};

/// Tagged messages between the ranks of one group, over one channel per pair and direction. A message is a head (tag, length, and
/// the payload itself when it is short) and, when it is longer, a body. The receiver looks at a channel only while a receive could
/// take a message from there, so a sender that runs ahead is held back by the transport, not buffered here. A message that nobody
/// awaits stays at the front of its channel; only when a receive could take what is behind it, it is set aside in memory, of which
/// there is a limit: then its channel waits. Who gets which message is Matching's.
class PointToPoint {
 public:
  PointToPoint(ChannelSet& channels, uint32_t rank);

  /// Takes over an operation (driver only). Completion is told by `finish`.
  void submit(MessageOperation& operation);
  /// Drives everything; calls finish(operation, status) for each one that ended.
  template <class Finish>
  void advance(bool& moved, Finish&& finish) {
    drive(moved);
    finish_ended(finish);
  }
  /// Ends a receive that has met no message with TUTTI_ERR_CANCELLED, and leaves any other as it is.
  template <class Finish>
  void cancel(MessageOperation& receive, Finish&& finish) noexcept {
    withdraw(receive);
    finish_ended(finish);
  }
  bool idle() const noexcept { return active_ == 0 && ended_.empty(); }
  /// World ranks without which something cannot go on.
  std::vector<uint32_t> waiting_for() const;
  /// Something waits for a message from whoever sends one.
  bool waits_for_any() const noexcept;
  /// Ends all operations with `status`; the channels are closed.
  template <class Finish>
  void fail_all(const Status& status, Finish&& finish) noexcept {
    end_everything(status);
    finish_ended(finish);
  }
  /// The earliest deadline of all that is outstanding.
  Deadline earliest_deadline() const;
  /// Messages sent to each rank, empty when there were none: what a peer that still waits needs to know once we have left.
  std::vector<uint64_t> sent_counts() const;
  /// Whether the head of each of the peer's `sent_count` messages has come (rank of the group).
  bool has_all(uint32_t peer, uint64_t sent_count) const;
  /// Waits for `peer` (rank of the group), which sent `sent_count` messages in all and has left.
  bool waits_in_vain(uint32_t peer, uint64_t sent_count) const;
  uint64_t unexpected_bytes() const noexcept { return unexpected_bytes_; }
  /// A rank whose messages wait for room, UINT32_MAX if there is none.
  uint32_t held_back() const noexcept;
  /// A link error that breaks the whole group, if any, and the world rank at the other end.
  const Status& broken() const noexcept { return broken_; }
  uint32_t culprit() const noexcept { return culprit_; }

  static constexpr uint64_t kShortBytes = 1008;                 ///< carried in the head
  static constexpr uint64_t kUnexpectedLimitBytes = 64u << 20;  ///< set aside at most, per group
  static constexpr uint64_t kUnexpectedOverheadBytes = 128;     ///< what each one costs beside its payload

 private:
  struct Head {
    uint64_t bytes;
    int32_t tag;
    uint32_t magic;
  };
  static constexpr uint32_t kMagic = 0x74757474;
  static constexpr size_t kHeadBytes = sizeof(Head);

  /// Operations in order, linked through themselves.
  class Queue {
   public:
    bool empty() const noexcept { return head_ == nullptr; }
    MessageOperation* front() const noexcept { return static_cast<MessageOperation*>(head_); }
    static MessageOperation* after(const MessageOperation& one) noexcept { return static_cast<MessageOperation*>(one.next_); }
    void push_back(MessageOperation& operation) noexcept;
    MessageOperation* pop_front() noexcept;
    uint64_t earliest_ns() const noexcept;

   private:
    Operation* head_ = nullptr;
    Operation* tail_ = nullptr;
  };
  struct Sender {
    Queue queue;
    ChannelHandle* channel = nullptr;
    enum class State : uint8_t { head, head_posted, body, body_posted } state = State::head;
    uint64_t sent_bytes = 0;
    uint64_t messages = 0;  ///< handed to the transport to the last byte
    Ticket ticket;
    std::unique_ptr<std::byte[]> staging;  ///< for heads, where there are no slots
  };
  struct Receiver {
    ChannelHandle* channel = nullptr;
    /// front: the head of a message has come, and nothing of it has been taken off the channel.
    enum class State : uint8_t { head, head_posted, front, body, body_posted, ended } state = State::head;
    Envelope envelope;                   ///< of the message at the front or under way
    const std::byte* payload = nullptr;  ///< of a short one at the front
    MessageOperation* target = nullptr;  ///< its receive ...
    Arrived* aside = nullptr;            ///< ... or the message itself, when it had none
    uint64_t got_bytes = 0;
    uint64_t messages = 0;  ///< whose head has come
    Ticket ticket;
    std::unique_ptr<std::byte[]> staging;
  };

  // What happens to operations and to messages that have come (p2p.cpp).
  void reach(uint32_t source);
  Receiver& receiver(uint32_t peer);
  Sender& sender(uint32_t peer);
  void to_self(MessageOperation& operation);
  void receive(MessageOperation& operation);
  void hand_over(Arrived& message, MessageOperation& operation) noexcept;
  void deliver(MessageOperation& operation, const Envelope& message, const std::byte* data) noexcept;
  void drop(Arrived& message) noexcept;
  bool has_room(uint64_t bytes) const noexcept;
  void set_aside(Arrived& message);
  void settle_looks(bool& moved) noexcept;
  bool answer(MessageOperation& look) noexcept;
  bool looks_past(uint32_t peer, const Arrived* front) const noexcept;
  void end(MessageOperation* operation, Status status) noexcept;
  void withdraw(MessageOperation& receive) noexcept;
  void end_everything(const Status& status) noexcept;
  template <class Finish>
  void finish_ended(Finish&& finish) noexcept {
    while (MessageOperation* operation = ended_.pop_front()) finish(*operation, std::move(operation->result_));
  }

  // What happens on channels (p2p_channels.cpp).
  void drive(bool& moved);
  void drive_sender(uint32_t peer, Sender& sender, bool& moved);
  bool send_head(Sender& sender);
  bool send_body(Sender& sender);
  void drive_receiver(uint32_t peer, Receiver& receiver, bool& moved);
  bool open(uint32_t peer, Receiver& receiver);
  bool take_head(uint32_t peer, Receiver& receiver);
  bool accept_head(uint32_t peer, Receiver& receiver, const std::byte* message, uint64_t bytes);
  bool take_front(uint32_t peer, Receiver& receiver);
  bool take_body(Receiver& receiver);
  bool take_slots(Receiver& receiver, std::byte* data, uint64_t capacity_bytes);
  void end_message(Receiver& receiver) noexcept;
  uint64_t short_bytes(const ChannelHandle& channel) const;
  bool link_error(tutti_status_t status, const ChannelHandle& channel);
  bool end_of(Receiver& receiver, tutti_status_t status);

  ChannelSet& channels_;
  uint32_t rank_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
  std::vector<uint32_t> peers_;  ///< that have a sender or a receiver
  size_t first_peer_ = 0;        ///< of them, to be driven first: whose messages come first when many send
  bool reaches_all_ = false;
  Matching matching_;
  ArrivedPool arrived_;
  Queue looks_;
  Queue ended_;  ///< with their results
  size_t active_ = 0;
  uint64_t unexpected_bytes_ = 0;
  Status broken_;
  uint32_t culprit_ = UINT32_MAX;
};

}  // namespace tutti
