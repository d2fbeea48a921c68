// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/fabric.hpp"

#include <algorithm>

namespace tutti {

bool Fabric::mark_gone(uint32_t peer, int cause, std::string text) {
  if (peer >= routes_.size()) return false;
  PeerRoute& route = routes_[peer];
  const auto state = cause == TUTTI_TP_GONE_LEFT          ? PeerRoute::State::left
                     : cause == TUTTI_TP_GONE_UNREACHABLE ? PeerRoute::State::unreachable
                                                          : PeerRoute::State::failed;
  if (route.state == PeerRoute::State::failed || route.state == state) return false;
  route.state = state;
  some_left_ |= is_silent(peer);
  route.gone_text = std::move(text);
  return true;
}

Result<ChannelHandle> Fabric::open_channel(uint32_t peer, uint64_t id, int direction) {
  const PeerRoute& route = routes_[peer];
  if (route.transport < 0)
    return error(TUTTI_ERR_CONNECT,
                 "rank {} cannot be reached by any transport that both ends have; see `tutti-info transports` there and here",
                 peer);
  FabricTransport& transport = transports_[static_cast<size_t>(route.transport)];
  ChannelHandle handle;
  handle.owner = &transport;
  handle.table = transport.table;
  handle.peer = peer;
  handle.carrier = route.carrier;
  const tutti_status_t status = transport.table->channel_open(transport.endpoint, peer, id, direction,
                                                              route.carrier == Carrier::slots ? 1 : 0, &handle.channel);
  if (status != TUTTI_OK)
    return error(status < 0 ? status : TUTTI_ERR_INTERNAL, "{}: cannot open a channel to rank {}", transport.table->name, peer);
  ++transport.open_channels;
  return handle;
}

void Fabric::close_channel(ChannelHandle& handle) noexcept {
  if (!handle.channel) return;
  handle.table->channel_close(handle.channel);
  --handle.owner->open_channels;
  handle.channel = nullptr;
}

void Fabric::arm() {
  for (const FabricTransport& transport : transports_) transport.table->arm(transport.endpoint);
}

void Fabric::disarm() {
  for (const FabricTransport& transport : transports_) transport.table->disarm(transport.endpoint);
}

std::vector<int> Fabric::descriptors() const {
  std::vector<int> result;
  for (const FabricTransport& transport : transports_)
    if (const int fd = transport.table->fd(transport.endpoint); fd >= 0) result.push_back(fd);
  return result;
}

uint64_t Fabric::poll_interval_ns() const {
  uint64_t interval = UINT64_MAX;
  for (const FabricTransport& transport : transports_)
    if (transport.table->caps & TUTTI_TP_CAP_MUST_POLL) interval = std::min(interval, transport.table->poll_interval_ns);
  return interval;
}

tutti_status_t Fabric::notify(uint32_t peer, const void* notice, size_t bytes) {
  const PeerRoute& route = routes_[peer];
  if (route.transport < 0 || route.state != PeerRoute::State::alive) return TUTTI_ERR_PEER_FAILED;
  const FabricTransport& transport = transports_[static_cast<size_t>(route.transport)];
  return transport.table->notify(transport.endpoint, peer, notice, bytes);
}

}  // namespace tutti
