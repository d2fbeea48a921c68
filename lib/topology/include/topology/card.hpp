// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "topology/topology.hpp"

/// How all ranks of a job come to the same Topology: each sends its card to all, and all read all cards.
namespace tutti {

/// This rank's place, and rank 0's file (setting `topology_file`) for all. What is wrong here (a bad setting, a file that cannot be
/// read or does not suit a job of `size` ranks) travels in the card, so that no rank waits for one that has given up.
/// host_identity: as in Place::host.
std::string make_topology_card(const Config& config, const std::string& host_identity, uint32_t rank, uint32_t size);

struct JobTopology {
  Topology found;  ///< what ranks found; the settings `node_id` and `package_id` count
  Topology used;   ///< the same, or what rank 0's file says instead
};

/// cards[rank], of all ranks. TUTTI_ERR_CONFIG, the same on every rank, when a rank had something to complain of;
/// TUTTI_ERR_PROTOCOL that names the rank when a card is none.
Result<JobTopology> read_topology_cards(std::span<const std::string> cards);

}  // namespace tutti
