// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "arena.hpp"
#include "identity.hpp"

namespace tutti::shm {

/// Something readable once a process has died: its pidfd, or a socket to it.
struct Watch {
  Fd fd;
  uint32_t process = 0;
};

/// What the ranks of one process share of their node: the mapping and the descriptors. Immutable once its head has set it up;
/// freed with its last endpoint, so that no thread ever writes to a descriptor number that somebody else has got since.
struct Node {
  Roster roster;
  uint32_t process = 0;  // ours
  uint32_t slots = 0;
  uint64_t slot_bytes = 0;
  std::unique_ptr<Arena> arena;
  std::vector<Fd> bells;        // eventfd of each rank of the node
  std::vector<Watch> watches;   // one for each other process that takes part
  std::vector<uint8_t> seated;  // by process: it takes part

  bool is_seated(uint32_t index) const { return seated[roster.process_of[index]] != 0; }

  /// Wakes the rank if it sleeps. To be called after what it may wait for was published with seq_cst. Returns whether it was
  /// necessary.
  bool ring(uint32_t index) const {
    std::atomic<uint32_t>& sleeping = arena->control(index).bell.sleeping;
    if (sleeping.load(std::memory_order_seq_cst) == 0) [[likely]]
      return false;
    return wake(index);
  }
  /// Makes the rank look at the rare things: notices, leaves, deaths, channels.
  bool call_attention(uint32_t index) const {
    arena->control(index).bell.attention.fetch_add(1, std::memory_order_seq_cst);
    return ring(index);
  }
  /// Makes the rank's descriptor readable.
  void write_bell(uint32_t index) const;

  RankState state(uint32_t index) const {
    return static_cast<RankState>(arena->control(index).presence.state.load(std::memory_order_seq_cst));
  }
  /// Moves a rank to left or dead, and tells all others. Only the first call for a rank does anything.
  void depart(uint32_t index, RankState state) const;

 private:
  bool wake(uint32_t index) const;
};

}  // namespace tutti::shm
