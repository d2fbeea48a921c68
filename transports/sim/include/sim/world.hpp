// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tutti/transport.h"

/// The table of this transport, for hosts that link it.
extern "C" const tutti_tp_table_t* tutti_sim_transport_entry(uint32_t host_abi_version);

namespace tutti::sim {

struct State;

struct Options {
  uint32_t size = 2;  ///< ranks are below this
  uint64_t min_delay_ns = 1'000;
  uint64_t max_delay_ns = 20'000;
  uint64_t bandwidth_mbps = 10'000;  ///< of each direction of each pair, 10^6 bytes a second; 0: unlimited
  /// Each message has a delay of its own, and messages of different channels overtake each other. Off: everything from one
  /// rank to another stays in order. Within a channel nothing is ever reordered.
  bool reorder = true;
  /// Bytes of messages that a channel buffers (each counts 64 more than its length). 0: a send is done when a receive took it.
  uint64_t window_bytes = 0;
  uint32_t slots = TUTTI_TP_MIN_SLOTS;
  uint64_t slot_bytes = 4096;
  /// Of every hundred calls that could be served, so many answer AGAIN.
  uint32_t again_percent = 0;
  /// What the link of two ranks has, lower rank first; 0: no link. Empty: messages and slots.
  std::function<uint32_t(uint32_t lower, uint32_t higher)> caps;
};

/// A network in virtual time. Pass its address as `world` to the transport's open; any number of endpoints, several of one
/// rank included (contexts of different jobs), live in one World. One thread steps the World and drives all ranks; what
/// happens then depends on the seed and on the order of calls alone. (Calls from several threads are safe, and in no
/// particular order.) A World outlives its endpoints.
class World {
 public:
  World(uint64_t seed, Options options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Lets the next thing happen and moves the time there. False: nothing will happen any more unless a rank acts: if all
  /// ranks wait, that is a deadlock.
  bool step();
  uint64_t now_ns() const;
  /// When the next step will be; UINT64_MAX: never.
  uint64_t next_ns() const;
  /// Steps so far, and a digest of what happened in them: equal for equal runs.
  uint64_t steps() const;
  uint64_t digest() const;

  uint64_t random_u64();
  void random(void* bytes, size_t count);

  /// Runs `action` from step() when the time has come: a timer of a rank, or an event of a test.
  void call_at(uint64_t at_ns, std::function<void()> action);

  /// Whether something happened at one of the rank's endpoints since it was asked last. A rank need be driven only then:
  /// that it gets by with so little shows that it looks at everything it is woken for.
  bool take_awake(uint32_t rank);

  /// The rank stops here and now. None of its memory is touched again; its peers see its links break. Its endpoints must
  /// still be closed, to free them. (A rank that ends in order just closes its endpoints.)
  void crash(uint32_t rank);
  bool crashed(uint32_t rank) const;

  /// What is sent between the ranks of `side` and all others is held back, until heal() or, for links that exist, until
  /// the host's setting heartbeat_timeout has passed: then these links break.
  void partition(const std::vector<uint32_t>& side);
  void heal();

 private:
  friend State& state_of(void* world);
  std::unique_ptr<State> state_;
};

}  // namespace tutti::sim
