// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <utility>

#include "address.hpp"
#include "host.hpp"

namespace tutti::tcp {

/// Owns a descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void close();
  /// Closes a connection so that nothing of it stays in the kernel, not even TIME_WAIT: the peer sees a reset, after
  /// whatever it has received.
  void reset_connection();

 private:
  int fd_ = -1;
};

/// A thing with a descriptor in the endpoint's epoll set.
class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual void ready(std::uint32_t events) = 0;
};

Descriptor make_socket(bool ipv6, const Settings& settings);
void send_at_once(int fd);
/// Options of a connection that carries frames.
void tune_connection(int fd, const Settings& settings);
/// The other end's name for messages; "?" if unknown.
std::string peer_text(int fd);

/// Why the peer's host must be taken for vanished, or nullptr: bytes of ours, or probes, have gone without any answer for
/// longer than timeout_ns. A living host that merely does not read answers probes and passes.
const char* silence(int fd, std::uint64_t timeout_ns);
/// Bytes written that the peer's kernel has not acknowledged.
int unacknowledged_bytes(int fd);

}  // namespace tutti::tcp
