// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace tutti {

/// What messages between two ranks cost, and what is done with them.
struct Price {
  double latency_ns = 1000;  ///< of one message
  double ns_per_byte = 0.2;  ///< of one way
  double message_ns = 50;    ///< of the processor, for each message, at either end
  double both_ways = 1;      ///< times ns_per_byte: what a byte there and one back at the same time cost; 2 where processors copy
  double fold_ns_per_byte = 0.1;

  /// One message.
  double one_way_ns(double bytes) const noexcept { return latency_ns + 2 * message_ns + bytes * ns_per_byte; }
  /// A rank sends one message and gets one; `bytes` each.
  double exchange_ns(double bytes) const noexcept { return latency_ns + each_exchange_ns(bytes); }
  /// Of one exchange of several at the same time.
  double each_exchange_ns(double bytes) const noexcept { return 2 * message_ns + bytes * ns_per_byte * both_ways; }
  double fold_ns(double bytes) const noexcept { return bytes * fold_ns_per_byte; }
};

/// How ranks share the processors of their nodes.
struct Crowd {
  double cpus_per_rank = INFINITY;  ///< where there are the fewest
  // Where a processor has several ranks:
  double switch_ns = 0;  ///< more latency for each rank that is busy at the same time, beyond one for each processor
  double wake_ns = 0;    ///< more latency of every message
};

/// Prices of a job's network for the cost formulas (alpha-beta-gamma, in two tiers: between ranks of a node, which share its
/// processors, and between nodes, where all ranks of a node share its link). Made for one placement of ranks; the same on every
/// rank.
class CostModel {
 public:
  /// node_of[rank]: numbers from 0. step_ns: the engine's own cost of a step without a message.
  CostModel(std::span<const uint32_t> node_of, const Price& near, const Price& far, double step_ns, const Crowd& crowd = {});
  /// A job whose ranks are all as near to each other, each with a processor.
  static CostModel uniform(uint32_t size, const Price& price, double step_ns);

  double step_ns() const noexcept { return step_ns_; }
  /// Of one message at a time within a node.
  const Price& near() const noexcept { return near_; }
  /// Likewise between nodes; near() where there is one node.
  const Price& far() const noexcept { return node_count_ > 1 ? far_ : near_; }
  uint32_t node_count() const noexcept { return node_count_; }
  uint32_t ranks_per_node() const noexcept { return ranks_per_node_; }
  std::span<const uint32_t> node_of() const noexcept { return node_of_; }

  /// Latency of messages between all ranks at once.
  double meeting_ns() const noexcept { return far().latency_ns + switch_ns_ * (load(ranks_per_node_) - 1); }
  /// All ranks exchange with those at distance 2^round.
  Price exchange(uint32_t round) const noexcept { return shared(crossing(round), ranks_per_node_); }
  /// Likewise so many of them, and the others wait.
  Price exchange_of(uint32_t ranks, uint32_t round) const noexcept {
    const double share = static_cast<double>(ranks) / static_cast<double>(node_of_.size());
    return shared(crossing(round), static_cast<uint32_t>(std::ceil(share * ranks_per_node_)));
  }
  /// All ranks send to the next one, as round a ring.
  Price neighbour() const noexcept { return exchange(0); }
  /// One rank of each 2^(round + 1) has a message for the one at distance 2^round, as in a binomial tree.
  Price tree_edge(uint32_t round) const noexcept {
    const uint32_t edges = std::max(1u, round < 31 ? ranks_per_node_ >> (round + 1) : 0);
    return shared(std::min(crossing(round), 2 * edges), std::min(2 * edges, ranks_per_node_));
  }
  /// A byte more of what passes through a tree or chain of ranks, chunk by chunk: so many messages that carry it have an end at
  /// one rank, at most.
  double stream_ns_per_byte(double ends) const noexcept {
    const double others = static_cast<double>(node_of_.size()) - 1;
    if (node_count_ > 1) return far_.ns_per_byte * std::max(1.0, ends - 1);
    return near_.ns_per_byte * std::max(std::min(ends, others), 2 * others / processors_);
  }
  /// Likewise what is folded, so many times at one rank.
  double stream_fold_ns_per_byte(double folds) const noexcept {
    const double others = static_cast<double>(node_of_.size()) - 1;
    return near_.fold_ns_per_byte * std::max(std::min(folds, others), node_count_ > 1 ? 0 : others / processors_);
  }
  /// Time for `bytes` between one rank and each of the others: all pass that rank's node.
  double star_ns(double bytes) const noexcept;
  /// Time for `bytes` from each rank to each other: what leaves a node shares its link.
  double all_pairs_ns(double bytes) const noexcept;
  /// Time to fold `bytes` on each rank.
  double all_folds_ns(double bytes) const noexcept;

 private:
  /// Ranks of one node, at most, that have their peer at distance 2^round on another.
  uint32_t crossing(uint32_t round) const noexcept {
    return crossings_.empty() ? 0 : crossings_[std::min<size_t>(round, crossings_.size() - 1)];
  }
  /// So many ranks of a node are busy at the same time.
  double load(double ranks) const noexcept { return std::max(1.0, ranks / processors_); }
  Price shared(uint32_t senders, uint32_t busy) const noexcept {
    const double crowded = load(busy);
    const double turns_ns = switch_ns_ * (crowded - 1);
    if (senders == 0) {
      return {near_.latency_ns + turns_ns, near_.ns_per_byte * crowded, near_.message_ns * crowded, near_.both_ways,
              near_.fold_ns_per_byte * crowded};
    }
    return {far_.latency_ns + turns_ns, std::max(far_.ns_per_byte * senders, near_.ns_per_byte * crowded),
            far_.message_ns * crowded, far_.both_ways, far_.fold_ns_per_byte * crowded};
  }

  Price near_;
  Price far_;
  double step_ns_;
  double switch_ns_;
  double processors_ = INFINITY;  ///< of a node
  std::vector<uint32_t> node_of_;
  uint32_t node_count_ = 1;
  uint32_t ranks_per_node_ = 1;
  std::vector<uint32_t> crossings_;  ///< by round
};

}  // namespace tutti
