// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

/// What messages between two ranks cost.
struct Price {
  double latency_ns = 1000;  ///< of one message
  double ns_per_byte = 0.2;
  double message_ns = 50;  ///< of the processor, for each message, at either end

  /// A rank sends one message and gets one; `bytes` each.
  double exchange_ns(double bytes) const noexcept { return latency_ns + 2 * message_ns + bytes * ns_per_byte; }
};

/// Prices of a job's network for the cost formulas (alpha-beta-gamma, in two tiers: between ranks of a node, which do not hinder
/// each other, and between nodes, where all ranks of a node share its link). Made for one placement of ranks; the same on every
/// rank.
class CostModel {
 public:
  /// node_of[rank]: numbers from 0. step_ns: the engine's own cost of a step without a message.
  CostModel(std::span<const uint32_t> node_of, const Price& near, const Price& far, double reduce_ns_per_byte, double step_ns);
  /// A job whose ranks are all as near to each other.
  static CostModel uniform(uint32_t size, const Price& price, double reduce_ns_per_byte, double step_ns);

  double step_ns() const noexcept { return step_ns_; }
  double reduce_ns_per_byte() const noexcept { return reduce_ns_per_byte_; }
  const Price& near() const noexcept { return near_; }
  /// Of one message at a time between nodes; near() where there is one node.
  const Price& far() const noexcept { return node_count_ > 1 ? far_ : near_; }
  uint32_t node_count() const noexcept { return node_count_; }
  uint32_t ranks_per_node() const noexcept { return ranks_per_node_; }
  std::span<const uint32_t> node_of() const noexcept { return node_of_; }

  /// All ranks exchange with those at distance 2^round.
  Price exchange(uint32_t round) const noexcept { return shared(crossing(round)); }
  /// All ranks send to the next one, as round a ring.
  Price neighbour() const noexcept { return exchange(0); }
  /// One rank of each 2^(round + 1) exchanges with the one at distance 2^round, as in a binomial tree.
  Price tree_edge(uint32_t round) const noexcept {
    return shared(std::min(crossing(round), std::max(1u, round < 32 ? ranks_per_node_ >> round : 0)));
  }
  /// Time for `bytes` between one rank and each of the others: all pass that rank's node.
  double star_ns(double bytes) const noexcept;
  /// Time for `bytes` from each rank to each other: what leaves a node shares its link.
  double all_pairs_ns(double bytes) const noexcept;

 private:
  /// Ranks of one node, at most, that have their peer at distance 2^round on another.
  uint32_t crossing(uint32_t round) const noexcept {
    return crossings_.empty() ? 0 : crossings_[std::min<size_t>(round, crossings_.size() - 1)];
  }
  Price shared(uint32_t senders) const noexcept {
    if (senders == 0) return near_;
    return {far_.latency_ns, std::max(far_.ns_per_byte * senders, near_.ns_per_byte), far_.message_ns};
  }

  Price near_;
  Price far_;
  double reduce_ns_per_byte_;
  double step_ns_;
  std::vector<uint32_t> node_of_;
  uint32_t node_count_ = 1;
  uint32_t ranks_per_node_ = 1;
  std::vector<uint32_t> crossings_;  ///< by round
};

}  // namespace tutti
