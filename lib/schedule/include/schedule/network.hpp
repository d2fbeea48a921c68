// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/status.hpp"
#include "schedule/algorithm.hpp"
#include "schedule/shape.hpp"

/// A machine for the simulator: what messages cost, and over which links they go. Ranks stand in blocks: node n has the ranks
/// [n * ranks_per_node, (n + 1) * ranks_per_node), and the nodes take the fabric's places in order.
namespace tutti {

/// What a message costs beside the time on its links.
struct Reach {
  double latency_ns = 0;
  double overhead_ns = 0;       ///< of the processor, at either end
  double copy_ns_per_byte = 0;  ///< of the processor, at either end, where bytes are copied into and out of slots
  uint32_t slots = 4;           ///< messages of one channel under way at once
};

struct Prices {
  Reach node = {250, 60, 0.05, 4};     ///< between ranks of one node
  Reach network = {1200, 300, 0, 4};   ///< between nodes, beside the hops
  double step_ns = 50;                 ///< the engine's own cost of a step
  double switch_ns = 0;                ///< of a processor from one rank to another, where ranks share processors
  double reduce_ns_per_byte = 0.05;    ///< one operand folded into another
  double copy_ns_per_byte = 0.05;      ///< from one local buffer to another
  uint64_t segment_bytes = 64 * 1024;  ///< the longest chunk that the transport takes
};

/// Every node has a cable to one switch without limits.
struct Crossbar {
  double hop_ns = 0;
};

/// Switches over switches. Level 0 joins `radix` nodes, each level above `radix` switches of the one below. The cables from a
/// switch upwards are one link, of the bandwidth of all below divided by `oversubscription`: traffic is taken to spread evenly.
struct FatTree {
  struct Level {
    uint32_t radix = 32;
    double oversubscription = 1;  ///< of the cables upwards; the top level has none
    double hop_ns = 100;          ///< through one switch
  };
  std::vector<Level> levels;
};

/// Groups of routers, each with `hosts` nodes. In a group each router has a cable to each other; each pair of groups has one
/// link, which starts at router (distance - 1) * routers / (groups - 1) of either group. Routes are minimal.
struct Dragonfly {
  uint32_t groups = 1;
  uint32_t routers = 1;
  uint32_t hosts = 1;
  double local_gbytes_per_s = 25;
  double global_gbytes_per_s = 25;
  double local_hop_ns = 100;
  double global_hop_ns = 500;
};

/// A grid with wrap-around; the first dimension changes fastest. Routes go the shorter way, one dimension after the other.
struct Torus {
  std::vector<uint32_t> dimensions;
  double gbytes_per_s = 25;
  double hop_ns = 100;
};

struct NetworkSpec {
  std::string name = "flat";
  uint32_t ranks_per_node = 1;
  uint32_t cores_per_node = 0;     ///< processors that the ranks of a node share; 0: each has its own
  double nic_gbytes_per_s = 25;    ///< of a node, each way
  double rank_gbytes_per_s = 0;    ///< of a rank, each way; 0: as much as its node
  double memory_gbytes_per_s = 0;  ///< of a node, for messages between its ranks; 0: as much as its processors copy
  Prices prices;
  std::variant<Crossbar, FatTree, Dragonfly, Torus> fabric;
};

/// The part of a network beyond the nodes' cables. Its links are numbered from 0.
class Fabric;

class Network {
 public:
  /// TUTTI_ERR_CONFIG if a number of the spec makes no sense or there is no room for so many ranks.
  static Result<Network> make(NetworkSpec spec, uint32_t rank_count);
  ~Network();
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;

  const NetworkSpec& spec() const noexcept { return spec_; }
  uint32_t rank_count() const noexcept { return rank_count_; }
  uint32_t node_count() const noexcept { return node_count_; }
  bool shares_processors() const noexcept { return spec_.cores_per_node > 0 && spec_.cores_per_node < spec_.ranks_per_node; }
  /// Ranks that the fabric has room for; UINT32_MAX: no limit.
  uint32_t capacity() const noexcept;
  /// How the ranks nest: nodes, switches or routers, groups; only levels with more than one group and fewer than ranks.
  const Shape& shape() const noexcept { return shape_; }

  uint32_t link_count() const noexcept;
  double ps_per_byte(uint32_t link) const;
  std::string link_name(uint32_t link) const;

  struct Route {
    bool within_node = false;
    double latency_ns = 0;
    std::vector<uint32_t> links;  ///< in the order in which a message passes them
  };
  void route(uint32_t from, uint32_t to, Route& route) const;

  /// The network in the terms of the cost formulas.
  CostModel cost_model() const;

 private:
  Network(NetworkSpec spec, uint32_t rank_count, std::unique_ptr<Fabric> fabric);
  void derive_shape();

  NetworkSpec spec_;
  uint32_t rank_count_;
  uint32_t node_count_;
  std::unique_ptr<Fabric> fabric_;
  Shape shape_;
};

}  // namespace tutti
