// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/p2p.hpp"

#include <algorithm>
#include <cstring>

namespace tutti {
namespace {

constexpr uint32_t kNoMark = 0;  // a message says itself what it is

}  // namespace

PointToPoint::PointToPoint(ChannelSet& channels, uint32_t rank)
    : channels_(channels), rank_(rank), senders_(channels.world_ranks().size()), receivers_(channels.world_ranks().size()) {}

Status copy_of(const Status& status) noexcept {
  try {
    return status;
  } catch (const std::bad_alloc&) {
    return Status(status.code());
  }
}

// ---- queues -----------------------------------------------------------------------------------------------------------

void PointToPoint::Queue::push_back(MessageOperation& operation) noexcept {
  operation.next_ = nullptr;
  if (tail_)
    tail_->next_ = &operation;
  else
    head_ = &operation;
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

MessageOperation* PointToPoint::Queue::take(int32_t tag) noexcept {
  Operation* before = nullptr;
  for (Operation* one = head_; one; before = one, one = one->next_) {
    auto* message = static_cast<MessageOperation*>(one);
    if (message->tag_ != tag) continue;
    (before ? before->next_ : head_) = one->next_;
    if (tail_ == one) tail_ = before;
    one->next_ = nullptr;
    return message;
  }
  return nullptr;
}

uint64_t PointToPoint::Queue::earliest_ns() const noexcept {
  uint64_t earliest = Deadline::kNever;
  for (const Operation* one = head_; one; one = one->next_) earliest = std::min(earliest, one->deadline_.at_ns);
  return earliest;
}

void PointToPoint::end(MessageOperation* operation, Status status) noexcept {
  operation->result_ = std::move(status);
  ended_.push_back(*operation);
  --active_;
}

void PointToPoint::end_all(Queue& queue, const Status& status) noexcept {
  while (MessageOperation* operation = queue.pop_front()) end(operation, copy_of(status));
}

// ---- sending ----------------------------------------------------------------------------------------------------------

bool PointToPoint::link_error(tutti_status_t status, const ChannelHandle& channel) {
  broken_ = error(status < 0 ? status : TUTTI_ERR_INTERNAL, "the {} link to rank {} failed", channel.table->name, channel.peer);
  culprit_ = channel.peer;
  return false;
}

void PointToPoint::submit(MessageOperation& operation) {
  // What may throw comes first: then the operation is not ours.
  const uint32_t peer = operation.peer_;
  if (operation.sending_ && peer == rank_) return to_self(operation);
  if (operation.sending_) {
    if (!senders_[peer]) senders_[peer] = std::make_unique<Sender>();
    senders_[peer]->queue.push_back(operation);
  } else {
    if (!receivers_[peer]) receivers_[peer] = std::make_unique<Receiver>();
    receivers_[peer]->posted.push_back(operation);
  }
  ++active_;
}

// A message to oneself has no channel: it goes straight to a receive that waits for it, or is set aside. One for which there is
// no room stays in its sender's buffer until it is received.
void PointToPoint::to_self(MessageOperation& operation) {
  if (!receivers_[rank_]) receivers_[rank_] = std::make_unique<Receiver>();
  Receiver& receiver = *receivers_[rank_];
  while (match_unexpected(receiver)) {
  }
  if (MessageOperation* target = receiver.posted.take(operation.tag_)) {
    ++active_;
    deliver(*target, static_cast<const std::byte*>(operation.data_), operation.bytes_);
    return end(&operation, Status());
  }
  std::list<Unexpected> one;
  Unexpected& message = one.emplace_back();
  message.tag = operation.tag_;
  message.bytes = operation.bytes_;
  const uint64_t cost = kUnexpectedOverheadBytes + operation.bytes_;
  if (unexpected_bytes_ + cost > kUnexpectedLimitBytes) {
    message.lender = &operation;
  } else {
    message.data.reset(new std::byte[operation.bytes_]);
    if (operation.bytes_ > 0) std::memcpy(message.data.get(), operation.data_, operation.bytes_);
    unexpected_bytes_ += cost;
  }
  ++active_;
  if (!message.lender) end(&operation, Status());
  receiver.unexpected.splice(receiver.unexpected.end(), one);
}

uint64_t PointToPoint::short_bytes(const ChannelHandle& channel) const {
  if (channel.carrier != Carrier::slots) return kShortBytes;
  return std::min(kShortBytes, std::max<uint64_t>(channels_.slot_bytes(channel.peer), kHeadBytes) - kHeadBytes);
}

void PointToPoint::drive_sender(uint32_t peer, Sender& sender, bool& moved) {
  while (!sender.queue.empty() && broken_.ok()) {
    if (!sender.channel) {
      Result<ChannelHandle*> channel = channels_.get(peer, TUTTI_TP_SEND, ChannelSet::kPointToPoint);
      if (!channel) {
        broken_ = channel.status();
        return;
      }
      sender.channel = *channel;
      sender.staging.reset(new std::byte[kHeadBytes + kShortBytes]);
    }
    const bool head = sender.state == Sender::State::head || sender.state == Sender::State::head_posted;
    if (!(head ? send_head(sender) : send_body(sender))) return;
    moved = true;
    if (head && sender.queue.front()->bytes_ > short_bytes(*sender.channel)) {
      sender.state = Sender::State::body;
      sender.sent_bytes = 0;
      continue;
    }
    sender.state = Sender::State::head;
    ++sender.messages;
    end(sender.queue.pop_front(), Status());
  }
}

bool PointToPoint::send_head(Sender& sender) {
  const ChannelHandle& channel = *sender.channel;
  const MessageOperation& operation = *sender.queue.front();
  const uint64_t payload = operation.bytes_ <= short_bytes(channel) ? operation.bytes_ : 0;
  if (sender.state == Sender::State::head) {
    const Head head{operation.bytes_, operation.tag_, kMagic};
    void* place = sender.staging.get();
    if (channel.carrier == Carrier::slots) {
      const tutti_status_t status = channel.table->slot_reserve(channel.channel, kHeadBytes + payload, &place);
      if (status == TUTTI_TP_AGAIN) return false;
      if (status != TUTTI_OK) return link_error(status, channel);
    }
    std::memcpy(place, &head, kHeadBytes);
    if (payload > 0) std::memcpy(static_cast<std::byte*>(place) + kHeadBytes, operation.data_, payload);
    if (channel.carrier == Carrier::slots) {
      const tutti_status_t status = channel.table->slot_commit(channel.channel, kHeadBytes + payload, kNoMark);
      return status == TUTTI_OK || link_error(status, channel);
    }
    sender.ticket.op = tutti_tp_op_t{};
    const tutti_status_t status =
        channel.table->post_send(channel.channel, place, kHeadBytes + payload, kNoMark, &sender.ticket.op);
    if (status == TUTTI_TP_AGAIN) return false;
    if (status != TUTTI_OK) return link_error(status, channel);
    sender.state = Sender::State::head_posted;
  }
  if (!sender.ticket.op.done) return false;
  return sender.ticket.op.status == TUTTI_OK || link_error(sender.ticket.op.status, channel);
}

bool PointToPoint::send_body(Sender& sender) {
  const ChannelHandle& channel = *sender.channel;
  const MessageOperation& operation = *sender.queue.front();
  const std::byte* data = static_cast<const std::byte*>(operation.data_);
  if (channel.carrier == Carrier::slots) {
    const uint64_t slot_bytes = channels_.slot_bytes(channel.peer);
    while (sender.sent_bytes < operation.bytes_) {
      const uint64_t bytes = std::min(slot_bytes, operation.bytes_ - sender.sent_bytes);
      void* slot = nullptr;
      tutti_status_t status = channel.table->slot_reserve(channel.channel, bytes, &slot);
      if (status == TUTTI_TP_AGAIN) return false;
      if (status != TUTTI_OK) return link_error(status, channel);
      std::memcpy(slot, data + sender.sent_bytes, bytes);
      status = channel.table->slot_commit(channel.channel, bytes, kNoMark);
      if (status != TUTTI_OK) return link_error(status, channel);
      sender.sent_bytes += bytes;
    }
    return true;
  }
  if (sender.state == Sender::State::body) {
    sender.ticket.op = tutti_tp_op_t{};
    const tutti_status_t status = channel.table->post_send(channel.channel, data, operation.bytes_, kNoMark, &sender.ticket.op);
    if (status == TUTTI_TP_AGAIN) return false;
    if (status != TUTTI_OK) return link_error(status, channel);
    sender.state = Sender::State::body_posted;
  }
  if (!sender.ticket.op.done) return false;
  return sender.ticket.op.status == TUTTI_OK || link_error(sender.ticket.op.status, channel);
}

// ---- receiving --------------------------------------------------------------------------------------------------------

void PointToPoint::deliver(MessageOperation& operation, const std::byte* data, uint64_t bytes) noexcept {
  const uint64_t fits = std::min(bytes, operation.bytes_);
  if (fits > 0 && data) std::memcpy(operation.data_, data, fits);
  operation.received_bytes_ = fits;
  Status status;
  if (bytes > operation.bytes_) {
    try {
      status = error(TUTTI_ERR_TRUNCATED, "a message of {} bytes (tag {}) met a receive buffer of {} bytes", bytes,
                     operation.tag_, operation.bytes_);
    } catch (const std::bad_alloc&) {
      status = Status(TUTTI_ERR_TRUNCATED);
    }
  }
  end(&operation, std::move(status));
}

bool PointToPoint::match_unexpected(Receiver& receiver) {
  for (auto message = receiver.unexpected.begin(); message != receiver.unexpected.end(); ++message) {
    MessageOperation* operation = receiver.posted.take(message->tag);
    if (!operation) continue;
    if (message->lender) {
      deliver(*operation, static_cast<const std::byte*>(message->lender->data_), message->bytes);
      end(message->lender, Status());
    } else {
      deliver(*operation, message->data.get(), message->bytes);
      unexpected_bytes_ -= kUnexpectedOverheadBytes + message->bytes;
    }
    receiver.unexpected.erase(message);
    return true;
  }
  return false;
}

void PointToPoint::drive_receiver(uint32_t peer, Receiver& receiver, bool& moved) {
  while (match_unexpected(receiver)) moved = true;
  if (peer == rank_) return;
  while (broken_.ok()) {
    const bool head = receiver.state == Receiver::State::head || receiver.state == Receiver::State::head_posted;
    if (head && receiver.posted.empty()) return;
    if (!receiver.channel) {
      Result<ChannelHandle*> channel = channels_.get(peer, TUTTI_TP_RECV, ChannelSet::kPointToPoint);
      if (!channel) {
        broken_ = channel.status();
        return;
      }
      receiver.channel = *channel;
      receiver.staging.reset(new std::byte[kHeadBytes + kShortBytes]);
    }
    if (!(head ? take_head(receiver) : take_body(receiver))) return;
    moved = true;
  }
}

bool PointToPoint::take_head(Receiver& receiver) {
  const ChannelHandle& channel = *receiver.channel;
  if (channel.carrier == Carrier::slots) {
    const void* slot = nullptr;
    uint64_t bytes = 0;
    uint32_t mark = 0;
    tutti_status_t status = channel.table->slot_peek(channel.channel, &slot, &bytes, &mark);
    if (status == TUTTI_TP_AGAIN) return false;
    if (status != TUTTI_OK) return link_error(status, channel);
    if (!accept_head(receiver, static_cast<const std::byte*>(slot), bytes)) return false;
    status = channel.table->slot_release(channel.channel);
    return status == TUTTI_OK || link_error(status, channel);
  }
  if (receiver.state == Receiver::State::head) {
    receiver.ticket.op = tutti_tp_op_t{};
    const tutti_status_t status = channel.table->post_recv(channel.channel, receiver.staging.get(), kHeadBytes + kShortBytes,
                                                           &receiver.ticket.op);
    if (status == TUTTI_TP_AGAIN) return false;
    if (status != TUTTI_OK) return link_error(status, channel);
    receiver.state = Receiver::State::head_posted;
  }
  if (!receiver.ticket.op.done) return false;
  if (receiver.ticket.op.status != TUTTI_OK) return link_error(receiver.ticket.op.status, channel);
  receiver.state = Receiver::State::head;
  return accept_head(receiver, receiver.staging.get(), receiver.ticket.op.bytes);
}

bool PointToPoint::accept_head(Receiver& receiver, const std::byte* message, uint64_t bytes) {
  if (bytes >= kHeadBytes) std::memcpy(&receiver.head, message, kHeadBytes);
  const uint64_t payload = bytes < kHeadBytes ? 0 : bytes - kHeadBytes;
  const bool short_message = payload == receiver.head.bytes;  // else the body follows
  if (bytes < kHeadBytes || receiver.head.magic != kMagic || (!short_message && payload != 0))
    return link_error(TUTTI_ERR_PROTOCOL, *receiver.channel);
  receiver.target = receiver.posted.take(receiver.head.tag);
  ++receiver.messages;
  if (short_message && receiver.target) {
    deliver(*std::exchange(receiver.target, nullptr), message + kHeadBytes, payload);
    return true;
  }
  if (!receiver.target && !set_aside(receiver)) return false;
  if (short_message) {
    if (payload > 0) std::memcpy(receiver.aside.data.get(), message + kHeadBytes, payload);
    end_message(receiver);
    return true;
  }
  receiver.got_bytes = 0;
  receiver.state = Receiver::State::body;
  return true;
}

// Memory of ours is needed. The length is the peer's claim: a peer of the job, but only believed up to the limit.
bool PointToPoint::set_aside(Receiver& receiver) {
  const Head& head = receiver.head;
  if (head.bytes > kUnexpectedLimitBytes || unexpected_bytes_ + kUnexpectedOverheadBytes + head.bytes > kUnexpectedLimitBytes) {
    broken_ =
        error(TUTTI_ERR_RESOURCE,
              "rank {} sent {} bytes with tag {}, which no receive awaits, and {} bytes of such messages have been set aside:"
              " no more than {} can be; post receives in the order of the messages",
              receiver.channel->peer, head.bytes, head.tag, unexpected_bytes_, kUnexpectedLimitBytes);
    return false;
  }
  receiver.aside = {head.tag, head.bytes, std::unique_ptr<std::byte[]>(new std::byte[head.bytes]), nullptr};
  unexpected_bytes_ += kUnexpectedOverheadBytes + head.bytes;
  return true;
}

void PointToPoint::end_message(Receiver& receiver) {
  receiver.state = Receiver::State::head;
  MessageOperation* target = receiver.target;
  receiver.target = nullptr;
  if (target) {
    // Without `aside` the body already lies in the receive buffer.
    deliver(*target, receiver.aside.data.get(), receiver.head.bytes);
    receiver.aside = {};
    return;
  }
  receiver.unexpected.push_back(std::move(receiver.aside));
  receiver.aside = {};
}

bool PointToPoint::take_body(Receiver& receiver) {
  const ChannelHandle& channel = *receiver.channel;
  std::byte* data = receiver.aside.data ? receiver.aside.data.get() : static_cast<std::byte*>(receiver.target->data_);
  const uint64_t capacity =
      receiver.aside.data ? receiver.head.bytes : std::min(receiver.head.bytes, receiver.target->bytes_);
  if (channel.carrier == Carrier::slots) {
    while (receiver.got_bytes < receiver.head.bytes) {
      const void* slot = nullptr;
      uint64_t bytes = 0;
      uint32_t mark = 0;
      tutti_status_t status = channel.table->slot_peek(channel.channel, &slot, &bytes, &mark);
      if (status == TUTTI_TP_AGAIN) return false;
      if (status != TUTTI_OK) return link_error(status, channel);
      if (bytes == 0 || bytes > receiver.head.bytes - receiver.got_bytes) return link_error(TUTTI_ERR_PROTOCOL, channel);
      if (receiver.got_bytes < capacity)  // the rest of a message that is too long is dropped
        std::memcpy(data + receiver.got_bytes, slot, std::min(bytes, capacity - receiver.got_bytes));
      receiver.got_bytes += bytes;
      status = channel.table->slot_release(channel.channel);
      if (status != TUTTI_OK) return link_error(status, channel);
    }
    end_message(receiver);
    return true;
  }
  if (receiver.state == Receiver::State::body) {
    receiver.ticket.op = tutti_tp_op_t{};
    const tutti_status_t status = channel.table->post_recv(channel.channel, data, capacity, &receiver.ticket.op);
    if (status == TUTTI_TP_AGAIN) return false;
    if (status != TUTTI_OK) return link_error(status, channel);
    receiver.state = Receiver::State::body_posted;
  }
  if (!receiver.ticket.op.done) return false;
  const bool too_long = receiver.ticket.op.status == TUTTI_ERR_TRUNCATED && capacity < receiver.head.bytes;
  if (receiver.ticket.op.status != TUTTI_OK && !too_long) return link_error(receiver.ticket.op.status, channel);
  if (receiver.ticket.op.bytes != receiver.head.bytes) return link_error(TUTTI_ERR_PROTOCOL, channel);
  end_message(receiver);
  return true;
}

std::vector<uint32_t> PointToPoint::waiting_for() const {
  std::vector<uint32_t> peers;
  for (uint32_t peer = 0; peer < senders_.size(); ++peer)
    if ((senders_[peer] && !senders_[peer]->queue.empty()) ||
        (receivers_[peer] && (receivers_[peer]->target || !receivers_[peer]->posted.empty())))
      peers.push_back(channels_.world_ranks()[peer]);
  return peers;
}

Deadline PointToPoint::earliest_deadline() const {
  Deadline earliest;
  for (const auto& sender : senders_)
    if (sender) earliest.at_ns = std::min(earliest.at_ns, sender->queue.earliest_ns());
  for (const auto& receiver : receivers_) {
    if (!receiver) continue;
    earliest.at_ns = std::min(earliest.at_ns, receiver->posted.earliest_ns());
    if (receiver->target) earliest.at_ns = std::min(earliest.at_ns, receiver->target->deadline_.at_ns);
    for (const Unexpected& message : receiver->unexpected)
      if (message.lender) earliest.at_ns = std::min(earliest.at_ns, message.lender->deadline_.at_ns);
  }
  return earliest;
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

bool PointToPoint::waits_in_vain(uint32_t peer, uint64_t sent_count) const {
  if (senders_[peer] && !senders_[peer]->queue.empty()) return true;
  const Receiver* receiver = receivers_[peer].get();
  if (!receiver || (receiver->posted.empty() && !receiver->target)) return false;
  // Either nothing more comes, or the message under way is one that the peer did not finish.
  return receiver->target ? receiver->messages > sent_count : receiver->messages >= sent_count;
}

}  // namespace tutti
