// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "handshake.hpp"
#include "socket.hpp"

namespace tutti::tcp {

/// The endpoint's epoll set.
class Poller {
 public:
  bool open();
  int fd() const { return fd_.get(); }
  bool add(int fd, Pollable* pollable, std::uint32_t events) { return control(EPOLL_CTL_ADD, fd, pollable, events); }
  void change(int fd, Pollable* pollable, std::uint32_t events) { control(EPOLL_CTL_MOD, fd, pollable, events); }
  void remove(int fd) { control(EPOLL_CTL_DEL, fd, nullptr, 0); }

 private:
  bool control(int operation, int fd, Pollable* pollable, std::uint32_t events);
  Descriptor fd_;
};

class Negotiation;

/// Who decides about negotiations and learns how they ended. After established and ended the negotiation is done with.
class NegotiationOwner {
 public:
  virtual Verdict decide(Negotiation& negotiation) = 0;
  virtual void established(Negotiation& negotiation) = 0;
  virtual void ended(Negotiation& negotiation, const std::string& why) = 0;

 protected:
  ~NegotiationOwner() = default;
};

/// A connection that is not a link yet: connecting, or in its handshake.
class Negotiation final : public Pollable {
 public:
  /// Takes a socket whose connection is made or under way.
  Negotiation(NegotiationOwner& owner, Poller& poller, Counters& counters, Descriptor fd, const Handshake& handshake,
              bool connecting);
  ~Negotiation() override;

  bool watch();  ///< puts it into the epoll set; false: errno says why not
  void ready(std::uint32_t events) override;
  /// Ends it; the owner is not told.
  void abandon();

  const Handshake& handshake() const { return handshake_; }
  bool done() const { return done_; }
  /// The other side hung up, as one does who has found another way, or a scanner.
  bool hung_up() const { return hung_up_; }
  bool connecting() const { return connecting_; }
  int error_number() const { return error_number_; }
  bool lost_to_other_side() const { return handshake_.state() == Handshake::State::kYielded; }
  int fd() const { return fd_.get(); }
  Descriptor take_socket() { return std::move(fd_); }

  std::uint64_t deadline_ns = 0;            ///< for all of it
  std::uint64_t handshake_allowed_ns = 0;   ///< for what follows the connection

 private:
  void finish(const std::string& why);
  bool write_output();
  void read_input();

  NegotiationOwner& owner_;
  Poller& poller_;
  Counters& counters_;
  Descriptor fd_;
  Handshake handshake_;
  bool connecting_;
  bool done_ = false;
  bool hung_up_ = false;
  int error_number_ = 0;  ///< of the attempt to connect
};

}  // namespace tutti::tcp
