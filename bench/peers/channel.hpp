// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// How a resident program hears from tools/compare-peers: a folder (variable PEERS_FOLDER) with a FIFO "rank-N" of commands
// for each rank, a FIFO "answers" for all, and a file "board" that the ranks map. FIFOs, so that a program that waits for its
// turn sleeps, whichever launcher started it and whatever that does with descriptors.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peers {

class Channel {
 public:
  // Opens all in `folder`; throws std::runtime_error.
  Channel(std::string folder, int rank, int ranks);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Sleeps until a line comes; nothing at its end, when nobody has the FIFO open for writing any more.
  std::optional<std::string> command();
  // One line, in one write, so that lines of several ranks do not mix; at most 4000 bytes.
  void answer(const std::string& line);
  // Until all ranks are here; yields. No library is involved, so that all start alike.
  void meet();

 private:
  struct Board {
    std::atomic<uint64_t> arrived;
  };
  static_assert(std::atomic<uint64_t>::is_always_lock_free);

  uint64_t ranks_;
  uint64_t meetings_ = 0;
  int commands_ = -1;
  int answers_ = -1;
  Board* board_ = nullptr;
  std::string unread_;
};

// The folder, from the environment; throws if there is none.
std::string channel_folder();

// CPUs that the ranks take in turn (variable PEERS_CPUS, comma-separated); empty: ranks stay where the launcher put them.
std::vector<int> bound_cpus();

// Binds the calling thread; throws std::runtime_error.
void bind_to(int cpu);

}  // namespace peers
