// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "desk.hpp"
#include "gathering.hpp"
#include "ring.hpp"

namespace tutti::shm {

class Endpoint;

/// One other rank of the node.
struct Peer {
  enum class State : uint8_t { kUnlinked, kAlive, kLeft, kFailed };
  uint32_t rank = 0;
  uint32_t index = 0;
  State state = State::kUnlinked;
  std::unique_ptr<Sender> notices_out;
  std::optional<Receiver> notices_in;  // in place: a notice must not be lost for want of memory
};

/// One end of a channel: one of the two pointers is set.
struct Channel {
  Endpoint* endpoint = nullptr;
  Peer* peer = nullptr;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  uint64_t id = 0;
};

/// One rank's presence. setup.cpp has its way to a node, endpoint.cpp its life there.
class Endpoint {
 public:
  explicit Endpoint(const tutti_tp_open_t& arguments);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  tutti_status_t open(const tutti_tp_open_t& arguments);
  tutti_status_t address(void* buffer, size_t capacity, size_t* bytes) const;
  tutti_status_t set_peer(uint32_t peer, const void* address, size_t bytes);
  tutti_status_t start();
  /// Before the end of an endpoint that may not have started.
  void call_off();
  tutti_status_t link(uint32_t peer, tutti_tp_link_t* link) const;
  tutti_status_t connect(uint32_t peer) const;
  void cut(uint32_t peer);

  tutti_status_t channel_open(uint32_t peer, uint64_t id, bool sends, Channel** channel);
  void channel_close(Channel* channel);
  /// The rare endings of a slot call: what to answer the host.
  tutti_status_t channel_trouble(Channel& channel, tutti_status_t status);

  tutti_status_t notify(uint32_t peer, const void* notice, size_t bytes);

  uint32_t progress();
  int fd() const { return epoll_.get(); }
  void arm();
  void disarm();
  tutti_status_t counter(uint32_t index, const char** name, uint64_t* value) const;

 private:
  using ChannelKey = std::tuple<uint32_t, uint64_t, bool>;  ///< node index, id, we send
  /// Closed by us before the writer opened its end: to be closed once it does.
  struct Orphan {
    uint32_t writer;
    RingKey key;
    uint32_t uses;
  };
  struct Departure {
    uint32_t rank;
    int cause;
    std::string text;
  };

  // setup.cpp
  tutti_status_t begin();
  tutti_status_t advance();
  Plan make_plan();
  void enter(std::shared_ptr<Node> node);
  void stop_setup();

  tutti_status_t make_channel(Peer& peer, uint64_t id, bool sends, Channel*& channel);
  Peer* find(uint32_t rank);
  const Peer* find(uint32_t rank) const { return const_cast<Endpoint*>(this)->find(rank); }
  uint32_t watch_kernel();
  uint32_t look_around();
  uint32_t take_notices(Peer& peer);
  uint32_t take_flagged_notices();
  void take_cuts();
  void take_departures();
  void gone(Peer& peer, Peer::State state, int cause, std::string text);
  void tell_cut(const Peer& peer);
  void reject(Peer& peer);
  void settle_orphans();
  void free_closed();
  void make_room_to_close();
  bool can_free(const Sender& sender) const;
  uint32_t deliver();
  Bell& bell() const { return share_->node->arena->control(share_->self).bell; }

  Host host_;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  Token job_{};
  Fd epoll_;

  // set-up
  Address self_;
  uint32_t slots_ = 0;
  uint64_t slot_bytes_ = 0;
  uint64_t arena_bytes_ = 0;
  uint64_t timeout_ns_ = 0;
  std::map<uint32_t, Address> addresses_;  ///< of the ranks that may share our node
  Fd listener_;
  Fd timer_;
  Desk desk_;     ///< ours
  Desk visited_;  ///< that of our process's first rank, until it is settled
  std::unique_ptr<Gathering> gathering_;
  uint64_t give_up_ns_ = 0;
  bool begun_ = false;
  bool started_ = false;

  // life
  std::unique_ptr<Share> share_;  ///< nullptr: no peer can be reached
  std::pmr::vector<Peer> peers_;  ///< by node index
  std::pmr::map<ChannelKey, Channel*> channels_;
  std::pmr::vector<std::unique_ptr<Sender>> closed_;  ///< closed by us and not yet by the reader
  std::pmr::vector<Orphan> orphans_;
  std::vector<Departure> departures_;  ///< to be told to the host
  uint64_t seen_attention_ = 0;
  uint64_t next_watch_ns_ = 0;
  uint32_t quiet_ = 0;
  uint64_t notices_sent_ = 0;
  int64_t rings_due_ = 0;  ///< writes to our eventfd that we know of and have not read
  bool armed_ = false;
  bool look_ = false;  ///< the kernel may have something for us
};

}  // namespace tutti::shm
