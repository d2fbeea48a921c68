// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <unistd.h>

namespace tutti::shm {

void Node::write_bell(uint32_t index) const {
  const uint64_t one = 1;
  // The descriptor does not block; a full counter is readable, which is all that is wanted.
  [[maybe_unused]] const ssize_t written = ::write(bells[index].get(), &one, sizeof(one));
}

bool Node::wake(uint32_t index) const {
  // One of those who see it asleep pays the system call.
  if (arena->control(index).bell.sleeping.exchange(0, std::memory_order_seq_cst) == 0) return false;
  write_bell(index);
  return true;
}

void Node::depart(uint32_t index, RankState state) const {
  std::atomic<uint32_t>& word = arena->control(index).presence.state;
  uint32_t before = word.load(std::memory_order_seq_cst);
  do {
    if (before >= static_cast<uint32_t>(RankState::kLeft)) return;
  } while (!word.compare_exchange_weak(before, static_cast<uint32_t>(state), std::memory_order_seq_cst));
  for (uint32_t other = 0; other < roster.ranks.size(); ++other) {
    if (other != index && is_seated(other)) call_attention(other);
  }
}

}  // namespace tutti::shm
