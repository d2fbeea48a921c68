// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tutti {
namespace {

constexpr uint64_t kMaxNodes = uint64_t{1} << 24;

uint32_t saturated(uint64_t nodes) { return nodes > kMaxNodes ? UINT32_MAX : static_cast<uint32_t>(nodes); }

class CrossbarFabric final : public Fabric {
 public:
  explicit CrossbarFabric(const Crossbar& spec) : spec_(spec) {}
  uint32_t capacity() const override { return UINT32_MAX; }
  uint32_t link_count() const override { return 0; }
  double ps_per_byte(uint32_t) const override { return 0; }
  std::string link_name(uint32_t) const override { return {}; }
  double route(uint32_t, uint32_t, std::vector<uint32_t>&) const override { return spec_.hop_ns; }
  uint32_t group(uint32_t, uint32_t) const override { return 0; }

 private:
  Crossbar spec_;
};

/// Links of a level: up and down of each switch, up first.
class FatTreeFabric final : public Fabric {
 public:
  FatTreeFabric(const FatTree& spec, double nic_gbytes_per_s, uint32_t node_count) : spec_(spec) {
    uint64_t below = 1;
    double gbytes_per_s = nic_gbytes_per_s;
    uint32_t links = 0;
    for (const FatTree::Level& level : spec.levels) {
      below = std::min(below * level.radix, kMaxNodes * 2);
      nodes_below_.push_back(below);
      first_link_.push_back(links);
      gbytes_per_s *= level.radix / level.oversubscription;
      ps_per_byte_.push_back(ps_per_byte_at(gbytes_per_s));
      links += 2 * static_cast<uint32_t>((node_count + below - 1) / below);
    }
    link_count_ = links;
  }
  uint32_t capacity() const override { return saturated(nodes_below_.back()); }
  uint32_t link_count() const override { return link_count_; }
  double ps_per_byte(uint32_t link) const override { return ps_per_byte_[level_of(link)]; }
  std::string link_name(uint32_t link) const override {
    const size_t level = level_of(link);
    const uint32_t index = link - first_link_[level];
    return fmt::format("switch {} of level {}, {}", index / 2, level, index % 2 == 0 ? "up" : "down");
  }
  double route(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const override {
    size_t top = 0;
    while (group(static_cast<uint32_t>(top), from) != group(static_cast<uint32_t>(top), to)) ++top;
    double latency_ns = spec_.levels[top].hop_ns;
    for (size_t level = 0; level < top; ++level) {
      links.push_back(first_link_[level] + 2 * group(static_cast<uint32_t>(level), from));
      latency_ns += 2 * spec_.levels[level].hop_ns;
    }
    for (size_t level = top; level-- > 0;) {
      links.push_back(first_link_[level] + 2 * group(static_cast<uint32_t>(level), to) + 1);
    }
    return latency_ns;
  }
  uint32_t level_count() const override { return static_cast<uint32_t>(spec_.levels.size()); }
  uint32_t group(uint32_t level, uint32_t node) const override { return static_cast<uint32_t>(node / nodes_below_[level]); }

 private:
  size_t level_of(uint32_t link) const {
    return static_cast<size_t>(std::upper_bound(first_link_.begin(), first_link_.end(), link) - first_link_.begin()) - 1;
  }

  FatTree spec_;
  std::vector<uint64_t> nodes_below_;
  std::vector<uint32_t> first_link_;
  std::vector<double> ps_per_byte_;
  uint32_t link_count_ = 0;
};

/// Links: for each group its routers * routers local ones, (from, to); then one for each ordered pair of groups.
class DragonflyFabric final : public Fabric {
 public:
  explicit DragonflyFabric(const Dragonfly& spec) : spec_(spec), local_count_(spec.groups * spec.routers * spec.routers) {}
  uint32_t capacity() const override { return saturated(uint64_t{spec_.groups} * spec_.routers * spec_.hosts); }
  uint32_t link_count() const override { return local_count_ + spec_.groups * spec_.groups; }
  double ps_per_byte(uint32_t link) const override {
    return ps_per_byte_at(link < local_count_ ? spec_.local_gbytes_per_s : spec_.global_gbytes_per_s);
  }
  std::string link_name(uint32_t link) const override {
    const uint32_t a = spec_.routers;
    if (link < local_count_) return fmt::format("group {}, router {} to {}", link / (a * a), link / a % a, link % a);
    const uint32_t pair = link - local_count_;
    return fmt::format("group {} to group {}", pair / spec_.groups, pair % spec_.groups);
  }
  double route(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const override {
    const uint32_t source = group(1, from);
    const uint32_t target = group(1, to);
    const uint32_t first = group(0, from) % spec_.routers;
    const uint32_t last = group(0, to) % spec_.routers;
    if (source == target) return local(source, first, last, links);
    double latency_ns = local(source, first, gateway(source, target), links);
    links.push_back(local_count_ + source * spec_.groups + target);
    latency_ns += spec_.global_hop_ns;
    return latency_ns + local(target, gateway(target, source), last, links);
  }
  uint32_t level_count() const override { return 2; }
  uint32_t group(uint32_t level, uint32_t node) const override {
    const uint32_t router = node / spec_.hosts;
    return level == 0 ? router : router / spec_.routers;
  }

 private:
  /// The router of a group with the link to another.
  uint32_t gateway(uint32_t own, uint32_t other) const {
    const uint64_t distance = (other + spec_.groups - own) % spec_.groups;
    return static_cast<uint32_t>((distance - 1) * spec_.routers / (spec_.groups - 1));
  }
  double local(uint32_t group, uint32_t from, uint32_t to, std::vector<uint32_t>& links) const {
    if (from == to) return 0;
    links.push_back((group * spec_.routers + from) * spec_.routers + to);
    return spec_.local_hop_ns;
  }

  Dragonfly spec_;
  uint32_t local_count_;
};

/// Links of a node: for each dimension upwards, then downwards.
class TorusFabric final : public Fabric {
 public:
  explicit TorusFabric(const Torus& spec) : spec_(spec) {
    uint64_t nodes = 1;
    for (const uint32_t length : spec.dimensions) {
      stride_.push_back(nodes);
      nodes = std::min(nodes * length, kMaxNodes * 2);
    }
    capacity_ = saturated(nodes);
  }
  uint32_t capacity() const override { return capacity_; }
  uint32_t link_count() const override { return capacity_ * links_per_node(); }
  double ps_per_byte(uint32_t) const override { return ps_per_byte_at(spec_.gbytes_per_s); }
  std::string link_name(uint32_t link) const override {
    const uint32_t port = link % links_per_node();
    return fmt::format("node {}, dimension {} {}", link / links_per_node(), port / 2, port % 2 == 0 ? "up" : "down");
  }
  double route(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const override {
    uint32_t hops = 0;
    uint64_t at = from;
    for (size_t d = 0; d < spec_.dimensions.size(); ++d) {
      const uint32_t length = spec_.dimensions[d];
      uint64_t place = at / stride_[d] % length;
      const uint64_t goal = to / stride_[d] % length;
      const uint64_t ahead = (goal + length - place) % length;
      const bool up = 2 * ahead <= length;
      for (uint64_t n = up ? ahead : length - ahead; n > 0; --n, ++hops) {
        links.push_back(static_cast<uint32_t>(at * links_per_node() + 2 * d + (up ? 0 : 1)));
        const uint64_t next = (place + (up ? 1 : length - 1)) % length;
        at = at + next * stride_[d] - place * stride_[d];
        place = next;
      }
    }
    return hops * spec_.hop_ns;
  }
  uint32_t group(uint32_t, uint32_t) const override { return 0; }

 private:
  uint32_t links_per_node() const { return 2 * static_cast<uint32_t>(spec_.dimensions.size()); }

  Torus spec_;
  std::vector<uint64_t> stride_;
  uint32_t capacity_ = 0;
};

Status check_fabric(const Crossbar&) { return Status(); }

Status check_fabric(const FatTree& spec) {
  if (spec.levels.empty()) return error(TUTTI_ERR_CONFIG, "a fat tree needs a level");
  for (const FatTree::Level& level : spec.levels) {
    if (level.radix == 0) return error(TUTTI_ERR_CONFIG, "radix: 0 joins nothing");
    if (!(level.oversubscription > 0)) {
      return error(TUTTI_ERR_CONFIG, "oversubscription: {} is not above 0", level.oversubscription);
    }
  }
  return Status();
}

Status check_fabric(const Dragonfly& spec) {
  constexpr uint64_t kMaxLinks = uint64_t{1} << 28;
  if (spec.groups == 0 || spec.routers == 0 || spec.hosts == 0) {
    return error(TUTTI_ERR_CONFIG, "groups, routers and hosts: each at least 1, not {}, {}, {}", spec.groups, spec.routers,
                 spec.hosts);
  }
  if (uint64_t{spec.groups} * spec.routers * spec.routers > kMaxLinks || uint64_t{spec.groups} * spec.groups > kMaxLinks) {
    return error(TUTTI_ERR_CONFIG, "groups and routers: {} and {} are more links than can be simulated", spec.groups,
                 spec.routers);
  }
  if (!(spec.local_gbytes_per_s > 0)) return error(TUTTI_ERR_CONFIG, "local_gbytes_per_s: not above 0");
  if (!(spec.global_gbytes_per_s > 0)) return error(TUTTI_ERR_CONFIG, "global_gbytes_per_s: not above 0");
  return Status();
}

Status check_fabric(const Torus& spec) {
  if (spec.dimensions.empty()) return error(TUTTI_ERR_CONFIG, "a torus needs a dimension");
  uint64_t nodes = 1;
  for (const uint32_t length : spec.dimensions) {
    if (length == 0) return error(TUTTI_ERR_CONFIG, "dimensions: one of length 0 has no node");
    nodes = std::min(nodes * length, kMaxNodes + 1);
  }
  if (nodes > kMaxNodes) return error(TUTTI_ERR_CONFIG, "dimensions: more than {} nodes", kMaxNodes);
  if (!(spec.gbytes_per_s > 0)) return error(TUTTI_ERR_CONFIG, "gbytes_per_s: not above 0");
  return Status();
}

}  // namespace

Result<std::unique_ptr<Fabric>> make_fabric(const NetworkSpec& spec, uint32_t node_count) {
  const Status sound = std::visit([](const auto& fabric) { return check_fabric(fabric); }, spec.fabric);
  if (!sound.ok()) return sound;
  std::unique_ptr<Fabric> fabric;
  if (const auto* tree = std::get_if<FatTree>(&spec.fabric)) {
    fabric = std::make_unique<FatTreeFabric>(*tree, spec.nic_gbytes_per_s, node_count);
  } else if (const auto* dragonfly = std::get_if<Dragonfly>(&spec.fabric)) {
    fabric = std::make_unique<DragonflyFabric>(*dragonfly);
  } else if (const auto* torus = std::get_if<Torus>(&spec.fabric)) {
    fabric = std::make_unique<TorusFabric>(*torus);
  } else {
    fabric = std::make_unique<CrossbarFabric>(std::get<Crossbar>(spec.fabric));
  }
  return fabric;
}

}  // namespace tutti
