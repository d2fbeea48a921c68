// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "address.hpp"
#include "host.hpp"
#include "link.hpp"
#include "listener.hpp"
#include "negotiation.hpp"

namespace tutti::tcp {

/// One rank's presence. endpoint.cpp has its life and its progress, reconcile.cpp the making of connections.
class Endpoint final : private NegotiationOwner, private ListenerOwner, private Pollable {
 public:
  explicit Endpoint(const tutti_tp_open_t& arguments);
  ~Endpoint() override;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // ---- the table's functions
  tutti_status_t open(const char* bind_addresses);
  tutti_status_t address(void* buffer, std::size_t capacity, std::size_t* bytes) const;
  tutti_status_t set_peer(std::uint32_t peer, const void* address, std::size_t bytes);
  tutti_status_t start();
  tutti_status_t link_info(std::uint32_t peer, tutti_tp_link_t* link) const;
  tutti_status_t connect(std::uint32_t peer);
  tutti_status_t channel_open(std::uint32_t peer, std::uint64_t id, int direction, Channel** channel);
  tutti_status_t notify(std::uint32_t peer, const void* notice, std::size_t bytes);
  void cut(std::uint32_t peer);
  std::uint32_t progress();
  int fd() const { return poller_.fd(); }
  void arm();
  void close();
  tutti_status_t counter(std::uint32_t index, const char** name, std::uint64_t* value) const;

  // ---- for links
  Host& host() { return host_; }
  Counters& counters() { return counters_; }
  const Settings& settings() const { return settings_; }
  Poller& poller() { return poller_; }
  /// The link is needed: connect.
  void want(Link& link);
  bool wanted(std::uint32_t peer) const;
  void set_hot(Link& link, bool hot);
  void count_blocked(int change) { blocked_ += change; }
  void count_events(std::uint32_t events) { events_ += events; }
  void defer_gone(std::uint32_t peer, int cause, const std::string& why);
  void defer_notice(std::uint32_t peer, const void* notice, std::size_t bytes);

 private:
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  struct Peer {
    std::vector<std::uint8_t> contact;
    std::unique_ptr<Link> link;
  };
  /// On the way to a link.
  struct Attempt {
    Contact contact;
    Negotiation* outgoing = nullptr;
    Negotiation* incoming = nullptr;  ///< accepted, not confirmed yet
    std::size_t next_address = 0;
    unsigned round = 0;
    bool wanted = false;
    bool all_refused = false;  ///< in this round over its addresses
    std::uint64_t retry_at_ns = kNever;
    std::uint64_t deadline_ns = kNever;
    std::string last_failure;
  };
  /// What the host is told, from progress only.
  struct Deferred {
    std::uint32_t peer;
    int cause;  ///< -1: a notice
    std::string text;
  };

  // NegotiationOwner, ListenerOwner, Pollable (the timer)
  Verdict decide(Negotiation& negotiation) override;
  void established(Negotiation& negotiation) override;
  void ended(Negotiation& negotiation, const std::string& why) override;
  void accepted(Descriptor fd) override;
  void accept_failed(int error_number) override;
  void ready(std::uint32_t events) override;

  NegotiationOwner& owner() { return *this; }
  tutti_status_t open_listeners(const std::string& addresses);
  std::uint32_t poll_hot();
  void poll_all(int timeout_ms);
  void deliver();
  Link* link_of(std::uint32_t peer);
  bool knows(std::uint32_t peer) const { return peer < peers_.size() && !peers_[peer].contact.empty(); }
  bool reachable(std::uint32_t peer) const;

  Attempt& attempt_of(std::uint32_t peer);
  void try_next_address(std::uint32_t peer, Attempt& attempt);
  int start_connection(std::uint32_t peer, Attempt& attempt, const Address& address);
  void try_later(std::uint32_t peer, Attempt& attempt);
  void forget_attempt(std::uint32_t peer);
  void drop(Negotiation*& negotiation);
  void drop_stranger(const Negotiation& negotiation, const std::string& why);
  void make_room_for_negotiation();
  std::uint32_t incoming_count() const;
  void bury(Negotiation& negotiation);
  void schedule(std::uint64_t at_ns);
  void on_time(std::uint64_t now_ns);
  void check_silence();

  Host host_;
  Counters counters_;
  Settings settings_;
  Identity identity_;
  std::uint64_t machine_;
  Poller poller_;
  Descriptor timer_;
  std::uint64_t timer_at_ns_ = kNever;
  std::uint64_t silence_check_at_ns_ = kNever;
  std::uint64_t listen_again_at_ns_ = kNever;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::map<std::uint32_t, Attempt> attempts_;
  std::vector<std::unique_ptr<Negotiation>> negotiations_;
  std::vector<std::unique_ptr<Negotiation>> buried_;  ///< freed when no epoll event can name them any more
  std::vector<Link*> hot_;  ///< links on whose sockets something is awaited
  std::vector<Deferred> deferred_;
  std::vector<Deferred> delivering_;
  int blocked_ = 0;
  std::uint32_t events_ = 0;
  std::uint32_t skipped_ = 0;
  bool look_ = false;  ///< the host may have slept
  bool started_ = false;
  bool closing_ = false;
  std::vector<Peer> peers_;  ///< last: links use the rest until they are gone
};

}  // namespace tutti::tcp
