// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule/network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabric.hpp"

namespace tutti {
namespace {

Status check_spec(const NetworkSpec& spec, uint32_t rank_count) {
  if (rank_count == 0) return error(TUTTI_ERR_CONFIG, "a job has one rank at least");
  if (spec.ranks_per_node == 0) return error(TUTTI_ERR_CONFIG, "ranks_per_node: at least 1");
  if (!(spec.nic_gbytes_per_s > 0)) return error(TUTTI_ERR_CONFIG, "nic_gbytes_per_s: {} is not above 0", spec.nic_gbytes_per_s);
  if (spec.rank_gbytes_per_s < 0) return error(TUTTI_ERR_CONFIG, "rank_gbytes_per_s: {} is below 0", spec.rank_gbytes_per_s);
  if (spec.memory_gbytes_per_s < 0) {
    return error(TUTTI_ERR_CONFIG, "memory_gbytes_per_s: {} is below 0", spec.memory_gbytes_per_s);
  }
  if (spec.prices.switch_ns < 0) return error(TUTTI_ERR_CONFIG, "switch_ns: {} is below 0", spec.prices.switch_ns);
  if (spec.prices.segment_bytes == 0) return error(TUTTI_ERR_CONFIG, "segment_bytes: at least 1");
  for (const Reach* reach : {&spec.prices.node, &spec.prices.network}) {
    // The verifier proves that two are enough, no algorithm need run with one.
    if (reach->slots < 2) return error(TUTTI_ERR_CONFIG, "slots: at least 2, not {}", reach->slots);
    if (reach->latency_ns < 0 || reach->overhead_ns < 0 || reach->copy_ns_per_byte < 0) {
      return error(TUTTI_ERR_CONFIG, "latency_ns, overhead_ns and copy_ns_per_byte: none below 0");
    }
  }
  return Status();
}

}  // namespace

/// Links: each rank's way out, each rank's way in, each node's cable out, in, its memory; then the fabric's.
Network::Network(NetworkSpec spec, uint32_t rank_count, std::unique_ptr<Fabric> fabric)
    : spec_(std::move(spec)),
      rank_count_(rank_count),
      node_count_((rank_count + spec_.ranks_per_node - 1) / spec_.ranks_per_node),
      fabric_(std::move(fabric)) {
  derive_shape();
}

Network::~Network() = default;
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;

Result<Network> Network::make(NetworkSpec spec, uint32_t rank_count) {
  TUTTI_TRY(check_spec(spec, rank_count));
  const uint32_t nodes = (rank_count + spec.ranks_per_node - 1) / spec.ranks_per_node;
  Result<std::unique_ptr<Fabric>> fabric = make_fabric(spec, nodes);
  if (!fabric.ok()) return fabric.status();
  if ((*fabric)->capacity() < nodes) {
    return error(TUTTI_ERR_CONFIG, "topology {} has {} nodes of {} ranks: no room for {} ranks", spec.name, (*fabric)->capacity(),
                 spec.ranks_per_node, rank_count);
  }
  return Network(std::move(spec), rank_count, std::move(*fabric));
}

uint32_t Network::capacity() const noexcept {
  const uint64_t ranks = uint64_t{fabric_->capacity()} * spec_.ranks_per_node;
  return fabric_->capacity() == UINT32_MAX || ranks > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(ranks);
}

uint32_t Network::link_count() const noexcept { return 2 * rank_count_ + 3 * node_count_ + fabric_->link_count(); }

double Network::ps_per_byte(uint32_t link) const {
  if (link < 2 * rank_count_) return ps_per_byte_at(spec_.rank_gbytes_per_s);
  const uint32_t of_node = link - 2 * rank_count_;
  if (of_node < 2 * node_count_) return ps_per_byte_at(spec_.nic_gbytes_per_s);
  if (of_node < 3 * node_count_) return ps_per_byte_at(spec_.memory_gbytes_per_s);
  return fabric_->ps_per_byte(of_node - 3 * node_count_);
}

std::string Network::link_name(uint32_t link) const {
  if (link < 2 * rank_count_) return fmt::format("rank {}, {}", link % rank_count_, link < rank_count_ ? "out" : "in");
  const uint32_t of_node = link - 2 * rank_count_;
  if (of_node >= 3 * node_count_) return fabric_->link_name(of_node - 3 * node_count_);
  constexpr const char* kKinds[] = {"out", "in", "memory"};
  return fmt::format("node {}, {}", of_node % node_count_, kKinds[of_node / node_count_]);
}

void Network::route(uint32_t from, uint32_t to, Route& route) const {
  const uint32_t source = from / spec_.ranks_per_node;
  const uint32_t target = to / spec_.ranks_per_node;
  const uint32_t nodes = 2 * rank_count_;
  route.links.clear();
  route.within_node = source == target;
  if (route.within_node) {
    route.latency_ns = spec_.prices.node.latency_ns;
    if (spec_.memory_gbytes_per_s > 0) route.links.push_back(nodes + 2 * node_count_ + source);
    return;
  }
  route.latency_ns = spec_.prices.network.latency_ns;
  if (spec_.rank_gbytes_per_s > 0) route.links.push_back(from);
  route.links.push_back(nodes + source);
  const size_t first = route.links.size();
  route.latency_ns += fabric_->route(source, target, route.links);
  for (size_t n = first; n < route.links.size(); ++n) route.links[n] += nodes + 3 * node_count_;
  route.links.push_back(nodes + node_count_ + target);
  if (spec_.rank_gbytes_per_s > 0) route.links.push_back(rank_count_ + to);
}

void Network::derive_shape() {
  shape_ = Shape::flat(rank_count_);
  const auto add_level = [&](auto group_of_node) {
    std::vector<uint32_t> level(rank_count_);
    for (uint32_t rank = 0; rank < rank_count_; ++rank) level[rank] = group_of_node(rank / spec_.ranks_per_node);
    const uint32_t groups = level.back() + 1;
    const uint32_t finer = shape_.group_of.empty() ? rank_count_ : shape_.group_of.back().back() + 1;
    if (groups > 1 && groups < finer) shape_.group_of.push_back(std::move(level));
  };
  add_level([](uint32_t node) { return node; });
  for (uint32_t n = 0; n < fabric_->level_count(); ++n) add_level([&](uint32_t node) { return fabric_->group(n, node); });
}

CostModel Network::cost_model() const {
  const auto price = [&](const Reach& reach, double latency_ns, double link_ns_per_byte) {
    return Price{latency_ns, 2 * reach.copy_ns_per_byte + link_ns_per_byte, reach.overhead_ns + spec_.prices.step_ns, 1,
                 spec_.prices.reduce_ns_per_byte};
  };
  std::vector<uint32_t> node_of(rank_count_);
  for (uint32_t rank = 0; rank < rank_count_; ++rank) node_of[rank] = rank / spec_.ranks_per_node;
  // Between the ranks that are furthest apart by number: hops count for most messages, so they count here for all.
  Route longest;
  if (node_count_ > 1) route(0, rank_count_ - 1, longest);
  return {node_of, price(spec_.prices.node, spec_.prices.node.latency_ns, 0),
          price(spec_.prices.network, longest.latency_ns, 1 / spec_.nic_gbytes_per_s), spec_.prices.step_ns};
}

}  // namespace tutti
