// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace tutti {

Topology::Topology(std::vector<Place> places) : places_(std::move(places)) {
  std::map<std::string_view, uint32_t> numbers;
  for (const Place& place : places_) {
    nodes_.push_back(numbers.emplace(place.host, static_cast<uint32_t>(numbers.size())).first->second);
  }
  node_count_ = static_cast<uint32_t>(numbers.size());
}

uint32_t NestingLevel::group_count() const { return group_of.empty() ? 0 : *std::max_element(group_of.begin(), group_of.end()) + 1; }

namespace {

/// Finer ones begin with coarser ones, so that groups nest whatever the machine calls them.
using GroupKey = std::tuple<uint32_t, int, int>;  // node, package, NUMA node

template <class KeyOf>
NestingLevel level_of(std::string_view name, std::span<const uint32_t> members, KeyOf key_of) {
  NestingLevel level{name, {}};
  std::map<GroupKey, uint32_t> groups;
  for (const uint32_t rank : members) {
    level.group_of.push_back(groups.emplace(key_of(rank), static_cast<uint32_t>(groups.size())).first->second);
  }
  return level;
}

bool all_bound(const Topology& topology, std::span<const uint32_t> members, int Place::*part) {
  return std::all_of(members.begin(), members.end(),
                     [&](uint32_t rank) { return topology.place(rank).*part != kSpread; });
}

}  // namespace

std::vector<NestingLevel> nesting_of(const Topology& topology, std::span<const uint32_t> members) {
  const bool in_packages = all_bound(topology, members, &Place::package);
  const auto package_of = [&](uint32_t rank) { return in_packages ? topology.place(rank).package : kSpread; };
  std::vector<NestingLevel> candidates;
  if (all_bound(topology, members, &Place::numa)) {
    candidates.push_back(level_of("NUMA node", members, [&](uint32_t rank) {
      return GroupKey{topology.node(rank), package_of(rank), topology.place(rank).numa};
    }));
  }
  if (in_packages) {
    candidates.push_back(
        level_of("package", members, [&](uint32_t rank) { return GroupKey{topology.node(rank), package_of(rank), kSpread}; }));
  }
  candidates.push_back(
      level_of("node", members, [&](uint32_t rank) { return GroupKey{topology.node(rank), kSpread, kSpread}; }));
  std::vector<NestingLevel> levels;
  for (size_t n = 0; n < candidates.size(); ++n) {
    const uint32_t groups = candidates[n].group_count();
    if (groups <= 1 || groups == members.size()) continue;
    // Nested levels with as many groups are equal.
    if (n + 1 < candidates.size() && candidates[n + 1].group_count() == groups) continue;
    levels.push_back(std::move(candidates[n]));
  }
  return levels;
}

double cpus_per_rank(const Topology& found, std::span<const uint32_t> members) {
  struct Machine {
    CpuList cpus;
    size_t ranks = 0;
  };
  std::map<std::string_view, Machine> machines;
  for (const uint32_t rank : members) {
    const Place& place = found.place(rank);
    Machine& machine = machines[place.machine];
    ++machine.ranks;
    // Mostly all ranks of a machine name the same ones.
    if (std::includes(machine.cpus.begin(), machine.cpus.end(), place.cpus.begin(), place.cpus.end())) continue;
    machine.cpus.insert(machine.cpus.end(), place.cpus.begin(), place.cpus.end());
    std::sort(machine.cpus.begin(), machine.cpus.end());
    machine.cpus.erase(std::unique(machine.cpus.begin(), machine.cpus.end()), machine.cpus.end());
  }
  double fewest = INFINITY;
  for (const auto& [name, machine] : machines) {
    if (!machine.cpus.empty()) fewest = std::min(fewest, static_cast<double>(machine.cpus.size()) / static_cast<double>(machine.ranks));
  }
  return fewest;
}

bool is_oversubscribed(const Topology& found, uint32_t rank) {
  const Place& self = found.place(rank);
  if (self.cpus.empty()) return true;
  std::map<CpuList, size_t> ranks_of;  // on this machine; mostly one set of CPUs, or one CPU for each rank
  for (const Place& other : found.places()) {
    if (other.machine == self.machine) ++ranks_of[other.cpus];
  }
  CpuList usable;
  size_t on_machine = 0;
  for (const auto& [cpus, ranks] : ranks_of) {
    usable.insert(usable.end(), cpus.begin(), cpus.end());
    on_machine += ranks;
    if (!is_within(self.cpus, cpus)) continue;
    size_t on_these = 0;
    for (const auto& [others, count] : ranks_of) on_these += is_within(others, cpus) ? count : 0;
    if (on_these > cpus.size()) return true;
  }
  std::sort(usable.begin(), usable.end());
  return on_machine > static_cast<size_t>(std::unique(usable.begin(), usable.end()) - usable.begin());
}

}  // namespace tutti
