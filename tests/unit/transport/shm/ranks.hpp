// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tutti/transport.h"

extern "C" const tutti_tp_table_t* tutti_shm_transport_entry(uint32_t host_abi_version);

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

  bool logged(const std::string& part) const;

 private:
  std::map<void*, size_t> blocks_;
};

struct Options {
  uint32_t ranks = 2;
  std::map<std::string, std::string> settings;
  std::string identity = "here";
  std::string secret = "the job's secret";
  uint8_t job_id = 1;
};

/// One rank and what a host would do with it.
class Rank {
 public:
  Rank(uint32_t rank, const Options& options);
  ~Rank() { close(); }

  static const tutti_tp_table_t& tp() { return *tutti_shm_transport_entry(TUTTI_TP_ABI_VERSION); }
  tutti_tp_endpoint_t* endpoint() { return endpoint_; }
  HostDouble& host() { return host_; }
  uint32_t rank() const { return rank_; }
  std::string address();
  void introduce(uint32_t peer, const std::string& address);
  tutti_status_t start() { return tp().start(endpoint_); }
  void close();
  uint32_t progress() { return tp().progress(endpoint_); }
  tutti_status_t link(uint32_t peer);
  uint64_t counter(const std::string& name);
  tutti_tp_channel_t* channel(uint32_t peer, uint64_t id, int direction);

  /// Polls. False: it did not come to hold within the time.
  bool until(const std::function<bool()>& condition, double seconds = 20);
  /// Sleeps on the descriptor whenever the condition does not hold, as a host would.
  bool sleep_until(const std::function<bool()>& condition, double seconds = 20);
  bool send(tutti_tp_channel_t* channel, const std::string& message, bool sleep = false);
  /// "timeout" or "error -301" in place of a message.
  std::string receive(tutti_tp_channel_t* channel, bool sleep = false);

 private:
  HostDouble host_;
  uint32_t rank_;
  tutti_tp_endpoint_t* endpoint_ = nullptr;
};

/// Ranks of one job in this process, driven by the calling thread.
class Job {
 public:
  explicit Job(const Options& options = {}, bool start = true);
  Rank& operator[](uint32_t rank) { return *ranks_[rank]; }
  void progress();
  bool until(const std::function<bool()>& condition, double seconds = 20);

 private:
  std::vector<std::unique_ptr<Rank>> ranks_;
};

/// Memory that forked ranks share with the test.
struct Board {
  static constexpr uint32_t kRanks = 32;
  std::atomic<uint32_t> arrived;
  std::atomic<uint64_t> flags[16];
  std::atomic<int> pids[kRanks];
  uint32_t address_bytes[kRanks];
  char addresses[kRanks][TUTTI_TP_ADDRESS_MAX_BYTES];
  char failures[kRanks][256];

  bool wait(uint32_t flag, uint64_t value, double seconds = 20) const;
};

/// Body of one rank: returns "" or what went wrong.
using Body = std::function<std::string(Rank&, Board&)>;

/// Runs each rank in a process of its own and returns what each ended with: "", the body's text, or "signal 9".
/// `meet` false: the body does set-up itself.
std::vector<std::string> run_processes(const Options& options, const Body& body, bool meet = true);
/// Writes the rank's address on the board.
void publish(Rank& rank, Board& board);
/// Tells the rank all addresses, its own by itself if it is not on the board.
std::string exchange(Rank& rank, Board& board, const Options& options);
/// The same, and start.
std::string meet(Rank& rank, Board& board, const Options& options);

std::string pattern(size_t bytes, uint32_t seed);
size_t open_descriptors();

}  // namespace tutti::test
