// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages on their way: heads and bodies on channels.
#include <algorithm>
#include <cstring>

#include "engine/p2p.hpp"

namespace tutti {
namespace {

constexpr uint32_t kNoMark = 0;  // a message says itself what it is

}  // namespace

bool PointToPoint::link_error(tutti_status_t status, const ChannelHandle& channel) {
  broken_ = error(status < 0 ? status : TUTTI_ERR_INTERNAL, "the {} link to rank {} failed", channel.table->name, channel.peer);
  culprit_ = channel.peer;
  return false;
}

void PointToPoint::drive(bool& moved) {
  const size_t count = peers_.size();
  for (size_t i = 0, at = first_peer_; i < count && broken_.ok(); ++i, at = at + 1 == count ? 0 : at + 1) {
    const uint32_t peer = peers_[at];
    if (senders_[peer]) drive_sender(peer, *senders_[peer], moved);
    if (receivers_[peer]) drive_receiver(peer, *receivers_[peer], moved);
  }
  if (++first_peer_ >= count) first_peer_ = 0;
  if (!looks_.empty()) settle_looks(moved);
}

// ---- sending ----------------------------------------------------------------------------------------------------------

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
      if ((*channel)->carrier != Carrier::slots) sender.staging.reset(new std::byte[kHeadBytes + kShortBytes]);
      sender.channel = *channel;
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
    const Head head{operation.bytes_, operation.envelope_.tag, kMagic};
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

void PointToPoint::drive_receiver(uint32_t peer, Receiver& receiver, bool& moved) {
  while (broken_.ok()) {
    bool went_on = false;
    switch (receiver.state) {
      case Receiver::State::head:
      case Receiver::State::head_posted:
        if (matching_.awaits(peer) || looks_past(peer, nullptr)) went_on = take_head(peer, receiver);
        break;
      case Receiver::State::front: went_on = take_front(peer, receiver); break;
      case Receiver::State::body:
      case Receiver::State::body_posted: went_on = take_body(receiver); break;
      case Receiver::State::ended: break;
    }
    if (!went_on) return;
    moved = true;
  }
}

bool PointToPoint::open(uint32_t peer, Receiver& receiver) {
  Result<ChannelHandle*> channel = channels_.get(peer, TUTTI_TP_RECV, ChannelSet::kPointToPoint);
  if (!channel) {
    // Who has left, or was gone before we ever reached it, sends nothing; whether that is missed is the engine's to find out.
    if (channels_.is_silent(peer))
      receiver.state = Receiver::State::ended;
    else
      broken_ = channel.status();
    return false;
  }
  if ((*channel)->carrier != Carrier::slots) receiver.staging.reset(new std::byte[kHeadBytes + kShortBytes]);
  receiver.channel = *channel;
  return true;
}

bool PointToPoint::take_head(uint32_t peer, Receiver& receiver) {
  if (!receiver.channel && !open(peer, receiver)) return false;
  const ChannelHandle& channel = *receiver.channel;
  tutti_status_t status = TUTTI_OK;
  const void* message = receiver.staging.get();
  uint64_t bytes = 0;
  if (channel.carrier == Carrier::slots) {
    uint32_t mark = 0;
    status = channel.table->slot_peek(channel.channel, &message, &bytes, &mark);
  } else {
    if (receiver.state == Receiver::State::head) {
      receiver.ticket.op = tutti_tp_op_t{};
      status = channel.table->post_recv(channel.channel, receiver.staging.get(), kHeadBytes + kShortBytes, &receiver.ticket.op);
      if (status == TUTTI_OK) receiver.state = Receiver::State::head_posted;
    }
    if (status == TUTTI_OK) {
      if (!receiver.ticket.op.done) return false;
      status = receiver.ticket.op.status;
      bytes = receiver.ticket.op.bytes;
    }
  }
  if (status == TUTTI_TP_AGAIN) return false;
  if (status == TUTTI_OK) return accept_head(peer, receiver, static_cast<const std::byte*>(message), bytes);
  if (!channels_.is_silent(peer)) return link_error(status, channel);
  receiver.state = Receiver::State::ended;
  return false;
}

bool PointToPoint::accept_head(uint32_t peer, Receiver& receiver, const std::byte* message, uint64_t bytes) {
  Head head{};
  if (bytes >= kHeadBytes) std::memcpy(&head, message, kHeadBytes);
  const uint64_t payload = bytes < kHeadBytes ? 0 : bytes - kHeadBytes;
  const bool short_message = payload == head.bytes;  // else the body follows
  if (bytes < kHeadBytes || head.magic != kMagic || head.tag < 0 || (!short_message && payload != 0))
    return link_error(TUTTI_ERR_PROTOCOL, *receiver.channel);
  receiver.payload = short_message ? message + kHeadBytes : nullptr;
  receiver.envelope = {peer, head.tag, head.bytes};
  receiver.target = static_cast<MessageOperation*>(matching_.take(receiver.envelope));
  if (!receiver.target) {
    Arrived& waiting = arrived_.take();
    waiting.envelope = receiver.envelope;
    waiting.place = Arrived::Place::channel;
    matching_.add(waiting);
    receiver.aside = &waiting;
  }
  ++receiver.messages;
  receiver.state = Receiver::State::front;
  return true;
}

// The head of a message has come. It goes to its receive; without one it stays where it is, unless it is in the way.
bool PointToPoint::take_front(uint32_t peer, Receiver& receiver) {
  if (!receiver.target) {
    if (!matching_.awaits(peer) && !looks_past(peer, receiver.aside)) return false;
    if (!has_room(receiver.envelope.bytes)) return false;
    set_aside(*receiver.aside);
    receiver.aside->place = Arrived::Place::moving;
  }
  const bool whole = receiver.payload != nullptr;
  if (whole && receiver.envelope.bytes > 0) {
    std::byte* place = receiver.target ? static_cast<std::byte*>(receiver.target->data_) : receiver.aside->data.get();
    const uint64_t room = receiver.target ? receiver.target->bytes_ : receiver.envelope.bytes;
    if (room > 0) std::memcpy(place, receiver.payload, std::min(receiver.envelope.bytes, room));
  }
  receiver.got_bytes = 0;
  receiver.state = Receiver::State::body;
  if (whole) end_message(receiver);
  const ChannelHandle& channel = *receiver.channel;
  if (channel.carrier != Carrier::slots) return true;
  const tutti_status_t status = channel.table->slot_release(channel.channel);
  return status == TUTTI_OK || link_error(status, channel);
}

/// All of the message is here: in the receive buffer, or aside.
void PointToPoint::end_message(Receiver& receiver) noexcept {
  receiver.state = Receiver::State::head;
  if (MessageOperation* target = std::exchange(receiver.target, nullptr))
    return deliver(*target, receiver.envelope, nullptr);
  Arrived& message = *std::exchange(receiver.aside, nullptr);
  message.place = Arrived::Place::memory;
  if (MessageOperation* target = std::exchange(message.target, nullptr)) hand_over(message, *target);
}

/// The rest of a message that is too long is dropped.
bool PointToPoint::take_slots(Receiver& receiver, std::byte* data, uint64_t capacity_bytes) {
  const ChannelHandle& channel = *receiver.channel;
  while (receiver.got_bytes < receiver.envelope.bytes) {
    const void* slot = nullptr;
    uint64_t bytes = 0;
    uint32_t mark = 0;
    tutti_status_t status = channel.table->slot_peek(channel.channel, &slot, &bytes, &mark);
    if (status == TUTTI_TP_AGAIN) return false;
    if (status != TUTTI_OK) return link_error(status, channel);
    if (bytes == 0 || bytes > receiver.envelope.bytes - receiver.got_bytes) return link_error(TUTTI_ERR_PROTOCOL, channel);
    if (receiver.got_bytes < capacity_bytes)
      std::memcpy(data + receiver.got_bytes, slot, std::min(bytes, capacity_bytes - receiver.got_bytes));
    receiver.got_bytes += bytes;
    status = channel.table->slot_release(channel.channel);
    if (status != TUTTI_OK) return link_error(status, channel);
  }
  return true;
}

bool PointToPoint::take_body(Receiver& receiver) {
  const ChannelHandle& channel = *receiver.channel;
  std::byte* data = receiver.target ? static_cast<std::byte*>(receiver.target->data_) : receiver.aside->data.get();
  const uint64_t capacity = receiver.target ? std::min(receiver.envelope.bytes, receiver.target->bytes_) : receiver.envelope.bytes;
  if (channel.carrier == Carrier::slots) {
    if (!take_slots(receiver, data, capacity)) return false;
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
  const bool too_long = receiver.ticket.op.status == TUTTI_ERR_TRUNCATED && capacity < receiver.envelope.bytes;
  if (receiver.ticket.op.status != TUTTI_OK && !too_long) return link_error(receiver.ticket.op.status, channel);
  if (receiver.ticket.op.bytes != receiver.envelope.bytes) return link_error(TUTTI_ERR_PROTOCOL, channel);
  end_message(receiver);
  return true;
}

}  // namespace tutti
