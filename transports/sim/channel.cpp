// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// Both ends of channels.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "endpoint.hpp"

namespace tutti::sim {
namespace {

constexpr uint64_t kMessageCharge = 64;  // what a message counts in a window beside its bytes
constexpr size_t kSlotAlignment = 64;
constexpr int kPoison = 0xdb;  // slots outside their use: a late reader or an early writer gives wrong results at once

uint64_t stride(uint64_t slot_bytes) { return (slot_bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment; }

void finish(tutti_tp_op_t* op, tutti_status_t status) {
  op->status = status;
  op->done = 1;
}

bool is(const Channel& channel, int direction, bool slots) {
  return channel.direction == direction && channel.pipe->slots == slots;
}

}  // namespace

Pipe::~Pipe() { std::free(memory); }

// ---- opening and closing ----

PipePtr State::open_pipe(uint32_t from, uint32_t to, uint64_t id, int direction, bool slots) {
  Uses& uses = channels[{from, to, id}];
  const uint64_t use = uses.opened[direction];
  const auto earlier = use == 0 ? uses.pipes.end() : uses.pipes.find(use - 1);
  if (earlier != uses.pipes.end()) {
    const Pipe& pipe = *earlier->second;
    if (direction == TUTTI_TP_SEND ? !pipe.sender_closed : !pipe.receiver_closed) return nullptr;
  }
  PipePtr& pipe = uses.pipes[use];
  if (pipe == nullptr) {
    pipe = std::make_shared<Pipe>();
    pipe->from = from;
    pipe->to = to;
    pipe->id = id;
    pipe->slots = slots;
  } else if (pipe->slots != slots) {
    return nullptr;
  }
  ++uses.opened[direction];
  (direction == TUTTI_TP_SEND ? pipe->sender_open : pipe->receiver_open) = true;
  return pipe;
}

void State::close_pipe(Pipe& pipe, int direction) {
  (direction == TUTTI_TP_SEND ? pipe.sender_closed : pipe.receiver_closed) = true;
  if (!pipe.sender_closed || !pipe.receiver_closed) return;
  const auto entry = channels.find({pipe.from, pipe.to, pipe.id});
  Uses& uses = entry->second;
  const auto same = [&](const auto& one) { return one.second.get() == &pipe; };
  uses.pipes.erase(std::find_if(uses.pipes.begin(), uses.pipes.end(), same));
  if (uses.pipes.empty() && uses.opened[0] == uses.opened[1]) channels.erase(entry);
}

tutti_status_t Endpoint::channel_open(uint32_t peer, uint64_t id, int direction, int slots, Channel** channel) {
  if (direction != TUTTI_TP_SEND && direction != TUTTI_TP_RECV) return TUTTI_ERR_ARGUMENT;
  tutti_tp_link_t link{};
  const tutti_status_t status = this->link(peer, &link);
  if (status != TUTTI_OK) return status;
  if ((link.caps & (slots != 0 ? TUTTI_TP_CAP_SLOTS : TUTTI_TP_CAP_MESSAGES)) == 0) return TUTTI_ERR_UNSUPPORTED;
  if (peers[peer].state == LinkState::kFailed) return peers[peer].gone_status;
  const uint32_t other = peers[peer].number;
  const bool sends = direction == TUTTI_TP_SEND;
  const PipePtr pipe = world->open_pipe(sends ? number : other, sends ? other : number, id, direction, slots != 0);
  if (pipe == nullptr) return TUTTI_ERR_ARGUMENT;
  auto* made = new Channel;
  made->endpoint = this;
  made->pipe = pipe;
  made->peer = peer;
  made->direction = direction;
  (sends ? pipe->sender : pipe->receiver) = made;
  channels.push_back(made);
  *channel = made;
  return TUTTI_OK;
}

void Endpoint::channel_close(Channel* channel) {
  const PipePtr pipe = channel->pipe;
  if (channel->direction == TUTTI_TP_SEND) {
    end_sends(*channel, TUTTI_ERR_ABORTED);
    pipe->sender = nullptr;
  } else {
    end_receives(*channel, TUTTI_ERR_ABORTED);
    for (const MessagePtr& message : std::exchange(pipe->arrived, {})) consumed(pipe, message);
    pipe->receiver = nullptr;
  }
  world->close_pipe(*pipe, channel->direction);
  dirty.erase(std::remove(dirty.begin(), dirty.end(), channel), dirty.end());
  channels.erase(std::find(channels.begin(), channels.end(), channel));
  delete channel;
}

void Endpoint::end_sends(Channel& channel, tutti_status_t status) {
  for (const MessagePtr& message : std::exchange(channel.pipe->unbuffered, {})) {
    if (!message->taken) message->cancelled = true;
    tutti_tp_op_t* op = std::exchange(message->op, nullptr);
    if (!crashed) finish(op, message->taken ? TUTTI_OK : status);
  }
}

void Endpoint::end_receives(Channel& channel, tutti_status_t status) {
  for (tutti_tp_op_t* op : std::exchange(channel.receives, {})) {
    if (!crashed) finish(op, status);
  }
}

// ---- messages: the sending end ----

tutti_status_t Endpoint::post_send(Channel& channel, const void* data, uint64_t bytes, uint32_t mark, tutti_tp_op_t* op) {
  if (!is(channel, TUTTI_TP_SEND, false)) return TUTTI_ERR_ARGUMENT;
  if (gone(channel.peer)) return peers[channel.peer].gone_status;
  if (world->spurious(*this)) return TUTTI_TP_AGAIN;
  *op = tutti_tp_op_t{};
  const auto message = std::make_shared<Message>();
  message->bytes = bytes;
  message->mark = mark;
  message->data = static_cast<const std::byte*>(data);
  Pipe& pipe = *channel.pipe;
  if (pipe.unbuffered.empty() && buffer(pipe, *message, false)) {
    finish(op, TUTTI_OK);
  } else {
    message->op = op;
    pipe.unbuffered.push_back(message);
  }
  ++messages_sent;
  bytes_sent += bytes;
  send(channel.pipe, message);
  return TUTTI_OK;
}

void Endpoint::send(const PipePtr& pipe, const MessagePtr& message) {
  Endpoint* receiver = world->endpoint(pipe->to);
  world->transmit(pipe->from, pipe->to, message->bytes, pipe,
                  [receiver, pipe, message] { receiver->message_arrived(pipe, message); });
}

/// Takes a copy, if the window has room or whatever it has.
bool Endpoint::buffer(Pipe& pipe, Message& message, bool whatever) {
  const uint64_t charge = message.bytes + kMessageCharge;
  const uint64_t window = world->options.window_bytes;
  if (!whatever && (charge > window || pipe.buffered_bytes > window - charge)) return false;
  message.copy.assign(message.data, message.data + message.bytes);
  message.data = message.copy.data();
  message.buffered = true;
  pipe.buffered_bytes += charge;
  return true;
}

void Endpoint::acknowledged(const PipePtr& pipe, const MessagePtr& message) {
  if (pipe->slots) {
    pipe->free_slots.push_back(message->slot);
  } else {
    taken.emplace_back(pipe, message);
  }
  wake();
}

uint32_t Endpoint::finish_taken() {
  uint32_t events = 0;
  for (const auto& [pipe, message] : std::exchange(taken, {})) {
    ++events;
    if (message->op == nullptr) {
      if (message->buffered) pipe->buffered_bytes -= message->bytes + kMessageCharge;
    } else {
      finish(std::exchange(message->op, nullptr), TUTTI_OK);
      pipe->unbuffered.erase(std::find(pipe->unbuffered.begin(), pipe->unbuffered.end(), message));
    }
    promote(*pipe);
  }
  return events;
}

/// What waits gets the room that became free.
void Endpoint::promote(Pipe& pipe) {
  for (auto entry = pipe.unbuffered.begin(); entry != pipe.unbuffered.end();) {
    Message& message = **entry;
    if (message.taken) {
      ++entry;  // it ends when the sender hears of that
      continue;
    }
    if (!buffer(pipe, message, false)) return;
    finish(std::exchange(message.op, nullptr), TUTTI_OK);
    entry = pipe.unbuffered.erase(entry);
  }
}

// ---- messages: the receiving end ----

void Endpoint::message_arrived(const PipePtr& pipe, const MessagePtr& message) {
  if (message->cancelled) return;
  if (pipe->receiver_closed) return consumed(pipe, message);
  pipe->arrived.push_back(message);
  if (pipe->receiver != nullptr && !pipe->receiver->dirty) {
    pipe->receiver->dirty = true;
    dirty.push_back(pipe->receiver);
  }
  wake();
}

uint32_t Endpoint::match(Channel& channel) {
  std::deque<MessagePtr>& arrived = channel.pipe->arrived;
  if (channel.pipe->slots) return arrived.empty() ? 0 : 1;
  uint32_t events = 0;
  while (!arrived.empty() && (arrived.front()->cancelled || !channel.receives.empty())) {
    const MessagePtr message = std::move(arrived.front());
    arrived.pop_front();
    if (message->cancelled) continue;
    tutti_tp_op_t* op = channel.receives.front();
    channel.receives.pop_front();
    take(channel, message, op);
    ++events;
  }
  return events;
}

void Endpoint::take(Channel& channel, const MessagePtr& message, tutti_tp_op_t* op) {
  const auto capacity = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(op->plugin[1]));
  const uint64_t count = std::min(message->bytes, capacity);
  if (count > 0) std::memcpy(op->plugin[0], message->data, count);
  op->bytes = message->bytes;
  op->mark = message->mark;
  finish(op, message->bytes > capacity ? TUTTI_ERR_TRUNCATED : TUTTI_OK);
  ++messages_received;
  bytes_received += message->bytes;
  consumed(channel.pipe, message);
}

void Endpoint::consumed(const PipePtr& pipe, const MessagePtr& message) {
  message->taken = true;
  Endpoint* sender = world->endpoint(pipe->from);
  world->transmit(pipe->to, pipe->from, 0, nullptr, [sender, pipe, message] { sender->acknowledged(pipe, message); });
}

tutti_status_t Endpoint::post_recv(Channel& channel, void* data, uint64_t capacity, tutti_tp_op_t* op) {
  if (!is(channel, TUTTI_TP_RECV, false)) return TUTTI_ERR_ARGUMENT;
  match(channel);
  if (gone(channel.peer) && channel.pipe->arrived.empty()) return peers[channel.peer].gone_status;
  if (world->spurious(*this)) return TUTTI_TP_AGAIN;
  *op = tutti_tp_op_t{};
  op->plugin[0] = data;
  op->plugin[1] = reinterpret_cast<void*>(static_cast<uintptr_t>(capacity));
  channel.receives.push_back(op);
  match(channel);
  world->want(number, peers[channel.peer].number);
  return TUTTI_OK;
}

// ---- slots ----

tutti_status_t Endpoint::reserve(Channel& channel, uint64_t bytes, void** slot) {
  if (!is(channel, TUTTI_TP_SEND, true)) return TUTTI_ERR_ARGUMENT;
  if (bytes > world->options.slot_bytes) return TUTTI_ERR_SIZE;
  if (gone(channel.peer)) return peers[channel.peer].gone_status;
  if (peers[channel.peer].state == LinkState::kDown) {
    world->want(number, peers[channel.peer].number);
    return TUTTI_TP_AGAIN;
  }
  Pipe& pipe = *channel.pipe;
  const uint64_t step = stride(world->options.slot_bytes);
  if (pipe.memory == nullptr) {
    const uint64_t total = step * world->options.slots;
    pipe.memory = static_cast<std::byte*>(std::aligned_alloc(kSlotAlignment, total));
    if (pipe.memory == nullptr) throw std::bad_alloc();
    std::memset(pipe.memory, kPoison, total);
    memory_bytes += total;
    for (uint32_t i = 0; i < world->options.slots; ++i) pipe.free_slots.push_back(i);
  }
  if (!channel.held) {
    if (pipe.free_slots.empty() || world->spurious(*this)) return TUTTI_TP_AGAIN;
    channel.reserved_slot = pipe.free_slots.front();
    pipe.free_slots.erase(pipe.free_slots.begin());
    channel.held = true;
  }
  channel.reserved_bytes = bytes;
  *slot = pipe.memory + step * channel.reserved_slot;
  return TUTTI_OK;
}

tutti_status_t Endpoint::commit(Channel& channel, uint64_t bytes, uint32_t mark) {
  if (!is(channel, TUTTI_TP_SEND, true) || !channel.held || bytes > channel.reserved_bytes) return TUTTI_ERR_ARGUMENT;
  channel.held = false;
  if (gone(channel.peer)) return peers[channel.peer].gone_status;
  const auto message = std::make_shared<Message>();
  message->bytes = bytes;
  message->mark = mark;
  message->slot = channel.reserved_slot;
  message->data = channel.pipe->memory + stride(world->options.slot_bytes) * channel.reserved_slot;
  ++messages_sent;
  bytes_sent += bytes;
  send(channel.pipe, message);
  return TUTTI_OK;
}

tutti_status_t Endpoint::peek(Channel& channel, const void** slot, uint64_t* bytes, uint32_t* mark) {
  if (!is(channel, TUTTI_TP_RECV, true)) return TUTTI_ERR_ARGUMENT;
  const std::deque<MessagePtr>& arrived = channel.pipe->arrived;
  if (arrived.empty()) {
    if (gone(channel.peer)) return peers[channel.peer].gone_status;
    world->want(number, peers[channel.peer].number);
    return TUTTI_TP_AGAIN;
  }
  if (!channel.held && world->spurious(*this)) return TUTTI_TP_AGAIN;
  channel.held = true;
  *slot = arrived.front()->data;
  *bytes = arrived.front()->bytes;
  *mark = arrived.front()->mark;
  return TUTTI_OK;
}

tutti_status_t Endpoint::release(Channel& channel) {
  if (!is(channel, TUTTI_TP_RECV, true)) return TUTTI_ERR_ARGUMENT;
  if (!channel.held) return gone(channel.peer) ? peers[channel.peer].gone_status : TUTTI_ERR_ARGUMENT;
  channel.held = false;
  const MessagePtr message = std::move(channel.pipe->arrived.front());
  channel.pipe->arrived.pop_front();
  std::memset(const_cast<std::byte*>(message->data), kPoison, message->bytes);
  ++messages_received;
  bytes_received += message->bytes;
  consumed(channel.pipe, message);
  return TUTTI_OK;
}

}  // namespace tutti::sim
