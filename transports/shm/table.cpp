// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// The C face: checks, calls in, lets no exception out.
#include <memory>
#include <new>

#include "endpoint.hpp"

#ifndef TUTTI_TP_ENTRY
#define TUTTI_TP_ENTRY tutti_transport_entry
#endif

struct tutti_tp_endpoint {
  explicit tutti_tp_endpoint(const tutti_tp_open_t& arguments) : endpoint{arguments} {}
  tutti::shm::Endpoint endpoint;
};

namespace tutti::shm {
namespace {

template <class Body>
tutti_status_t guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return TUTTI_ERR_MEMORY;
  } catch (...) {
    return TUTTI_ERR_INTERNAL;
  }
}

tutti_status_t table_open(const tutti_tp_open_t* arguments, tutti_tp_endpoint_t** endpoint) {
  return guarded([&]() -> tutti_status_t {
    if (arguments->struct_size < sizeof(tutti_tp_open_t) || arguments->rank >= arguments->size) return TUTTI_ERR_ARGUMENT;
    auto made = std::make_unique<tutti_tp_endpoint>(*arguments);
    const tutti_status_t status = made->endpoint.open(*arguments);
    if (status == TUTTI_OK) *endpoint = made.release();
    return status;
  });
}

tutti_status_t table_address(tutti_tp_endpoint_t* endpoint, void* buffer, size_t capacity, size_t* bytes) {
  return endpoint->endpoint.address(buffer, capacity, bytes);
}

tutti_status_t table_set_peer(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* address, size_t bytes) {
  return guarded([&] { return endpoint->endpoint.set_peer(peer, address, bytes); });
}

tutti_status_t table_start(tutti_tp_endpoint_t* endpoint) {
  return guarded([&] { return endpoint->endpoint.start(); });
}

tutti_status_t table_link(tutti_tp_endpoint_t* endpoint, uint32_t peer, tutti_tp_link_t* link) {
  return endpoint->endpoint.link(peer, link);
}

tutti_status_t table_connect(tutti_tp_endpoint_t* endpoint, uint32_t peer) { return endpoint->endpoint.connect(peer); }

void table_close(tutti_tp_endpoint_t* endpoint) {
  (void)guarded([&]() -> tutti_status_t {
    endpoint->endpoint.call_off();
    return TUTTI_OK;
  });
  delete endpoint;
}

void table_cut(tutti_tp_endpoint_t* endpoint, uint32_t peer) { endpoint->endpoint.cut(peer); }

tutti_status_t table_channel_open(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction, int slots,
                                  tutti_tp_channel_t** channel) {
  if (slots != 1) return TUTTI_ERR_UNSUPPORTED;
  if (direction != TUTTI_TP_SEND && direction != TUTTI_TP_RECV) return TUTTI_ERR_ARGUMENT;
  return guarded([&] { return endpoint->endpoint.channel_open(peer, id, direction == TUTTI_TP_SEND, channel); });
}

void table_channel_close(tutti_tp_channel_t* channel) {
  (void)guarded([&]() -> tutti_status_t {
    channel->endpoint->channel_close(channel);
    return TUTTI_OK;
  });
}

tutti_status_t trouble(tutti_tp_channel_t* channel, tutti_status_t status) {
  return guarded([&] { return channel->endpoint->channel_trouble(*channel, status); });
}

tutti_status_t table_slot_reserve(tutti_tp_channel_t* channel, uint64_t bytes, void** slot) {
  if (!channel->sender) return TUTTI_ERR_ARGUMENT;
  if (channel->peer->state != Peer::State::kAlive) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  const tutti_status_t status = channel->sender->reserve(bytes, slot);
  if (status == TUTTI_OK || status == TUTTI_TP_AGAIN) [[likely]]
    return status;
  return trouble(channel, status);
}

tutti_status_t table_slot_commit(tutti_tp_channel_t* channel, uint64_t bytes) {
  if (!channel->sender) return TUTTI_ERR_ARGUMENT;
  if (channel->peer->state != Peer::State::kAlive) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  return channel->sender->commit(bytes);
}

tutti_status_t table_slot_peek(tutti_tp_channel_t* channel, const void** slot, uint64_t* bytes) {
  if (!channel->receiver) return TUTTI_ERR_ARGUMENT;
  if (channel->peer->state == Peer::State::kFailed) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  const tutti_status_t status = channel->receiver->peek(slot, bytes);
  if (status == TUTTI_OK) [[likely]]
    return status;
  if (status == TUTTI_TP_AGAIN && channel->peer->state == Peer::State::kAlive) [[likely]]
    return status;
  return trouble(channel, status);
}

tutti_status_t table_slot_release(tutti_tp_channel_t* channel) {
  if (!channel->receiver) return TUTTI_ERR_ARGUMENT;
  if (channel->peer->state == Peer::State::kFailed) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  return channel->receiver->release();
}

tutti_status_t table_notify(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* notice, size_t bytes) {
  return guarded([&] { return endpoint->endpoint.notify(peer, notice, bytes); });
}

uint32_t table_progress(tutti_tp_endpoint_t* endpoint) {
  uint32_t events = 0;
  (void)guarded([&]() -> tutti_status_t {
    events = endpoint->endpoint.progress();
    return TUTTI_OK;
  });
  return events;
}

int table_fd(tutti_tp_endpoint_t* endpoint) { return endpoint->endpoint.fd(); }

void table_arm(tutti_tp_endpoint_t* endpoint) { endpoint->endpoint.arm(); }

void table_disarm(tutti_tp_endpoint_t* endpoint) { endpoint->endpoint.disarm(); }

tutti_status_t table_counter(tutti_tp_endpoint_t* endpoint, uint32_t index, const char** name, uint64_t* value) {
  return endpoint->endpoint.counter(index, name, value);
}

constexpr tutti_tp_table_t make_table() {
  tutti_tp_table_t table{};
  table.struct_size = sizeof(tutti_tp_table_t);
  table.abi_version = TUTTI_TP_ABI_VERSION;
  table.name = "shm";
  table.description = "shared memory between the ranks of one machine";
  table.caps = TUTTI_TP_CAP_SLOTS;
  table.open = table_open;
  table.address = table_address;
  table.set_peer = table_set_peer;
  table.start = table_start;
  table.link = table_link;
  table.connect = table_connect;
  table.close = table_close;
  table.cut = table_cut;
  table.channel_open = table_channel_open;
  table.channel_close = table_channel_close;
  table.slot_reserve = table_slot_reserve;
  table.slot_commit = table_slot_commit;
  table.slot_peek = table_slot_peek;
  table.slot_release = table_slot_release;
  table.notify = table_notify;
  table.progress = table_progress;
  table.fd = table_fd;
  table.arm = table_arm;
  table.disarm = table_disarm;
  table.counter = table_counter;
  return table;
}

constexpr tutti_tp_table_t kTable = make_table();

}  // namespace
}  // namespace tutti::shm

extern "C" __attribute__((visibility("default"))) const tutti_tp_table_t* TUTTI_TP_ENTRY(uint32_t host_abi_version);

extern "C" const tutti_tp_table_t* TUTTI_TP_ENTRY(uint32_t host_abi_version) {
  constexpr uint64_t kMine = TUTTI_TP_ABI_VERSION;
  return uint64_t{host_abi_version} + 1 > kMine ? &tutti::shm::kTable : nullptr;
}
