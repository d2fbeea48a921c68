// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/world.hpp"

namespace tutti::sim {

struct Channel;
struct Endpoint;
struct Pipe;

using Action = std::function<void()>;

/// A message of a channel from its post until it was received.
struct Message {
  uint64_t bytes = 0;
  uint32_t mark = 0;
  const std::byte* data = nullptr;  ///< in the sender's memory, in `copy`, or in a slot
  std::vector<std::byte> copy;
  tutti_tp_op_t* op = nullptr;  ///< the sender's, while the message is not buffered
  uint32_t slot = 0;
  bool buffered = false;   ///< `copy` counts in the window
  bool taken = false;      ///< by a receive
  bool cancelled = false;  ///< its memory must not be read any more
};
using MessagePtr = std::shared_ptr<Message>;

/// One use of a channel id: what is between its two ends. Owned by the world, so that it outlives the sender.
struct Pipe {
  uint32_t from = 0;  ///< endpoint numbers
  uint32_t to = 0;
  uint64_t id = 0;
  bool slots = false;
  bool sender_open = false;
  bool sender_closed = false;
  bool receiver_open = false;
  bool receiver_closed = false;
  uint64_t last_arrival_ns = 0;
  std::deque<MessagePtr> arrived;
  std::deque<MessagePtr> unbuffered;  ///< sent, not done: the sender's memory is still in use
  uint64_t buffered_bytes = 0;
  Channel* sender = nullptr;
  Channel* receiver = nullptr;
  std::byte* memory = nullptr;  ///< slots
  std::vector<uint32_t> free_slots;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe();
};
using PipePtr = std::shared_ptr<Pipe>;

/// All uses of one channel id that at least one end has not closed yet. The n-th use of either end meet.
struct Uses {
  uint64_t opened[2] = {0, 0};  ///< by direction
  std::map<uint64_t, PipePtr> pipes;
};

/// What two endpoints have between them.
struct Pair {
  enum class State : uint8_t { kDown, kConnecting, kUp, kGone };
  struct Direction {
    uint64_t busy_until_ns = 0;
    uint64_t last_arrival_ns = 0;
  };
  struct Waiting {
    uint32_t from;
    uint64_t bytes;
    PipePtr order;
    Action arrive;
  };
  State state = State::kDown;
  int gone_cause = TUTTI_TP_GONE_FAILED;
  uint64_t give_up_ns = 0;
  bool wanted[2] = {false, false};  ///< by the lower, by the higher endpoint number
  Direction directions[2];  ///< 0: from the lower endpoint number
  std::vector<Waiting> waiting;  ///< for the connection
};

/// The whole world. Everything but what says otherwise is called with the mutex held.
struct State {
  State(uint64_t seed, Options chosen);

  // ---- time and chance
  void at(uint64_t at_ns, Action action, bool outside = false);
  bool step(std::unique_lock<std::mutex>& lock);
  uint64_t random_u64();
  uint64_t delay_ns();
  bool spurious(Endpoint& endpoint);
  void note(uint64_t what);  ///< into the digest

  // ---- endpoints and links
  Endpoint* endpoint(uint32_t number) const { return number < endpoints.size() ? endpoints[number].get() : nullptr; }
  Pair& pair(uint32_t a, uint32_t b) { return pairs[{std::min(a, b), std::max(a, b)}]; }
  bool separated(uint32_t a, uint32_t b) const;
  void want(uint32_t from, uint32_t to);
  const char* obstacle(uint32_t lower, uint32_t higher, bool* for_ever) const;
  void try_connect(uint32_t lower, uint32_t higher);
  void connected(uint32_t a, uint32_t b);
  /// Bytes go from one to the other, after everything earlier of `order`, and `arrive` happens there, unless the pair is
  /// gone by then.
  void transmit(uint32_t from, uint32_t to, uint64_t bytes, const PipePtr& order, Action arrive);
  void arrival(uint32_t from, uint32_t to, Action arrive);
  /// The pair is no more; `to` hears of it after a while.
  void break_pair(uint32_t from, uint32_t to, int cause, const char* why);
  void tell_gone(uint32_t whom, uint32_t about, int cause, const char* why);
  void goodbye(uint32_t from, uint32_t to);
  void crash(uint32_t rank);
  void partition(const std::vector<uint32_t>& side);
  void heal();

  // ---- channels
  PipePtr open_pipe(uint32_t from, uint32_t to, uint64_t id, int direction, bool slots);
  void close_pipe(Pipe& pipe, int direction);

  struct Event {
    Action action;
    bool outside;  ///< runs without the mutex
  };
  struct Held {
    uint32_t from;
    uint32_t to;
    Action arrive;
  };
  mutable std::mutex mutex;
  Options options;
  uint64_t now_ns = 0;
  uint64_t random_state;
  uint64_t sequence = 0;
  uint64_t steps = 0;
  uint64_t digest = 14695981039346656037u;
  uint64_t partitions = 0;
  std::map<std::pair<uint64_t, uint64_t>, Event> events;  ///< by time, then in the order in which they were made
  std::vector<std::shared_ptr<Endpoint>> endpoints;       ///< by number; never removed
  std::map<std::pair<uint32_t, uint32_t>, Pair> pairs;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, Uses> channels;
  std::vector<bool> awake;    ///< by rank
  std::vector<bool> apart;    ///< by rank: on the other side of the partition
  std::vector<bool> crashed;  ///< by rank
  std::vector<Held> held;
};

}  // namespace tutti::sim
