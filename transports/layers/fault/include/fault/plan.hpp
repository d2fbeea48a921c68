// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tutti/transport.h"

namespace tutti::fault {

struct Rules {
  uint32_t again_percent = 0;  ///< of calls that could be served, so many answer AGAIN
  uint32_t delay_percent = 0;  ///< of messages, so many are kept back for a while
  uint64_t max_delay_ns = 0;
  /// A link that breaks for both ends once `rank` has sent so many messages to `peer`.
  struct Cut {
    uint32_t rank;
    uint32_t peer;
    uint64_t after_messages;
  };
  std::vector<Cut> cuts;
};

/// Another transport, with faults. Its endpoints are opened through table(), with the plan's address as `world`; the plan
/// outlives them. What goes wrong on an endpoint depends on the seed, its rank, and the calls made on it.
class Plan {
 public:
  /// `inner_world` is passed on to the transport beneath.
  Plan(uint64_t seed, const tutti_tp_table_t* inner, void* inner_world, Rules rules);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  const tutti_tp_table_t* table() const { return &table_; }
  const tutti_tp_table_t& inner() const { return *inner_; }
  void* inner_world() const { return inner_world_; }
  const Rules& rules() const { return rules_; }
  uint64_t seed() const { return seed_; }

 private:
  uint64_t seed_;
  const tutti_tp_table_t* inner_;
  void* inner_world_;
  Rules rules_;
  tutti_tp_table_t table_{};
};

}  // namespace tutti::fault
