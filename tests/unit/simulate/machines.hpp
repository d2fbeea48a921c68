// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <set>
#include <string>

#include "schedule/network.hpp"
#include "schedule/simulate.hpp"

/// Machines and requests for the tests of the simulator.
namespace tutti::test {

/// Round prices: a message of n bytes takes n ns on a cable and 1000 ns beside; each step 10 ns, each message 100 ns at either
/// end; copies within the node 1 ns a byte at either end; folds 2 ns a byte.
inline NetworkSpec plain_spec(uint32_t ranks_per_node = 1) {
  NetworkSpec spec;
  spec.name = "plain";
  spec.ranks_per_node = ranks_per_node;
  spec.nic_gbytes_per_s = 1;
  spec.prices.node = {200, 100, 1, 4};
  spec.prices.network = {1000, 100, 0, 4};
  spec.prices.step_ns = 10;
  spec.prices.reduce_ns_per_byte = 2;
  spec.prices.copy_ns_per_byte = 1;
  return spec;
}

inline NetworkSpec fat_tree_spec() {
  NetworkSpec spec;
  spec.name = "fat tree";
  spec.ranks_per_node = 4;
  spec.fabric = FatTree{{{16, 2, 100}, {8, 1, 150}, {32, 1, 200}}};
  return spec;
}

/// Of 64 ranks a group.
inline NetworkSpec dragonfly_spec(uint32_t groups) {
  NetworkSpec spec;
  spec.name = "dragonfly";
  spec.ranks_per_node = 4;
  spec.fabric = Dragonfly{groups, 4, 4, 25, 25, 100, 500};
  return spec;
}

inline NetworkSpec torus_spec(std::vector<uint32_t> dimensions) {
  NetworkSpec spec;
  spec.name = "torus";
  spec.fabric = Torus{std::move(dimensions), 10, 100};
  return spec;
}

inline SimulationRequest request_for(const AlgorithmInfo& algorithm, uint64_t bytes) {
  SimulationRequest request;
  request.algorithm = &algorithm;
  for (const ParameterInfo& parameter : algorithm.parameters) request.parameters.push_back(parameter.default_value);
  request.bytes = bytes;
  return request;
}

}  // namespace tutti::test
