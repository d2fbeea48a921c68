// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

constexpr uint32_t kAnySource = UINT32_MAX;
constexpr int32_t kAnyTag = -1;

/// What is known of a message before its bytes.
struct Envelope {
  uint32_t source = 0;  ///< rank of the group
  int32_t tag = 0;
  uint64_t bytes = 0;
};

/// Items linked through themselves, in the order in which they were added: nothing is allocated for them.
template <class Item, Item* Item::*Previous, Item* Item::*Next>
class LinkedList {
 public:
  Item* front() const noexcept { return front_; }
  bool empty() const noexcept { return front_ == nullptr; }
  void push_back(Item& item) noexcept {
    item.*Previous = back_;
    item.*Next = nullptr;
    (back_ ? back_->*Next : front_) = &item;
    back_ = &item;
  }
  void remove(Item& item) noexcept {
    (item.*Previous ? item.*Previous->*Next : front_) = item.*Next;
    (item.*Next ? item.*Next->*Previous : back_) = item.*Previous;
  }

 private:
  Item* front_ = nullptr;
  Item* back_ = nullptr;
};

/// A receive that waits for its message: from which rank (or any), with which tag (or any).
struct PostedReceive {
  uint32_t from = 0;
  int32_t with_tag = 0;
  bool takes(const Envelope& message) const noexcept {
    return (from == message.source || from == kAnySource) && (with_tag == message.tag || with_tag == kAnyTag);
  }

  // Of Matching.
  uint64_t order = 0;  ///< 0: it waits for nothing
  PostedReceive* previous = nullptr;
  PostedReceive* next = nullptr;
};

/// A message that waits for its receive.
struct WaitingMessage {
  Envelope envelope;

  // Of Matching.
  WaitingMessage* previous = nullptr;  ///< of all
  WaitingMessage* next = nullptr;
  WaitingMessage* previous_of_source = nullptr;
  WaitingMessage* next_of_source = nullptr;
};

/// Which message goes to which receive: MPI's rules. Of the receives that take a message the one that was posted first gets it; of
/// the messages that a receive takes it gets the one that came first. So messages of one sender with one tag never overtake each
/// other. Knows nothing of bytes and channels; its caller offers a message first to take(), a receive first to find().
class Matching {
 public:
  explicit Matching(uint32_t ranks) : posted_(ranks), waiting_from_(ranks) {}

  using Receives = LinkedList<PostedReceive, &PostedReceive::previous, &PostedReceive::next>;

  // ---- receives that wait
  void post(PostedReceive& receive) noexcept;
  /// The first posted that takes such a message, taken out; null: none.
  PostedReceive* take(const Envelope& message) noexcept;
  void withdraw(PostedReceive& receive) noexcept {
    queue_of(receive).remove(receive);
    receive.order = 0;
  }
  static bool is_posted(const PostedReceive& receive) noexcept { return receive.order != 0; }
  /// Whether a receive waits that could take a message of this rank.
  bool awaits(uint32_t source) const noexcept { return !any_.empty() || !posted_[source].empty(); }
  /// Those that name the rank, and those that name none.
  const Receives& from(uint32_t source) const noexcept { return posted_[source]; }
  const Receives& from_any() const noexcept { return any_; }

  // ---- messages that wait
  void add(WaitingMessage& message) noexcept;
  /// The first that came and that the receive takes; it stays.
  WaitingMessage* find(const PostedReceive& receive) const noexcept;
  void remove(WaitingMessage& message) noexcept;
  WaitingMessage* first() const noexcept { return waiting_.front(); }

 private:
  using Messages = LinkedList<WaitingMessage, &WaitingMessage::previous, &WaitingMessage::next>;
  using MessagesOfSource = LinkedList<WaitingMessage, &WaitingMessage::previous_of_source, &WaitingMessage::next_of_source>;

  Receives& queue_of(const PostedReceive& receive) noexcept {
    return receive.from == kAnySource ? any_ : posted_[receive.from];
  }

  std::vector<Receives> posted_;  ///< by source
  Receives any_;
  uint64_t posted_count_ = 0;
  Messages waiting_;
  std::vector<MessagesOfSource> waiting_from_;
};

}  // namespace tutti
