// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "state.hpp"

namespace tutti::sim {

/// What the C table's channel handle points to: one end of a pipe.
struct Channel {
  Endpoint* endpoint = nullptr;
  PipePtr pipe;
  uint32_t peer = 0;
  int direction = TUTTI_TP_SEND;
  std::deque<tutti_tp_op_t*> receives;  ///< posted; plugin[0] memory, plugin[1] capacity
  bool held = false;   ///< a slot was given to the host: reserved, or peeked at
  bool dirty = false;  ///< in the endpoint's list of channels with something to match
  uint64_t reserved_bytes = 0;
  uint32_t reserved_slot = 0;
};

/// One rank's presence in one job. Called with the world's mutex held.
struct Endpoint : std::enable_shared_from_this<Endpoint> {
  enum class LinkState : uint8_t { kDown, kUp, kLeft, kFailed };
  struct Peer {
    uint32_t number = UINT32_MAX;  ///< its endpoint; UINT32_MAX: not known
    LinkState state = LinkState::kDown;
    tutti_status_t gone_status = TUTTI_OK;
    uint32_t notices = 0;  ///< on their way
  };
  struct Gone {
    uint32_t peer;
    int cause;
    std::string text;
  };
  struct Notice {
    uint32_t peer;
    std::string bytes;
    std::function<void()> on_taken;
  };

  Endpoint(State& of_world, const tutti_tp_open_t& arguments, uint32_t own_number);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  tutti_status_t address(void* buffer, size_t capacity, size_t* bytes) const;
  tutti_status_t set_peer(uint32_t peer, const void* bytes, size_t count);
  tutti_status_t start();
  tutti_status_t link(uint32_t peer, tutti_tp_link_t* link) const;
  tutti_status_t connect(uint32_t peer);
  tutti_status_t notify(uint32_t peer, const void* notice, size_t bytes);
  void cut(uint32_t peer);
  void close();
  tutti_status_t counter(uint32_t index, const char** name, uint64_t* value) const;

  tutti_status_t channel_open(uint32_t peer, uint64_t id, int direction, int slots, Channel** channel);
  void channel_close(Channel* channel);
  tutti_status_t post_send(Channel& channel, const void* data, uint64_t bytes, uint32_t mark, tutti_tp_op_t* op);
  tutti_status_t post_recv(Channel& channel, void* data, uint64_t capacity, tutti_tp_op_t* op);
  tutti_status_t reserve(Channel& channel, uint64_t bytes, void** slot);
  tutti_status_t commit(Channel& channel, uint64_t bytes, uint32_t mark);
  tutti_status_t peek(Channel& channel, const void** slot, uint64_t* bytes, uint32_t* mark);
  tutti_status_t release(Channel& channel);

  /// The callbacks are for the caller to make, once it has let go of the mutex.
  uint32_t progress(std::vector<Gone>* gone, std::vector<Notice>* notices);

  // ---- what arrives
  void wake();
  void message_arrived(const PipePtr& pipe, const MessagePtr& message);
  void acknowledged(const PipePtr& pipe, const MessagePtr& message);

  uint32_t number_of(uint32_t peer) const { return peer < peers.size() ? peers[peer].number : UINT32_MAX; }
  bool usable(uint32_t peer) const { return number_of(peer) != UINT32_MAX && peer != rank; }
  bool gone(uint32_t peer) const { return peers[peer].state == LinkState::kLeft || peers[peer].state == LinkState::kFailed; }

  State* world;  ///< outlives its endpoints
  const tutti_tp_host_t* host;
  uint32_t number;
  uint32_t rank;
  std::array<uint8_t, 16> job_id;
  std::array<uint8_t, 32> proof;
  bool started = false;
  bool closed = false;
  bool crashed = false;
  uint32_t start_calls = 0;
  uint64_t connect_timeout_ns = 20'000'000'000;
  uint64_t heartbeat_timeout_ns = 10'000'000'000;
  std::vector<Peer> peers;
  std::vector<Channel*> channels;  ///< in the order in which they were opened: pointers have none
  std::vector<Channel*> dirty;
  std::vector<std::pair<PipePtr, MessagePtr>> taken;  ///< sends that a receive took; done at the next progress
  std::vector<Gone> gone_inbox;
  std::vector<Notice> notice_inbox;
  uint64_t messages_sent = 0;
  uint64_t messages_received = 0;
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t memory_bytes = 0;

 private:
  uint32_t match(Channel& channel);
  void take(Channel& channel, const MessagePtr& message, tutti_tp_op_t* op);
  void send(const PipePtr& pipe, const MessagePtr& message);
  bool buffer(Pipe& pipe, Message& message, bool whatever);
  void consumed(const PipePtr& pipe, const MessagePtr& message);
  uint32_t finish_taken();
  void promote(Pipe& pipe);
  void end_sends(Channel& channel, tutti_status_t status);
  void end_receives(Channel& channel, tutti_status_t status);
  void end_link(uint32_t peer, int cause);
  void number_setting(const char* name, uint64_t* value) const;
};

}  // namespace tutti::sim
