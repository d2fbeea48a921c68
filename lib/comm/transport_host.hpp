// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "bootstrap/secret.hpp"
#include "comm/hooks.hpp"
#include "engine/engine.hpp"
#include "tutti/transport.h"

namespace tutti {

/// What one transport of one context gets from its host, and its endpoint. The services are those of transport.h.
class TransportHost {
 public:
  struct Services {
    const Log* log;
    const Hooks* hooks;
    const Clock* clock;
    Random* random;
    const Secret* secret;
    const Config* config;
  };

  TransportHost(const tutti_tp_table_t* table, Services services);
  ~TransportHost();
  TransportHost(const TransportHost&) = delete;
  TransportHost& operator=(const TransportHost&) = delete;

  /// args without host; fails when the transport cannot start here (it has said why in its log line).
  tutti_status_t open(tutti_tp_open_t args);
  Result<std::string> address() const;
  /// start, with progress, until it is done or the deadline.
  tutti_status_t start(Deadline deadline);
  void close() noexcept;
  /// From now on peers' ends and notices go there.
  void set_engine(Engine* engine);

  const tutti_tp_table_t* table() const noexcept { return table_; }
  tutti_tp_endpoint_t* endpoint() const noexcept { return endpoint_; }
  const char* name() const noexcept { return table_->name; }
  /// What it logged last: when it does not start, this says why.
  const std::string& last_line() const noexcept { return last_line_; }

 private:
  static void log_line(void* host, int level, const char* line);
  static void* allocate(void* host, size_t bytes, size_t alignment);
  static void release(void* host, void* memory);
  static uint64_t clock_ns(void* host);
  static void random_bytes(void* host, void* bytes, size_t count);
  static void keyed_hash(void* host, const void* message, size_t bytes, uint8_t mac[32]);
  static const char* setting(void* host, const char* name);
  static void peer_gone(void* host, uint32_t peer, int cause, const char* text);
  static void notified(void* host, uint32_t peer, const void* notice, size_t bytes);

  const tutti_tp_table_t* table_;
  tutti_tp_endpoint_t* endpoint_ = nullptr;
  Services services_;
  tutti_tp_host_t host_{};
  Engine* engine_ = nullptr;
  std::string last_line_;  // while there is no engine
  struct Gone {
    uint32_t peer;
    int cause;
    std::string text;
  };
  std::vector<Gone> early_gone_;  // while there is no engine
  bool early_lost_ = false;       // there was no memory to keep one
  std::mutex settings_mutex_;
  std::map<std::string, std::string> settings_;  // what was handed out stays where it is
};

}  // namespace tutti
