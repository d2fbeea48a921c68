// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "bootstrap/auth.hpp"
#include "bootstrap/net.hpp"
#include "bootstrap/secret.hpp"
#include "bootstrap/store.hpp"

namespace tutti {

struct StoreServerOptions {
  Network* network = nullptr;
  Random* random = nullptr;
  const Log* log = nullptr;
  Secret secret;       // empty: whoever reaches the socket may join (sockets of this machine and user; insecure jobs)
  std::string job_id;  // goes into the handshake: clients of another job are refused
  uint32_t version = kProtocolVersion;
  std::vector<Endpoint> addresses;  // where to listen: each one; port 0: a port of `ports`
  PortRange ports;
  bool first_free = false;  // `addresses` are alternatives: listen on the first that is free
  /// Connections that have not authenticated: at most so many (the oldest is dropped for a new one), each for so long.
  uint32_t most_pending = 256;
  uint64_t handshake_ns = 5'000'000'000;
};

/// The rendezvous store: a small authenticated key-value server, as a state machine. A stranger costs a fixed number of
/// bytes and is dropped; nothing of a connection is interpreted before both sides have proved the secret. One thread.
class StoreServer {
 public:
  static Result<std::unique_ptr<StoreServer>> open(const StoreServerOptions& options);
  ~StoreServer();

  /// Does what can be done now; never blocks.
  void step();
  /// Readable when step() has something to do; and step() wants to be called at next_ns() even so.
  int fd() const noexcept;
  uint64_t next_ns() const noexcept;
  Poller& poller() noexcept;

  const std::vector<Endpoint>& endpoints() const noexcept;  // with the real ports
  /// Every rank of a job of `size` has its table (see exchange.hpp) and all answers are sent.
  bool finished(uint32_t size) const;
  /// Puts a value into the store from this side ("secret").
  void set(std::string_view key, std::string_view value);
  bool get(std::string_view key, std::string* value) const;
  /// Ends the listeners and all connections; what was stored can still be read.
  void close();
  /// Authenticated connections that are open, and ones still in their handshake.
  size_t client_count() const noexcept;
  size_t pending_count() const noexcept;
  uint64_t memory_bytes() const noexcept;  // buffers and values

 private:
  struct State;
  explicit StoreServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Starts `body` on a new thread; the function returned waits for its end. Default: std::thread with all signals blocked.
using ThreadStarter = std::function<std::function<void()>(std::function<void()> body)>;

/// A StoreServer on a thread of its own, or (threaded = false) one that its owner steps.
class StoreHost {
 public:
  /// size: ends itself as soon as that many ranks have met; 0: the size is what the ranks say.
  static Result<std::unique_ptr<StoreHost>> open(const StoreServerOptions& options, uint32_t size, bool threaded,
                                                 ThreadStarter start_thread = {});
  /// Ends at once. See linger().
  ~StoreHost();
  const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
  void step();  // without a thread only
  int fd() const noexcept;
  uint64_t next_ns() const noexcept;
  /// All ranks have met and have been told: the listener is closed, the thread has ended or is about to.
  bool finished() const noexcept { return finished_.load(); }
  /// Serves on until all have met, all clients have left (but not before `stay`: some may come late), or the deadline.
  void linger(Deadline deadline, Deadline stay = {0});
  /// Lets the host go on alone: it deletes itself when all have met, or at the deadline. For unique ids, whose creator gets
  /// no handle. Threaded hosts only.
  static void release(std::unique_ptr<StoreHost> host, Deadline deadline);

 private:
  StoreHost(std::unique_ptr<StoreServer> server, uint32_t size, const Clock& clock);
  void serve();
  bool done();

  std::unique_ptr<StoreServer> server_;
  std::vector<Endpoint> endpoints_;
  const Clock& clock_;
  uint32_t size_;
  std::atomic<uint64_t> deadline_ns_{Deadline::kNever};
  std::atomic<uint64_t> stay_until_ns_{0};
  std::atomic<bool> finished_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> leave_when_empty_{false};
  std::function<void()> join_;
};

}  // namespace tutti
