// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "bootstrap/auth.hpp"
#include "bootstrap/store.hpp"

namespace tutti {

struct ExchangeOptions {
  Store* store = nullptr;
  const Clock* clock = nullptr;
  Random* random = nullptr;
  int rank = 0;
  int size = 1;
  std::string card;  // opaque; at most 64 KiB
  Deadline deadline;
  uint32_t version = kProtocolVersion;
  uint32_t arity = 8;
  std::string room;  // exchanges of one store are kept apart by this name; "" is the job's first one
};

/// Gives every rank the cards of all: a tree of `arity` over the store in which each rank merges its children's cards and
/// rank 0 publishes the table; a rank makes O(arity) calls, whatever the size. A state machine: step() until done.
///
/// A rank that has had its table may exchange again in the same room: the n-th exchange of each rank meets the n-th of the
/// others, which makes repeated starts of a job possible on one store. At the deadline every rank that waits gets
/// TUTTI_ERR_MISSING_RANK with the names of those missing, also one that came late. Ranks that disagree on the size
/// (TUTTI_ERR_MISMATCH), two processes with one rank (TUTTI_ERR_ENVIRONMENT) and different protocol versions
/// (TUTTI_ERR_VERSION) end the exchange on all ranks with a message that gives both values.
class Exchange {
 public:
  explicit Exchange(ExchangeOptions options);
  ~Exchange();
  /// true: done, cards() has them all. false: call again when the store has something new (Store::wait).
  Result<bool> step();
  const std::vector<std::string>& cards() const noexcept;
  std::vector<std::string> take_cards();
  uint32_t generation() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Key under which the exchange notes that rank has had `n` tables; its prefix, for StoreServer::finished.
std::string exchange_done_prefix(std::string_view room);

}  // namespace tutti
