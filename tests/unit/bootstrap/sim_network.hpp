// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/net.hpp"

namespace tutti::test {

/// Time that passes only when a test says so.
class ManualClock final : public Clock {
 public:
  uint64_t now_ns() const noexcept override { return now_; }
  void advance(uint64_t ns) { now_ += ns; }

 private:
  uint64_t now_ = 1'000'000'000;
};

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  void fill(std::span<std::byte> bytes) override;
  uint64_t next();

 private:
  uint64_t state_;
};

/// Something that a poller of the simulated network can look at.
class Pollable {
 public:
  virtual ~Pollable() = default;
  virtual bool readable() const = 0;
  virtual bool writable() const = 0;
};

/// One direction of a connection.
struct Pipe {
  std::deque<std::byte> bytes;
  bool closed = false;  // by the writer
  bool reset = false;
  static constexpr size_t kCapacity = 4096;
};

/// Sockets in memory for one thread: connections exist at once, reads and writes move few bytes at a time, nothing sleeps.
class SimNetwork final : public Network {
 public:
  explicit SimNetwork(uint64_t seed) : random_(seed) {}

  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, PortRange range) override;
  Result<std::unique_ptr<Stream>> connect(const Endpoint& to) override;
  Result<std::unique_ptr<Stream>> adopt(int fd) override;
  Result<std::unique_ptr<Poller>> make_poller() override;
  const Clock& clock() const noexcept override { return time; }

  /// Resets every connection there is.
  void break_all();

  ManualClock time;
  int resets = 0;               // so many of the next connections are reset after they were accepted
  size_t connection_count = 0;  // made so far
  size_t most_bytes_a_move = 7;

 private:
  friend class SimStream;
  friend class SimListener;
  friend class SimPoller;
  struct Port {
    std::deque<std::unique_ptr<Stream>> waiting;
  };
  int next_fd_ = 100'000;
  uint16_t next_port_ = 40'000;
  SeededRandom random_;
  std::map<int, Pollable*> pollables_;
  std::map<std::string, std::shared_ptr<Port>> ports_;
  std::vector<std::weak_ptr<Pipe>> pipes_;
};

}  // namespace tutti::test
