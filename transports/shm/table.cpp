// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// The C face: checks, calls in, lets no exception out.
#include <memory>
#include <new>

#include "endpoint.hpp"

#ifndef TUTTI_TP_ENTRY
#define TUTTI_TP_ENTRY tutti_transport_entry
#endif

namespace tutti::shm {
namespace {

/// The ABI's handles stay undefined: a library holds several transports, and each has its own idea of what they point to.
Endpoint* of(tutti_tp_endpoint_t* handle) { return reinterpret_cast<Endpoint*>(handle); }
Channel* of(tutti_tp_channel_t* handle) { return reinterpret_cast<Channel*>(handle); }

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
    auto made = std::make_unique<Endpoint>(*arguments);
    const tutti_status_t status = made->open(*arguments);
    if (status == TUTTI_OK) *endpoint = reinterpret_cast<tutti_tp_endpoint_t*>(made.release());
    return status;
  });
}

tutti_status_t table_address(tutti_tp_endpoint_t* endpoint, void* buffer, size_t capacity, size_t* bytes) {
  return of(endpoint)->address(buffer, capacity, bytes);
}

tutti_status_t table_set_peer(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* address, size_t bytes) {
  return guarded([&] { return of(endpoint)->set_peer(peer, address, bytes); });
}

tutti_status_t table_start(tutti_tp_endpoint_t* endpoint) {
  return guarded([&] { return of(endpoint)->start(); });
}

tutti_status_t table_link(tutti_tp_endpoint_t* endpoint, uint32_t peer, tutti_tp_link_t* link) {
  return of(endpoint)->link(peer, link);
}

tutti_status_t table_connect(tutti_tp_endpoint_t* endpoint, uint32_t peer) { return of(endpoint)->connect(peer); }

void table_close(tutti_tp_endpoint_t* endpoint) {
  (void)guarded([&]() -> tutti_status_t {
    of(endpoint)->call_off();
    return TUTTI_OK;
  });
  delete of(endpoint);
}

void table_cut(tutti_tp_endpoint_t* endpoint, uint32_t peer) { of(endpoint)->cut(peer); }

tutti_status_t table_channel_open(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction, int slots,
                                  tutti_tp_channel_t** channel) {
  if (slots != 1) return TUTTI_ERR_UNSUPPORTED;
  if (direction != TUTTI_TP_SEND && direction != TUTTI_TP_RECV) return TUTTI_ERR_ARGUMENT;
  return guarded([&] {
    Channel* opened = nullptr;
    const tutti_status_t status = of(endpoint)->channel_open(peer, id, direction == TUTTI_TP_SEND, &opened);
    if (status == TUTTI_OK) *channel = reinterpret_cast<tutti_tp_channel_t*>(opened);
    return status;
  });
}

void table_channel_close(tutti_tp_channel_t* channel) {
  (void)guarded([&]() -> tutti_status_t {
    of(channel)->endpoint->channel_close(of(channel));
    return TUTTI_OK;
  });
}

tutti_status_t trouble(tutti_tp_channel_t* channel, tutti_status_t status) {
  return guarded([&] { return of(channel)->endpoint->channel_trouble(*of(channel), status); });
}

tutti_status_t table_slot_reserve(tutti_tp_channel_t* channel, uint64_t bytes, void** slot) {
  if (!of(channel)->sender) return TUTTI_ERR_ARGUMENT;
  if (of(channel)->peer->state != Peer::State::kAlive) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  const tutti_status_t status = of(channel)->sender->reserve(bytes, slot);
  if (status == TUTTI_OK || status == TUTTI_TP_AGAIN) [[likely]]
    return status;
  return trouble(channel, status);
}

tutti_status_t table_slot_commit(tutti_tp_channel_t* channel, uint64_t bytes, uint32_t mark) {
  if (!of(channel)->sender) return TUTTI_ERR_ARGUMENT;
  if (of(channel)->peer->state != Peer::State::kAlive) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  return of(channel)->sender->commit(bytes, mark);
}

tutti_status_t table_slot_peek(tutti_tp_channel_t* channel, const void** slot, uint64_t* bytes, uint32_t* mark) {
  if (!of(channel)->receiver) return TUTTI_ERR_ARGUMENT;
  if (of(channel)->peer->state == Peer::State::kFailed) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  const tutti_status_t status = of(channel)->receiver->peek(slot, bytes, mark);
  if (status == TUTTI_OK) [[likely]]
    return status;
  if (status == TUTTI_TP_AGAIN && of(channel)->peer->state == Peer::State::kAlive) [[likely]]
    return status;
  return trouble(channel, status);
}

tutti_status_t table_slot_release(tutti_tp_channel_t* channel) {
  if (!of(channel)->receiver) return TUTTI_ERR_ARGUMENT;
  if (of(channel)->peer->state == Peer::State::kFailed) [[unlikely]]
    return TUTTI_ERR_PEER_FAILED;
  return of(channel)->receiver->release();
}

tutti_status_t table_notify(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* notice, size_t bytes) {
  return guarded([&] { return of(endpoint)->notify(peer, notice, bytes); });
}

uint32_t table_progress(tutti_tp_endpoint_t* endpoint) {
  uint32_t events = 0;
  (void)guarded([&]() -> tutti_status_t {
    events = of(endpoint)->progress();
    return TUTTI_OK;
  });
  return events;
}

int table_fd(tutti_tp_endpoint_t* endpoint) { return of(endpoint)->fd(); }

void table_arm(tutti_tp_endpoint_t* endpoint) { of(endpoint)->arm(); }

void table_disarm(tutti_tp_endpoint_t* endpoint) { of(endpoint)->disarm(); }

tutti_status_t table_counter(tutti_tp_endpoint_t* endpoint, uint32_t index, const char** name, uint64_t* value) {
  return of(endpoint)->counter(index, name, value);
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
