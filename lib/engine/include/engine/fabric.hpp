// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "schedule/program.hpp"
#include "tutti/transport.h"

namespace tutti {

/// One transport of a context: its table and the endpoint that was opened and started. Owned elsewhere.
struct FabricTransport {
  const tutti_tp_table_t* table = nullptr;
  tutti_tp_endpoint_t* endpoint = nullptr;
  uint32_t open_channels = 0;  ///< none: nothing that anybody waits for comes this way, but for connections and notices
};

/// How this rank reaches one peer.
struct PeerRoute {
  /// unreachable: there never was a connection, and will be none. A rank that ended before looks like this.
  enum class State : uint8_t { alive, left, unreachable, failed };
  int transport = -1;  ///< index into the fabric's transports; -1: none
  Carrier carrier = Carrier::messages;
  uint64_t slot_bytes = UINT64_MAX;
  State state = State::alive;
  std::string gone_text;  ///< why, when not alive
};

/// An open channel: what the hot path needs, in one place.
struct ChannelHandle {
  FabricTransport* owner = nullptr;
  const tutti_tp_table_t* table = nullptr;
  tutti_tp_channel_t* channel = nullptr;
  uint32_t peer = 0;  ///< world rank
  Carrier carrier = Carrier::messages;
};

/// All transports of a context behind one face: routes, channels, progress, sleeping. One thread at a time (the driver).
class Fabric {
 public:
  Fabric(uint32_t rank, uint32_t size) : rank_(rank), routes_(size) {}

  /// Before the first channel is opened.
  void add_transport(FabricTransport transport) { transports_.push_back(transport); }
  void set_route(uint32_t peer, PeerRoute route) { routes_[peer] = std::move(route); }
  const PeerRoute& route(uint32_t peer) const { return routes_[peer]; }
  uint32_t rank() const noexcept { return rank_; }
  uint32_t size() const noexcept { return static_cast<uint32_t>(routes_.size()); }
  const std::vector<FabricTransport>& transports() const noexcept { return transports_; }

  /// peer_gone of a transport. Returns true when it is news.
  bool mark_gone(uint32_t peer, int cause, std::string text);
  /// Whether any peer has closed its endpoint, or cannot be reached.
  bool some_left() const noexcept { return some_left_; }
  /// Nothing comes of this peer any more, which is no failure by itself.
  bool is_silent(uint32_t peer) const {
    return routes_[peer].state == PeerRoute::State::left || routes_[peer].state == PeerRoute::State::unreachable;
  }

  Result<ChannelHandle> open_channel(uint32_t peer, uint64_t id, int direction);
  static void close_channel(ChannelHandle& handle) noexcept;

  /// Of transports in use, since this is what a wait polls; of all when `all`, or now and then.
  uint32_t progress(bool all = false) {
    all |= ++polls_ % kIdlePollInterval == 0;
    uint32_t events = 0;
    for (const FabricTransport& transport : transports_)
      if (all || transport.open_channels > 0) events += transport.table->progress(transport.endpoint);
    return events;
  }
  void arm();
  void disarm();
  /// Descriptors to poll while armed (-1 entries left out).
  std::vector<int> descriptors() const;
  /// The longest time that the transports may be left alone, UINT64_MAX when all wake us.
  uint64_t poll_interval_ns() const;

  /// Best effort: AGAIN is retried by the caller's next round.
  tutti_status_t notify(uint32_t peer, const void* notice, size_t bytes);

 private:
  uint32_t rank_;
  std::vector<PeerRoute> routes_;
  std::vector<FabricTransport> transports_;
  uint64_t polls_ = 0;
  bool some_left_ = false;
  static constexpr uint64_t kIdlePollInterval = 256;
};

}  // namespace tutti
