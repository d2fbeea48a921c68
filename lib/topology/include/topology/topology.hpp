// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "topology/place.hpp"

namespace tutti {

/// Where all ranks of a job run. The same on every rank, since it is made of what all have sent to all.
class Topology {
 public:
  Topology() = default;
  /// places[rank].
  explicit Topology(std::vector<Place> places);

  uint32_t size() const noexcept { return static_cast<uint32_t>(places_.size()); }
  const Place& place(uint32_t rank) const { return places_[rank]; }
  const std::vector<Place>& places() const noexcept { return places_; }
  /// Of a rank: dense, in order of the lowest rank of each node.
  uint32_t node(uint32_t rank) const { return nodes_[rank]; }
  uint32_t node_count() const noexcept { return node_count_; }

  bool operator==(const Topology&) const = default;

 private:
  std::vector<Place> places_;
  std::vector<uint32_t> nodes_;
  uint32_t node_count_ = 0;
};

/// How ranks nest in groups, at one level.
struct NestingLevel {
  std::string_view name;           ///< "NUMA node", "package", "node"
  std::vector<uint32_t> group_of;  ///< by index into the members: dense, in order of the lowest of each group

  uint32_t group_count() const;
};

/// The levels that say something about `members` (ranks of the job, in the order of their communicator), innermost first. Pure:
/// the same on every member.
///
/// NUMA nodes and packages count only where every member is bound within one: a level must be there for all or for none. Left out
/// are levels with one group, levels with a group for each member, and levels that are equal to the next outer one. So ranks that
/// are all on one node, or each on its own, and not bound have no level at all. Each group lies within one group of the next level.
std::vector<NestingLevel> nesting_of(const Topology& topology, std::span<const uint32_t> members);

/// Whether `rank` has to share its CPUs with another, by what the ranks' affinities allow: there are more ranks than CPUs on its
/// machine, or more bound to a set with its CPUs than there are CPUs in the set. `found` is what ranks found, not what was imagined for them.
bool is_oversubscribed(const Topology& found, uint32_t rank);

/// CPUs that each of `members` has on the machine where it has the fewest, by what their affinities allow; may be below 1.
/// INFINITY where nobody knows.
double cpus_per_rank(const Topology& found, std::span<const uint32_t> members);

}  // namespace tutti
