// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "tutti/transport.h"

namespace tutti::tcp {

struct Settings {
  std::uint64_t window_bytes = 256 * 1024;
  std::uint64_t socket_buffer_bytes = 0;
  std::uint64_t connect_timeout_ns = 20'000'000'000;
  std::uint64_t heartbeat_timeout_ns = 10'000'000'000;
  std::uint16_t first_port = 0;  ///< 0: any port
  std::uint16_t last_port = 0;
};

struct Counters {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t messages_sent = 0;
  std::uint64_t messages_received = 0;
  std::uint64_t system_calls = 0;
  std::uint64_t connections = 0;
  std::uint64_t strangers_dropped = 0;
};

/// The host's services, and the count of all memory that was taken from it.
class Host {
 public:
  explicit Host(const tutti_tp_host_t* host) : host_(host) {}

  void log(int level, const char* format, ...) const __attribute__((format(printf, 3, 4)));
  std::uint64_t now_ns() const { return host_->clock_ns(host_->host); }
  void random(void* bytes, std::size_t count) const { host_->random(host_->host, bytes, count); }
  std::uint64_t random_u64() const;
  void mac(const void* message, std::size_t bytes, std::uint8_t out[32]) const {
    host_->mac(host_->host, message, bytes, out);
  }
  void peer_gone(std::uint32_t peer, int cause, const char* text) const {
    host_->peer_gone(host_->host, peer, cause, text);
  }
  void notified(std::uint32_t peer, const void* notice, std::size_t bytes) const {
    host_->notified(host_->host, peer, notice, bytes);
  }

  /// Throws std::bad_alloc when the host has none.
  std::uint8_t* allocate(std::size_t bytes);
  void release(void* memory, std::size_t bytes) noexcept;
  /// Memory that came from elsewhere but belongs to the endpoint.
  void account(std::int64_t bytes) noexcept { memory_bytes_ += static_cast<std::uint64_t>(bytes); }
  std::uint64_t memory_bytes() const { return memory_bytes_; }

  /// False and a logged line: a setting's text is no number of its range.
  bool read_settings(Settings* settings) const;

 private:
  bool number(const char* name, std::uint64_t low, std::uint64_t high, std::uint64_t* value) const;
  bool ports(Settings* settings) const;

  const tutti_tp_host_t* host_;
  std::uint64_t memory_bytes_ = 0;
};

}  // namespace tutti::tcp
