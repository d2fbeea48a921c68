// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// The C face: takes the world's mutex, calls in, lets no exception out.

#include <cstring>
#include <new>

#include "endpoint.hpp"

/// The transport's view of a World, which is what the host passes.
namespace tutti::sim {
State& state_of(void* world);
namespace {

/// The ABI's handles stay undefined: a library may hold several transports, and each has its own idea of what they point to.
struct Handle {
  std::shared_ptr<Endpoint> endpoint;
};
Handle* of(tutti_tp_endpoint_t* handle) { return reinterpret_cast<Handle*>(handle); }
Channel* of(tutti_tp_channel_t* handle) { return reinterpret_cast<Channel*>(handle); }

template <class Body>
tutti_status_t guarded(State& state, Body body) noexcept {
  try {
    const std::lock_guard lock(state.mutex);
    return body();
  } catch (const std::bad_alloc&) {
    return TUTTI_ERR_MEMORY;
  } catch (...) {
    return TUTTI_ERR_INTERNAL;
  }
}

/// On an endpoint that has not crashed.
template <class Body>
tutti_status_t on(tutti_tp_endpoint_t* handle, Body body) noexcept {
  Endpoint& endpoint = *of(handle)->endpoint;
  return guarded(*endpoint.world, [&] { return endpoint.crashed ? TUTTI_ERR_ABORTED : body(endpoint); });
}

template <class Body>
tutti_status_t on(tutti_tp_channel_t* channel, Body body) noexcept {
  Endpoint& endpoint = *of(channel)->endpoint;
  return guarded(*endpoint.world, [&] { return endpoint.crashed ? TUTTI_ERR_ABORTED : body(endpoint); });
}

tutti_status_t table_open(const tutti_tp_open_t* arguments, tutti_tp_endpoint_t** endpoint) {
  if (arguments->struct_size < sizeof(tutti_tp_open_t) || arguments->rank >= arguments->size) return TUTTI_ERR_ARGUMENT;
  if (arguments->world == nullptr) {
    arguments->host->log(arguments->host->host, TUTTI_LOG_INFO, "sim: not used: there is no simulated world");
    return TUTTI_ERR_UNSUPPORTED;
  }
  State& state = state_of(arguments->world);
  return guarded(state, [&]() -> tutti_status_t {
    if (arguments->size > state.options.size) {
      arguments->host->log(arguments->host->host, TUTTI_LOG_INFO, "sim: the world is smaller than the job");
      return TUTTI_ERR_RANK;
    }
    const auto number = static_cast<uint32_t>(state.endpoints.size());
    state.endpoints.push_back(std::make_shared<Endpoint>(state, *arguments, number));
    *endpoint = reinterpret_cast<tutti_tp_endpoint_t*>(new Handle{state.endpoints.back()});
    return TUTTI_OK;
  });
}

tutti_status_t table_address(tutti_tp_endpoint_t* handle, void* buffer, size_t capacity, size_t* bytes) {
  return on(handle, [&](Endpoint& endpoint) { return endpoint.address(buffer, capacity, bytes); });
}

tutti_status_t table_set_peer(tutti_tp_endpoint_t* handle, uint32_t peer, const void* address, size_t bytes) {
  return on(handle, [&](Endpoint& endpoint) { return endpoint.set_peer(peer, address, bytes); });
}

tutti_status_t table_start(tutti_tp_endpoint_t* handle) {
  return on(handle, [](Endpoint& endpoint) { return endpoint.start(); });
}

tutti_status_t table_link(tutti_tp_endpoint_t* handle, uint32_t peer, tutti_tp_link_t* link) {
  return on(handle, [&](Endpoint& endpoint) { return endpoint.link(peer, link); });
}

tutti_status_t table_connect(tutti_tp_endpoint_t* handle, uint32_t peer) {
  return on(handle, [&](Endpoint& endpoint) { return endpoint.connect(peer); });
}

void table_close(tutti_tp_endpoint_t* handle) {
  Endpoint& endpoint = *of(handle)->endpoint;
  (void)guarded(*endpoint.world, [&]() -> tutti_status_t {
    endpoint.close();
    return TUTTI_OK;
  });
  delete of(handle);
}

void table_cut(tutti_tp_endpoint_t* handle, uint32_t peer) {
  (void)on(handle, [&](Endpoint& endpoint) {
    endpoint.cut(peer);
    return tutti_status_t{TUTTI_OK};
  });
}

tutti_status_t table_channel_open(tutti_tp_endpoint_t* handle, uint32_t peer, uint64_t id, int direction, int slots,
                                  tutti_tp_channel_t** channel) {
  return on(handle, [&](Endpoint& endpoint) {
    Channel* opened = nullptr;
    const tutti_status_t status = endpoint.channel_open(peer, id, direction, slots, &opened);
    if (status == TUTTI_OK) *channel = reinterpret_cast<tutti_tp_channel_t*>(opened);
    return status;
  });
}

void table_channel_close(tutti_tp_channel_t* channel) {
  Endpoint& endpoint = *of(channel)->endpoint;
  (void)guarded(*endpoint.world, [&]() -> tutti_status_t {
    endpoint.channel_close(of(channel));
    return TUTTI_OK;
  });
}

tutti_status_t table_post_send(tutti_tp_channel_t* channel, const void* data, uint64_t bytes, uint32_t mark, tutti_tp_op_t* op) {
  return on(channel, [&](Endpoint& endpoint) { return endpoint.post_send(*of(channel), data, bytes, mark, op); });
}

tutti_status_t table_post_recv(tutti_tp_channel_t* channel, void* data, uint64_t capacity, tutti_tp_op_t* op) {
  return on(channel, [&](Endpoint& endpoint) { return endpoint.post_recv(*of(channel), data, capacity, op); });
}

tutti_status_t table_slot_reserve(tutti_tp_channel_t* channel, uint64_t bytes, void** slot) {
  return on(channel, [&](Endpoint& endpoint) { return endpoint.reserve(*of(channel), bytes, slot); });
}

tutti_status_t table_slot_commit(tutti_tp_channel_t* channel, uint64_t bytes, uint32_t mark) {
  return on(channel, [&](Endpoint& endpoint) { return endpoint.commit(*of(channel), bytes, mark); });
}

tutti_status_t table_slot_peek(tutti_tp_channel_t* channel, const void** slot, uint64_t* bytes, uint32_t* mark) {
  return on(channel, [&](Endpoint& endpoint) { return endpoint.peek(*of(channel), slot, bytes, mark); });
}

tutti_status_t table_slot_release(tutti_tp_channel_t* channel) {
  return on(channel, [&](Endpoint& endpoint) { return endpoint.release(*of(channel)); });
}

tutti_status_t table_notify(tutti_tp_endpoint_t* handle, uint32_t peer, const void* notice, size_t bytes) {
  return on(handle, [&](Endpoint& endpoint) { return endpoint.notify(peer, notice, bytes); });
}

/// The host may call in again from its callbacks: they are made without the mutex.
uint32_t table_progress(tutti_tp_endpoint_t* handle) {
  const std::shared_ptr<Endpoint> endpoint = of(handle)->endpoint;
  const tutti_tp_host_t& host = *endpoint->host;
  std::vector<Endpoint::Gone> gone;
  std::vector<Endpoint::Notice> notices;
  uint32_t events = 0;
  (void)guarded(*endpoint->world, [&]() -> tutti_status_t {
    events = endpoint->progress(&gone, &notices);
    return TUTTI_OK;
  });
  for (const Endpoint::Notice& one : notices) host.notified(host.host, one.peer, one.bytes.data(), one.bytes.size());
  for (const Endpoint::Gone& one : gone) host.peer_gone(host.host, one.peer, one.cause, one.text.c_str());
  return events;
}

int table_fd(tutti_tp_endpoint_t*) { return -1; }
void table_arm(tutti_tp_endpoint_t*) {}
void table_disarm(tutti_tp_endpoint_t*) {}

tutti_status_t table_counter(tutti_tp_endpoint_t* handle, uint32_t index, const char** name, uint64_t* value) {
  return on(handle, [&](Endpoint& endpoint) { return endpoint.counter(index, name, value); });
}

constexpr tutti_tp_table_t make_table() {
  tutti_tp_table_t table{};
  table.struct_size = sizeof(tutti_tp_table_t);
  table.abi_version = TUTTI_TP_ABI_VERSION;
  table.name = "sim";
  table.description = "a simulated network in virtual time, in one process";
  table.caps = TUTTI_TP_CAP_MESSAGES | TUTTI_TP_CAP_SLOTS | TUTTI_TP_CAP_MUST_POLL;
  table.poll_interval_ns = 1'000'000;
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
  table.post_send = table_post_send;
  table.post_recv = table_post_recv;
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
}  // namespace tutti::sim

extern "C" const tutti_tp_table_t* tutti_sim_transport_entry(uint32_t host_abi_version) {
  constexpr uint64_t kMine = TUTTI_TP_ABI_VERSION;
  return uint64_t{host_abi_version} + 1 > kMine ? &tutti::sim::kTable : nullptr;
}
