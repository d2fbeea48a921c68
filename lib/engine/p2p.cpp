// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations, and messages that have come: who waits for what, and who gets it.
#include "engine/p2p.hpp"

#include <algorithm>
#include <cstring>

namespace tutti {

PointToPoint::PointToPoint(ChannelSet& channels, uint32_t rank)
    : channels_(channels),
      rank_(rank),
      senders_(channels.world_ranks().size()),
      receivers_(channels.world_ranks().size()),
      matching_(static_cast<uint32_t>(channels.world_ranks().size())) {}

// ---- messages that have come --------------------------------------------------------------------------------------------

Arrived& ArrivedPool::take() {
  if (free_.empty()) {
    auto made = std::make_unique<Arrived>();
    free_.reserve(all_.size() + 1);  // so that giving back never allocates
    made->index = all_.size();
    all_.push_back(std::move(made));
    return *all_.back();
  }
  Arrived* one = free_.back();
  free_.pop_back();
  return *one;
}

void ArrivedPool::give_back(Arrived& message) noexcept {
  if (free_.size() >= kKeptNodes) {
    const size_t index = message.index;
    all_.back()->index = index;
    std::swap(all_[index], all_.back());
    all_.pop_back();
    return;
  }
  if (message.capacity_bytes > kKeptBytes) {
    message.data.reset();
    message.capacity_bytes = 0;
  }
  message.claimed = false;
  message.lender = message.target = nullptr;
  free_.push_back(&message);
}

void ArrivedPool::clear() noexcept {
  free_.clear();
  all_.clear();
}

bool PointToPoint::has_room(uint64_t bytes) const noexcept {
  // The length is the peer's claim: it may be anything.
  return bytes <= kUnexpectedLimitBytes && unexpected_bytes_ + kUnexpectedOverheadBytes + bytes <= kUnexpectedLimitBytes;
}

/// Memory of ours for a message for which there is room.
void PointToPoint::set_aside(Arrived& message) {
  const uint64_t bytes = message.envelope.bytes;
  if (message.capacity_bytes < bytes) {
    const uint64_t capacity = std::max(bytes, ArrivedPool::kKeptBytes);
    message.data.reset(new std::byte[capacity]);
    message.capacity_bytes = capacity;
  }
  unexpected_bytes_ += kUnexpectedOverheadBytes + bytes;
}

void PointToPoint::drop(Arrived& message) noexcept {
  if (message.place == Arrived::Place::memory || message.place == Arrived::Place::moving)
    unexpected_bytes_ -= kUnexpectedOverheadBytes + message.envelope.bytes;
  arrived_.give_back(message);
}

/// To an operation that takes it; it is in nobody's list any more.
void PointToPoint::hand_over(Arrived& message, MessageOperation& operation) noexcept {
  switch (message.place) {
    case Arrived::Place::channel: {
      Receiver& from = *receivers_[message.envelope.source];
      from.target = &operation;
      from.aside = nullptr;
      return drop(message);
    }
    case Arrived::Place::moving:
      message.target = &operation;
      return;
    case Arrived::Place::memory:
      deliver(operation, message.envelope, message.data.get());
      return drop(message);
    case Arrived::Place::lent:
      deliver(operation, message.envelope, static_cast<const std::byte*>(message.lender->data_));
      end(message.lender, Status());
      return drop(message);
  }
}

/// data null: it lies in the receive buffer already.
void PointToPoint::deliver(MessageOperation& operation, const Envelope& message, const std::byte* data) noexcept {
  operation.envelope_ = message;
  const uint64_t fits = std::min(message.bytes, operation.bytes_);
  if (fits > 0 && data) std::memcpy(operation.data_, data, fits);
  Status status;
  if (message.bytes > operation.bytes_) {
    try {
      status = error(TUTTI_ERR_TRUNCATED, "a message of {} bytes (from rank {}, tag {}) met a receive buffer of {} bytes",
                     message.bytes, message.source, message.tag, operation.bytes_);
    } catch (const std::bad_alloc&) {
      status = Status(TUTTI_ERR_TRUNCATED);
    }
  }
  end(&operation, std::move(status));
}

// ---- operations -----------------------------------------------------------------------------------------------------------

void PointToPoint::Queue::push_back(MessageOperation& operation) noexcept {
  operation.next_ = nullptr;
  (tail_ ? tail_->next_ : head_) = &operation;
  tail_ = &operation;
}

MessageOperation* PointToPoint::Queue::pop_front() noexcept {
  MessageOperation* first = front();
  if (!first) return nullptr;
  head_ = first->next_;
  if (!head_) tail_ = nullptr;
  first->next_ = nullptr;
  return first;
}

uint64_t PointToPoint::Queue::earliest_ns() const noexcept {
  uint64_t earliest = Deadline::kNever;
  for (const Operation* one = head_; one; one = one->next_) earliest = std::min(earliest, one->deadline_.at_ns);
  return earliest;
}

PointToPoint::Sender& PointToPoint::sender(uint32_t peer) {
  if (!senders_[peer]) {
    auto made = std::make_unique<Sender>();
    if (!receivers_[peer]) peers_.push_back(peer);
    senders_[peer] = std::move(made);
  }
  return *senders_[peer];
}

PointToPoint::Receiver& PointToPoint::receiver(uint32_t peer) {
  if (!receivers_[peer]) {
    auto made = std::make_unique<Receiver>();
    if (!senders_[peer]) peers_.push_back(peer);
    receivers_[peer] = std::move(made);
  }
  return *receivers_[peer];
}

/// Sees to it that messages of that rank, or of any, are looked for.
void PointToPoint::reach(uint32_t source) {
  if (source != kAnySource) {
    if (source != rank_) receiver(source);
    return;
  }
  for (uint32_t peer = 0; !reaches_all_ && peer < receivers_.size(); ++peer)
    if (peer != rank_) receiver(peer);
  reaches_all_ = true;
}

void PointToPoint::submit(MessageOperation& operation) {
  // What may throw comes first: then the operation is not ours.
  switch (operation.kind_) {
    case MessageOperation::Kind::send:
      if (operation.dest_ == rank_) return to_self(operation);
      sender(operation.dest_).queue.push_back(operation);
      break;
    case MessageOperation::Kind::receive:
      reach(operation.from);
      if (WaitingMessage* message = matching_.find(operation)) {
        matching_.remove(*message);
        hand_over(static_cast<Arrived&>(*message), operation);
      } else {
        matching_.post(operation);
      }
      break;
    case MessageOperation::Kind::receive_claimed:
      hand_over(*operation.arrived_, operation);
      break;
    case MessageOperation::Kind::probe:
    case MessageOperation::Kind::claim:
      reach(operation.from);
      if (!answer(operation)) looks_.push_back(operation);
      break;
  }
  ++active_;
}

// A message to oneself has no channel: it goes straight to a receive that waits for it, or is set aside. One for which there is
// no room stays in its sender's buffer until it is received.
void PointToPoint::to_self(MessageOperation& operation) {
  const Envelope envelope{rank_, operation.envelope_.tag, operation.bytes_};
  if (PostedReceive* target = matching_.take(envelope)) {
    deliver(static_cast<MessageOperation&>(*target), envelope, static_cast<const std::byte*>(operation.data_));
    end(&operation, Status());
    ++active_;
    return;
  }
  Arrived& message = arrived_.take();
  message.envelope = envelope;
  message.place = Arrived::Place::lent;
  if (has_room(envelope.bytes)) {
    try {
      set_aside(message);
    } catch (...) {
      arrived_.give_back(message);
      throw;
    }
    message.place = Arrived::Place::memory;
    if (envelope.bytes > 0) std::memcpy(message.data.get(), operation.data_, envelope.bytes);
    end(&operation, Status());
  } else {
    message.lender = &operation;
  }
  ++active_;
  matching_.add(message);
}

void PointToPoint::end(MessageOperation* operation, Status status) noexcept {
  operation->result_ = std::move(status);
  ended_.push_back(*operation);
  --active_;
}

void PointToPoint::withdraw(MessageOperation& receive) noexcept {
  if (!Matching::is_posted(receive)) return;
  matching_.withdraw(receive);
  Status status(TUTTI_ERR_CANCELLED);
  try {
    status = error(TUTTI_ERR_CANCELLED, "the receive was cancelled before a message came for it");
  } catch (const std::bad_alloc&) {
    // Then without words.
  }
  end(&receive, std::move(status));
}

/// Whether a look at what has come ends it.
bool PointToPoint::answer(MessageOperation& look) noexcept {
  auto* message = static_cast<Arrived*>(matching_.find(look));
  if (!message) return false;
  look.envelope_ = message->envelope;
  look.found_ = true;
  if (look.kind_ == MessageOperation::Kind::claim) {
    matching_.remove(*message);
    message->claimed = true;
    look.arrived_ = message;
  }
  end(&look, Status());
  return true;
}

void PointToPoint::settle_looks(bool& moved) noexcept {
  Queue waiting = std::exchange(looks_, Queue());
  while (MessageOperation* look = waiting.pop_front()) {
    if (answer(*look)) {
      moved = true;
    } else if (look->looks_left_ > 0 && --look->looks_left_ == 0) {
      end(look, Status());
    } else {
      looks_.push_back(*look);
    }
  }
}

/// Whether a look could be answered by a message behind the one at the front of the peer's channel.
bool PointToPoint::looks_past(uint32_t peer, const Arrived* front) const noexcept {
  for (const MessageOperation* look = looks_.front(); look; look = Queue::after(*look))
    if ((look->from == peer || look->from == kAnySource) && (!front || front->claimed || !look->takes(front->envelope)))
      return true;
  return false;
}

void PointToPoint::end_everything(const Status& status) noexcept {
  const auto end_one = [&](MessageOperation*& operation) {
    if (operation) end(std::exchange(operation, nullptr), copy_of(status));
  };
  const auto end_posted = [&](const Matching::Receives& receives) {
    while (PostedReceive* one = receives.front()) {
      matching_.withdraw(*one);
      end(static_cast<MessageOperation*>(one), copy_of(status));
    }
  };
  const auto end_queue = [&](Queue& queue) {
    while (MessageOperation* operation = queue.pop_front()) end(operation, copy_of(status));
  };
  for (auto& one : senders_)
    if (one) end_queue(one->queue);
  for (auto& one : receivers_) {
    if (!one) continue;
    end_one(one->target);
    one->aside = nullptr;
  }
  for (uint32_t peer = 0; peer < receivers_.size(); ++peer) end_posted(matching_.from(peer));
  end_posted(matching_.from_any());
  end_queue(looks_);
  for (const auto& message : arrived_.all()) {
    end_one(message->lender);
    end_one(message->target);
  }
  while (WaitingMessage* message = matching_.first()) matching_.remove(*message);
  arrived_.clear();
  unexpected_bytes_ = 0;
}

// ---- questions ------------------------------------------------------------------------------------------------------------

std::vector<uint32_t> PointToPoint::waiting_for() const {
  std::vector<uint32_t> peers;
  const auto add = [&](uint32_t peer) { peers.push_back(channels_.world_ranks()[peer]); };
  for (const uint32_t peer : peers_) {
    const Receiver* from = receivers_[peer].get();
    if ((senders_[peer] && !senders_[peer]->queue.empty()) || !matching_.from(peer).empty() ||
        (from && (from->target || (from->aside && from->aside->target))))
      add(peer);
  }
  if (!matching_.from(rank_).empty()) add(rank_);
  for (const MessageOperation* look = looks_.front(); look; look = Queue::after(*look))
    if (look->from != kAnySource) add(look->from);
  return peers;
}

bool PointToPoint::waits_for_any() const noexcept {
  bool any = !matching_.from_any().empty();
  for (const MessageOperation* look = looks_.front(); look && !any; look = Queue::after(*look)) any = look->from == kAnySource;
  return any;
}

uint32_t PointToPoint::held_back() const noexcept {
  for (const uint32_t peer : peers_) {
    const Receiver* from = receivers_[peer].get();
    if (from && from->state == Receiver::State::front && from->aside && !has_room(from->envelope.bytes) &&
        (matching_.awaits(peer) || looks_past(peer, from->aside)))
      return peer;
  }
  return UINT32_MAX;
}

Deadline PointToPoint::earliest_deadline() const {
  uint64_t earliest = looks_.earliest_ns();
  const auto see = [&](const MessageOperation* operation) {
    if (operation) earliest = std::min(earliest, operation->deadline_.at_ns);
  };
  const auto see_posted = [&](const Matching::Receives& receives) {
    for (const PostedReceive* one = receives.front(); one; one = one->next) see(static_cast<const MessageOperation*>(one));
  };
  for (const uint32_t peer : peers_) {
    if (senders_[peer]) earliest = std::min(earliest, senders_[peer]->queue.earliest_ns());
    if (receivers_[peer]) see(receivers_[peer]->target);
    see_posted(matching_.from(peer));
  }
  see_posted(matching_.from(rank_));
  see_posted(matching_.from_any());
  for (const auto& message : arrived_.all()) {
    see(message->lender);
    see(message->target);
  }
  return Deadline{earliest};
}

std::vector<uint64_t> PointToPoint::sent_counts() const {
  std::vector<uint64_t> counts;
  for (uint32_t peer = 0; peer < senders_.size(); ++peer)
    if (senders_[peer] && senders_[peer]->messages > 0) {
      counts.resize(senders_.size());
      counts[peer] = senders_[peer]->messages;
    }
  return counts;
}

bool PointToPoint::has_all(uint32_t peer, uint64_t sent_count) const {
  return receivers_[peer] ? receivers_[peer]->messages >= sent_count : sent_count == 0;
}

bool PointToPoint::waits_in_vain(uint32_t peer, uint64_t sent_count) const {
  if (senders_[peer] && !senders_[peer]->queue.empty()) return true;
  const Receiver* from = receivers_[peer].get();
  if (!from) return false;
  // Either the message under way is one that the peer did not finish, or nothing more comes.
  if (from->target || (from->aside && from->aside->target)) return from->messages > sent_count;
  bool awaited = !matching_.from(peer).empty();
  for (const MessageOperation* look = looks_.front(); look && !awaited; look = Queue::after(*look)) awaited = look->from == peer;
  return awaited && has_all(peer, sent_count);
}

}  // namespace tutti
