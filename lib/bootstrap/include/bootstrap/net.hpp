// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace tutti {

/// Where somebody listens. `host` is a numeric IPv4 or IPv6 address (with %scope if link-local), a name, or "@name": a
/// socket of this machine in the abstract Unix namespace, which only processes of the same user may use.
struct Endpoint {
  std::string host;
  uint16_t port = 0;

  bool on_this_machine() const;  // loopback address, "localhost" or "@name": decided without a resolver
  bool is_unix() const { return !host.empty() && host.front() == '@'; }
  std::string text() const;  // "10.0.0.5:4711", "[fd00::5]:4711", "@name"
  /// Back from text(). The port must be there (1..65535) but for "@name"; errors are TUTTI_ERR_ENVIRONMENT with the value.
  static Result<Endpoint> parse(std::string_view text);
  friend bool operator==(const Endpoint& a, const Endpoint& b) { return a.host == b.host && a.port == b.port; }
};

/// Comma-separated endpoints, at least one.
Result<std::vector<Endpoint>> parse_endpoints(std::string_view text);
std::string endpoints_text(const std::vector<Endpoint>& endpoints);

/// Ports that a listener may use; {0, 0}: any.
struct PortRange {
  uint16_t first = 0;
  uint16_t last = 0;
  /// "7000-7010", "7000" or "" (any); else TUTTI_ERR_CONFIG.
  static Result<PortRange> parse(std::string_view text);
};

/// What a non-blocking attempt came to. closed: the other side ended the connection in order. failed: it broke.
enum class Io : uint8_t { done, again, closed, failed };

/// A connection. Not thread-safe. Destruction closes it.
class Stream {
 public:
  virtual ~Stream() = default;
  /// done: the connection is up. failed: error() says why.
  virtual Io finish_connect() = 0;
  /// done: *bytes (at least 1) were moved.
  virtual Io read(std::span<std::byte> into, size_t* bytes) = 0;
  virtual Io write(std::span<const std::byte> from, size_t* bytes) = 0;
  /// The system's word for what failed.
  virtual std::string error() const = 0;
  virtual int fd() const noexcept = 0;
  virtual std::string peer_text() const = 0;
  /// For who has nothing more to send and has read all that it asked for: destruction then leaves nothing in the system (a port
  /// that is in use for a minute), and the peer may see the connection break instead of end.
  virtual void leave_no_trace() noexcept {}
};

class Listener {
 public:
  virtual ~Listener() = default;
  /// done: *stream is a new connection. failed: none now and error() says why (out of descriptors ...); try again later.
  virtual Io accept(std::unique_ptr<Stream>* stream) = 0;
  virtual std::string error() const = 0;
  virtual Endpoint endpoint() const = 0;
  virtual int fd() const noexcept = 0;
};

/// Sleeps until one of many descriptors is ready (level-triggered, as epoll).
class Poller {
 public:
  virtual ~Poller() = default;
  /// Registers, or changes what is wanted. Reading is always wanted.
  virtual Status watch(int fd, bool want_write, uint64_t token) = 0;
  virtual void forget(int fd) = 0;
  /// Appends the tokens of ready descriptors, at once if there are any; else sleeps until the deadline at the latest.
  virtual void wait(Deadline deadline, std::vector<uint64_t>* ready) = 0;
  /// Any thread: the wait in progress, or the next one, returns.
  virtual void wake() noexcept = 0;
  /// Readable while a descriptor is ready, so that pollers can be nested.
  virtual int fd() const noexcept = 0;
};

/// Everything in bootstrap and control reaches sockets through this.
class Network {
 public:
  virtual ~Network() = default;
  /// Listens on at.host only. at.port 0: a port of `range`.
  virtual Result<std::unique_ptr<Listener>> listen(const Endpoint& at, PortRange range) = 0;
  /// Starts to connect; never blocks, but for the resolver when the host is a name.
  virtual Result<std::unique_ptr<Stream>> connect(const Endpoint& to) = 0;
  /// Takes over a connected descriptor that the process has inherited (PMI_FD).
  virtual Result<std::unique_ptr<Stream>> adopt(int fd) = 0;
  virtual Result<std::unique_ptr<Poller>> make_poller() = 0;
  virtual const Clock& clock() const noexcept = 0;
};

/// TCP and Unix sockets of the kernel: close-on-exec, never SIGPIPE, TCP_NODELAY.
std::unique_ptr<Network> make_system_network();

}  // namespace tutti
