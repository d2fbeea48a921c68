// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tutti/transport.h"

extern "C" const tutti_tp_table_t* tutti_tcp_transport_entry(uint32_t host_abi_version);

namespace tutti::test {

/// The host's side of the plugin ABI, recording what it is told.
struct HostDouble {
  HostDouble();
  HostDouble(const HostDouble&) = delete;
  HostDouble& operator=(const HostDouble&) = delete;

  struct Gone {
    uint32_t peer;
    int cause;
    std::string text;
  };
  tutti_tp_host_t table{};
  std::string secret = "the job's secret";
  std::map<std::string, std::string> settings;
  std::vector<Gone> gone;
  std::vector<std::pair<uint32_t, std::string>> notices;
  std::vector<std::string> log;
  uint64_t allocations = 0;
  uint64_t live_bytes = 0;
  uint64_t peak_bytes = 0;

 private:
  std::map<void*, size_t> blocks_;
};

/// Ranks of one job in this process, driven by the calling thread.
class Job {
 public:
  struct Options {
    uint32_t ranks = 2;
    std::string bind = "127.0.0.1";
    std::map<std::string, std::string> settings;
    uint8_t job_id = 1;
    bool introduce = true;  ///< set_peer and start
  };
  explicit Job(Options options);
  Job() : Job(Options()) {}
  static Options with(const std::string& setting, const std::string& value);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  static const tutti_tp_table_t& tp() { return *tutti_tcp_transport_entry(TUTTI_TP_ABI_VERSION); }
  tutti_tp_endpoint_t* operator[](uint32_t rank) { return endpoints_[rank]; }
  HostDouble& host(uint32_t rank) { return *hosts_[rank]; }
  std::string address(uint32_t rank);
  /// TCP port of the rank's first listener.
  uint16_t port(uint32_t rank);
  void introduce(uint32_t rank, uint32_t peer, const std::string& address);
  void close(uint32_t rank);
  /// The rank is driven no more, as if it computed for long.
  void ignore(uint32_t rank) { ignored_ = static_cast<int>(rank); }
  /// Forgets the endpoint: it belongs to another process now.
  tutti_tp_endpoint_t* disown(uint32_t rank) { return std::exchange(endpoints_[rank], nullptr); }

  void progress();
  /// False: the condition did not come to hold within the time.
  bool until(const std::function<bool()>& condition, double seconds = 10);
  bool connected(uint32_t a, uint32_t b);
  uint64_t counter(uint32_t rank, const std::string& name);
  tutti_tp_channel_t* channel(uint32_t rank, uint32_t peer, uint64_t id, int direction);

 private:
  std::vector<std::unique_ptr<HostDouble>> hosts_;
  std::vector<tutti_tp_endpoint_t*> endpoints_;
  int ignored_ = -1;
};

/// Both ends of a channel from one rank to another.
struct Pipe {
  Pipe(Job& job, uint32_t from, uint32_t to, uint64_t id);
  tutti_tp_channel_t* sender;
  tutti_tp_channel_t* receiver;
};

std::vector<uint8_t> pattern(size_t bytes, uint32_t seed);

}  // namespace tutti::test
