// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "pages.hpp"

namespace tutti::simulator {
namespace {

/// Shown where neither the file nor the command line says how many ranks there are.
constexpr uint32_t kRanksOfEndless = 64;
constexpr uint32_t kMaxRanksShown = 65536;

/// Ranks that rank 0 reaches over as many links and with the same latency.
struct Ring {
  uint32_t ranks = 0;
  double ps_per_byte = 0;  ///< of the slowest link
  uint32_t example = 0;
};

std::map<std::pair<double, size_t>, Ring> rings(const Network& network) {
  std::map<std::pair<double, size_t>, Ring> found;
  Network::Route route;
  for (uint32_t to = 1; to < network.rank_count(); ++to) {
    network.route(0, to, route);
    Ring& ring = found[{route.latency_ns, route.links.size()}];
    if (ring.ranks++ > 0) continue;
    ring.example = to;
    for (const uint32_t link : route.links) ring.ps_per_byte = std::max(ring.ps_per_byte, network.ps_per_byte(link));
  }
  return found;
}

std::string fabric_text(const NetworkSpec& spec) {
  if (const auto* tree = std::get_if<FatTree>(&spec.fabric)) {
    std::string text = "fat tree";
    for (const FatTree::Level& level : tree->levels) {
      text += fmt::format(", {} a switch", level.radix);
      if (&level != &tree->levels.back()) text += fmt::format(" ({}:1 upwards)", level.oversubscription);
    }
    return text;
  }
  if (const auto* dragonfly = std::get_if<Dragonfly>(&spec.fabric)) {
    return fmt::format("dragonfly, {} groups of {} routers of {} nodes", dragonfly->groups, dragonfly->routers, dragonfly->hosts);
  }
  if (const auto* torus = std::get_if<Torus>(&spec.fabric)) {
    return fmt::format("torus, {} nodes", fmt::join(torus->dimensions, " x "));
  }
  return "flat: all nodes at one switch";
}

std::string groups_text(const Network& network) {
  std::string text;
  for (const std::vector<uint32_t>& level : network.shape().group_of) {
    text += fmt::format("{}{} groups", text.empty() ? "" : " in ", level.back() + 1);
  }
  return text.empty() ? "not at all" : text;
}

std::string as_json(const Network& network, uint32_t capacity) {
  nlohmann::ordered_json page = {{"name", network.spec().name},
                                 {"fabric", fabric_text(network.spec())},
                                 {"ranks", network.rank_count()},
                                 {"nodes", network.node_count()},
                                 {"ranks_per_node", network.spec().ranks_per_node}};
  if (capacity != UINT32_MAX) page["capacity"] = capacity;
  page["groups"] = nlohmann::ordered_json::array();
  for (const std::vector<uint32_t>& level : network.shape().group_of) page["groups"].push_back(level.back() + 1);
  page["from_rank_0"] = nlohmann::ordered_json::array();
  for (const auto& [distance, ring] : rings(network)) {
    page["from_rank_0"].push_back({{"ranks", ring.ranks}, {"latency_ns", distance.first}, {"links", distance.second}});
  }
  return page.dump(2) + "\n";
}

}  // namespace

Result<std::string> topology_page(const NetworkSpec& spec, uint32_t ranks, bool json) {
  const Result<Network> empty = Network::make(spec, 1);
  if (!empty.ok()) return empty.status();
  const uint32_t capacity = empty->capacity();
  if (ranks == 0) ranks = capacity == UINT32_MAX ? kRanksOfEndless : std::min(capacity, kMaxRanksShown);
  const Result<Network> network = Network::make(spec, ranks);
  if (!network.ok()) return network.status();
  if (json) return as_json(*network, capacity);
  std::string text = fmt::format("{}\n  fabric      {}\n", spec.name, fabric_text(spec));
  text += fmt::format("  room        {}\n", capacity == UINT32_MAX ? "no limit" : fmt::format("{} ranks", capacity));
  text += fmt::format("  here        {} ranks on {} nodes, {} a node\n", ranks, network->node_count(), spec.ranks_per_node);
  text += fmt::format("  cables      {} GB/s a node, each way\n", spec.nic_gbytes_per_s);
  text += fmt::format("  nesting     {}\n", groups_text(*network));
  text += fmt::format("From rank 0\n  {:>8} {:>12} {:>6} {:>12}  {}\n", "ranks", "latency", "links", "slowest", "as");
  for (const auto& [distance, ring] : rings(*network)) {
    const std::string speed = ring.ps_per_byte > 0 ? fmt::format("{:.4g} GB/s", 1000 / ring.ps_per_byte) : "copies";
    text += fmt::format("  {:>8} {:>12} {:>6} {:>12}  rank {}\n", ring.ranks, format_time(distance.first), distance.second, speed,
                        ring.example);
  }
  return text;
}

}  // namespace tutti::simulator
