// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "negotiation.hpp"

namespace tutti::tcp {

/// Takes the connections that a Listener accepts.
class ListenerOwner {
 public:
  virtual void accepted(Descriptor fd) = 0;
  /// No descriptors are left to accept with.
  virtual void accept_failed(int error_number) = 0;

 protected:
  ~ListenerOwner() = default;
};

class Listener final : public Pollable {
 public:
  Listener(ListenerOwner& owner, Counters& counters) : owner_(owner), counters_(counters) {}
  /// Binds to the address, on a port of the setting's range. Errno, or 0.
  int open(Address address, const Settings& settings, std::uint64_t random);
  const Address& address() const { return address_; }
  int fd() const { return fd_.get(); }
  void ready(std::uint32_t events) override;

 private:
  ListenerOwner& owner_;
  Counters& counters_;
  Descriptor fd_;
  Address address_;
};

}  // namespace tutti::tcp
