// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// The C face: checks, calls in, lets no exception out.

#include <memory>

#include "endpoint.hpp"

#ifndef TUTTI_TP_ENTRY
#define TUTTI_TP_ENTRY tutti_transport_entry
#endif

namespace tutti::tcp {
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
    const tutti_status_t status = made->open(arguments->bind_addresses);
    if (status == TUTTI_OK) *endpoint = reinterpret_cast<tutti_tp_endpoint_t*>(made.release());
    return status;
  });
}

tutti_status_t table_address(tutti_tp_endpoint_t* endpoint, void* buffer, size_t capacity, size_t* bytes) {
  return guarded([&] { return of(endpoint)->address(buffer, capacity, bytes); });
}

tutti_status_t table_set_peer(tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* address, size_t bytes) {
  return guarded([&] { return of(endpoint)->set_peer(peer, address, bytes); });
}

tutti_status_t table_start(tutti_tp_endpoint_t* endpoint) {
  return guarded([&] { return of(endpoint)->start(); });
}

tutti_status_t table_link(tutti_tp_endpoint_t* endpoint, uint32_t peer, tutti_tp_link_t* link) {
  return guarded([&] { return of(endpoint)->link_info(peer, link); });
}

tutti_status_t table_connect(tutti_tp_endpoint_t* endpoint, uint32_t peer) {
  return guarded([&] { return of(endpoint)->connect(peer); });
}

void table_close(tutti_tp_endpoint_t* endpoint) {
  (void)guarded([&]() -> tutti_status_t {
    of(endpoint)->close();
    return TUTTI_OK;
  });
  delete of(endpoint);
}

void table_cut(tutti_tp_endpoint_t* endpoint, uint32_t peer) {
  (void)guarded([&]() -> tutti_status_t {
    of(endpoint)->cut(peer);
    return TUTTI_OK;
  });
}

tutti_status_t table_channel_open(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction, int slots,
                                  tutti_tp_channel_t** channel) {
  if (slots != 0) return TUTTI_ERR_UNSUPPORTED;
  if (direction != TUTTI_TP_SEND && direction != TUTTI_TP_RECV) return TUTTI_ERR_ARGUMENT;
  return guarded([&] {
    Channel* opened = nullptr;
    const tutti_status_t status = of(endpoint)->channel_open(peer, id, direction, &opened);
    if (status == TUTTI_OK) *channel = reinterpret_cast<tutti_tp_channel_t*>(opened);
    return status;
  });
}

void table_channel_close(tutti_tp_channel_t* channel) {
  const auto close = [&]() -> tutti_status_t {
    of(channel)->link->close_channel(of(channel));
    return TUTTI_OK;
  };
  if (guarded(close) == TUTTI_OK) return;
  // No memory for the rest of a half-written frame: the link cannot be continued, and then needs none.
  Link* link = of(channel)->link;
  (void)guarded([&]() -> tutti_status_t {
    link->fail(TUTTI_TP_GONE_FAILED, "out of memory");
    return TUTTI_OK;
  });
  (void)guarded(close);
}

/// A link whose state an exception left in the middle cannot be trusted.
tutti_status_t guarded_on(Link* link, tutti_status_t status) {
  if (status != TUTTI_ERR_MEMORY && status != TUTTI_ERR_INTERNAL) return status;
  (void)guarded([&]() -> tutti_status_t {
    link->fail(TUTTI_TP_GONE_FAILED, "out of memory");
    return TUTTI_OK;
  });
  return status;
}

tutti_status_t table_post_send(tutti_tp_channel_t* channel, const void* data, uint64_t bytes, uint32_t mark, tutti_tp_op_t* op) {
  if (of(channel)->direction != TUTTI_TP_SEND) return TUTTI_ERR_ARGUMENT;
  return guarded_on(of(channel)->link, guarded([&] {
                      return of(channel)->link->post_send(*static_cast<Outbound*>(of(channel)), data, bytes, mark, op);
                    }));
}

tutti_status_t table_post_recv(tutti_tp_channel_t* channel, void* data, uint64_t capacity, tutti_tp_op_t* op) {
  if (of(channel)->direction != TUTTI_TP_RECV) return TUTTI_ERR_ARGUMENT;
  return guarded_on(of(channel)->link, guarded([&] {
                      return of(channel)->link->post_recv(*static_cast<Inbound*>(of(channel)), data, capacity, op);
                    }));
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

void table_disarm(tutti_tp_endpoint_t*) {}  // the descriptor is level-triggered and costs nothing meanwhile

tutti_status_t table_counter(tutti_tp_endpoint_t* endpoint, uint32_t index, const char** name, uint64_t* value) {
  return of(endpoint)->counter(index, name, value);
}

constexpr tutti_tp_table_t make_table() {
  tutti_tp_table_t table{};
  table.struct_size = sizeof(tutti_tp_table_t);
  table.abi_version = TUTTI_TP_ABI_VERSION;
  table.name = "tcp";
  table.description = "TCP sockets over IPv4 and IPv6";
  table.caps = TUTTI_TP_CAP_MESSAGES;
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
}  // namespace tutti::tcp

extern "C" __attribute__((visibility("default"))) const tutti_tp_table_t* TUTTI_TP_ENTRY(uint32_t host_abi_version);

extern "C" const tutti_tp_table_t* TUTTI_TP_ENTRY(uint32_t host_abi_version) {
  constexpr uint64_t kMine = TUTTI_TP_ABI_VERSION;
  return uint64_t{host_abi_version} + 1 > kMine ? &tutti::tcp::kTable : nullptr;
}
