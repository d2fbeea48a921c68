// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "subject.hpp"

namespace tutti::conformance {

using Bytes = std::vector<uint8_t>;

/// The host's side of the ABI for one endpoint. Records what it is told, and keeps account of the memory it lends.
class Host {
 public:
  explicit Host(World* world);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  struct Gone {
    uint32_t peer;
    int cause;
    std::string text;
  };
  tutti_tp_host_t table{};
  std::string secret = "the secret of the job";
  std::map<std::string, std::string> settings;
  std::vector<Gone> gone;
  std::vector<std::pair<uint32_t, std::string>> notices;
  uint64_t allocations = 0;
  uint64_t live_blocks() const { return blocks_.size(); }
  /// What the transport did wrong: freed what it did not own, called back outside of a call.
  std::vector<std::string> faults;
  bool in_call = false;  ///< kept by whoever calls the endpoint
  std::string last_log();

 private:
  void called_back(const char* what);
  World* world_;
  std::mutex log_mutex_;
  std::string last_log_;
  std::map<void*, size_t> blocks_;
};

enum class Carrier { messages, slots };
const char* name(Carrier carrier);

/// Ranks of one job in this process. Everything that waits drives all of them, unless they are told to be left alone.
class Job {
 public:
  struct Options {
    uint32_t ranks = 2;
    std::map<std::string, std::string> settings;
    bool introduce = true;  ///< set_peer and start
  };
  explicit Job(Options options);
  explicit Job(uint32_t ranks = 2) : Job(Options{ranks, {}, true}) {}
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  uint32_t size() const { return static_cast<uint32_t>(endpoints_.size()); }
  tutti_tp_endpoint_t* operator[](uint32_t rank) { return endpoints_[rank]; }
  Host& host(uint32_t rank) { return *hosts_[rank]; }
  std::string address(uint32_t rank);
  /// set_peer of everybody to everybody, and start.
  void introduce();
  bool connect(uint32_t a, uint32_t b);
  void close(uint32_t rank);
  /// The rank is driven no more, as if it computed for long.
  void leave_alone(uint32_t rank) { alone_.at(rank) = true; }

  uint32_t progress(uint32_t rank);
  void progress();
  void progress_times(int times);
  /// False: the condition did not come to hold within the time.
  bool until(const std::function<bool()>& condition, double seconds = 20);
  /// One wait of a host in its own thread: sleeps until its descriptor is readable. False: nothing woke it, and `finished`
  /// did not hold when it went to sleep.
  bool sleep(uint32_t rank, const std::function<bool()>& finished, int timeout_ms);

  tutti_tp_link_t link(uint32_t rank, uint32_t peer);
  /// The ways in which channels of the two ranks can be used.
  std::vector<Carrier> carriers(uint32_t a = 0, uint32_t b = 1);
  tutti_tp_channel_t* channel(uint32_t rank, uint32_t peer, uint64_t id, int direction, Carrier carrier);
  /// The counter's value, UINT64_MAX: there is none.
  uint64_t counter(uint32_t rank, const std::string& name);
  World* world() { return world_.get(); }

 private:
  std::unique_ptr<World> world_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<tutti_tp_endpoint_t*> endpoints_;
  std::vector<bool> alone_;
};

/// The mark that goes with these bytes wherever a test does not choose another.
uint32_t mark_of(const Bytes& data);

/// The two ends of a channel, with one face for both carriers: what a rule says of channels holds for both.
class Lane {
 public:
  Lane(Job& job, uint32_t from, uint32_t to, uint64_t id, Carrier carrier);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  void open_sender();
  void open_receiver();
  void close_sender();
  void close_receiver();

  /// TUTTI_OK: the transport has it; the data may be forgotten (the lane keeps a copy while it must).
  tutti_status_t try_send(const Bytes& data) { return try_send(data, mark_of(data)); }
  tutti_status_t try_send(const Bytes& data, uint32_t mark);
  /// The next message. AGAIN: it is not here yet. MISMATCH: its mark is not that of its bytes.
  tutti_status_t try_receive(Bytes* data);
  tutti_status_t try_receive(Bytes* data, uint32_t* mark);
  /// Drive all ranks meanwhile; false: it took too long, or an error.
  bool send(const Bytes& data);
  bool receive(Bytes* data);
  bool deliver(const Bytes& data);  ///< send, receive, and compare
  /// Sends that are not done yet.
  size_t pending();
  tutti_tp_channel_t* sender() { return sender_; }
  tutti_tp_channel_t* receiver() { return receiver_; }
  uint64_t largest() const { return largest_; }
  void set_largest(uint64_t bytes) { largest_ = bytes; }

 private:
  struct Send {
    Bytes data;
    tutti_tp_op_t op{};
  };
  tutti_status_t send_message(const Bytes& data, uint32_t mark);
  tutti_status_t receive_message(Bytes* data, uint32_t* mark);

  Job& job_;
  uint32_t from_;
  uint32_t to_;
  uint64_t id_;
  Carrier carrier_;
  uint64_t largest_ = 64 << 10;  ///< message that this lane receives
  tutti_tp_channel_t* sender_ = nullptr;
  tutti_tp_channel_t* receiver_ = nullptr;
  std::deque<std::unique_ptr<Send>> sends_;
  std::unique_ptr<tutti_tp_op_t> receive_;
  Bytes landing_;
};

Bytes pattern(size_t bytes, uint32_t seed);
/// A job id that no other job of this machine has.
void fill_job_id(uint8_t id[16]);

}  // namespace tutti::conformance
