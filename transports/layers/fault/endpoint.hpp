// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "fault/plan.hpp"

namespace tutti::fault {

struct Endpoint;

/// An inner channel, and what is kept back on it.
struct Channel {
  struct Held {
    tutti_tp_op_t* op;
    const void* data;
    uint64_t bytes;
    uint32_t mark;
    uint64_t due_ns;
  };
  Endpoint* endpoint = nullptr;
  tutti_tp_channel_t* inner = nullptr;
  uint32_t peer = 0;
  std::deque<Held> held;   ///< sends; those behind one that is kept back wait too
  bool reserved = false;   ///< the host has a slot: it keeps it
  bool seen = false;       ///< a message is there; from due_ns on the host may see it
  uint64_t due_ns = 0;
};

struct Endpoint {
  Endpoint(const Plan& of_plan, const tutti_tp_open_t& arguments);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const tutti_tp_table_t& under() const { return plan.inner(); }
  uint64_t now_ns() const { return host->clock_ns(host->host); }
  bool chance(uint32_t percent);
  /// When a message that passes now is to go on; now, mostly.
  uint64_t due_ns();
  /// A message to the peer is on its way: is it the last that the rules allow?
  void count(uint32_t peer);
  void end_held(Channel& channel, tutti_status_t status);
  void end_peer(uint32_t peer);
  uint32_t release_held(bool all);
  uint32_t tell_broken();

  struct Broken {
    uint32_t peer;
    std::string text;
  };
  const Plan& plan;
  const tutti_tp_host_t* host;
  tutti_tp_host_t own_host{};  ///< what the inner endpoint sees
  tutti_tp_endpoint_t* inner = nullptr;
  uint32_t rank;
  uint64_t random_state;
  std::vector<uint64_t> sent;  ///< messages, by peer
  std::vector<bool> gone;      ///< by peer: posts are refused beneath, nothing is kept back any more
  std::vector<Channel*> channels;
  std::vector<Broken> broken;  ///< links that the rules broke, to be told
};

/// The ABI's handles stay undefined: a library may hold several transports, and each has its own idea of what they point to.
inline Endpoint* of(tutti_tp_endpoint_t* handle) { return reinterpret_cast<Endpoint*>(handle); }
inline Channel* of(tutti_tp_channel_t* handle) { return reinterpret_cast<Channel*>(handle); }

tutti_status_t channel_open(tutti_tp_endpoint_t* endpoint, uint32_t peer, uint64_t id, int direction, int slots,
                            tutti_tp_channel_t** channel);
void channel_close(tutti_tp_channel_t* channel);
tutti_status_t post_send(tutti_tp_channel_t* channel, const void* data, uint64_t bytes, uint32_t mark, tutti_tp_op_t* op);
tutti_status_t post_recv(tutti_tp_channel_t* channel, void* data, uint64_t capacity, tutti_tp_op_t* op);
tutti_status_t slot_reserve(tutti_tp_channel_t* channel, uint64_t bytes, void** slot);
tutti_status_t slot_commit(tutti_tp_channel_t* channel, uint64_t bytes, uint32_t mark);
tutti_status_t slot_peek(tutti_tp_channel_t* channel, const void** slot, uint64_t* bytes, uint32_t* mark);
tutti_status_t slot_release(tutti_tp_channel_t* channel);
void fill_endpoint_functions(tutti_tp_table_t& table);

}  // namespace tutti::fault
