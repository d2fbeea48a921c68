// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Routes, link names, nesting and what a spec may not say.
#include <catch2/catch.hpp>

#include "machines.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

Network network_of(NetworkSpec spec, uint32_t ranks) {
  Result<Network> network = Network::make(std::move(spec), ranks);
  INFO(network.status().message());
  REQUIRE(network.ok());
  return std::move(*network);
}

std::vector<std::string> route_names(const Network& network, uint32_t from, uint32_t to) {
  Network::Route route;
  network.route(from, to, route);
  std::vector<std::string> names;
  for (const uint32_t link : route.links) names.push_back(network.link_name(link));
  return names;
}

double latency_ns(const Network& network, uint32_t from, uint32_t to) {
  Network::Route route;
  network.route(from, to, route);
  return route.latency_ns;
}

std::string refusal(NetworkSpec spec, uint32_t ranks = 8) {
  const Result<Network> network = Network::make(std::move(spec), ranks);
  CHECK(network.status().code() == TUTTI_ERR_CONFIG);
  return std::string(network.status().message());
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("fat tree: up to the lowest common switch and down") {
  NetworkSpec spec = plain_spec(2);
  spec.fabric = FatTree{{{2, 1, 10}, {2, 4, 20}, {2, 1, 30}}};
  const Network network = network_of(spec, 16);
  CHECK(route_names(network, 0, 1).empty());
  CHECK(route_names(network, 0, 2) == Names{"node 0, out", "node 1, in"});
  CHECK(latency_ns(network, 0, 2) == 1010);
  CHECK(route_names(network, 1, 15) == Names{"node 0, out", "switch 0 of level 0, up", "switch 0 of level 1, up",
                                             "switch 1 of level 1, down", "switch 3 of level 0, down", "node 7, in"});
  CHECK(latency_ns(network, 1, 15) == 1000 + 2 * 10 + 2 * 20 + 30);
  Network::Route route;
  network.route(1, 15, route);
  CHECK(network.ps_per_byte(route.links[0]) == 1000);
  CHECK(network.ps_per_byte(route.links[1]) == 500);   // two cables
  CHECK(network.ps_per_byte(route.links[2]) == 1000);  // one for four
  REQUIRE(network.shape().group_of.size() == 3);
  CHECK(network.shape().group_of[0][15] == 7);
  CHECK(network.shape().group_of[1][15] == 3);
  CHECK(network.shape().group_of[2][15] == 1);
  CHECK(network.capacity() == 16);
}

TEST_CASE("dragonfly: at most one local, one global, one local link") {
  NetworkSpec spec = plain_spec();
  spec.fabric = Dragonfly{3, 2, 2, 1, 1, 10, 100};
  const Network network = network_of(spec, 12);
  CHECK(route_names(network, 0, 1) == Names{"node 0, out", "node 1, in"});
  CHECK(route_names(network, 0, 2) == Names{"node 0, out", "group 0, router 0 to 1", "node 2, in"});
  // Router 0 has the link to the next group, router 1 that to the one after; backwards it is the other way round.
  CHECK(route_names(network, 0, 6) == Names{"node 0, out", "group 0 to group 1", "node 6, in"});
  CHECK(route_names(network, 0, 4) == Names{"node 0, out", "group 0 to group 1", "group 1, router 1 to 0", "node 4, in"});
  CHECK(latency_ns(network, 0, 4) == 1000 + 100 + 10);
  REQUIRE(network.shape().group_of.size() == 2);
  CHECK(network.shape().group_of[0][11] == 5);
  CHECK(network.shape().group_of[1][11] == 2);
}

TEST_CASE("torus: the shorter way, one dimension after the other") {
  NetworkSpec spec = plain_spec();
  spec.fabric = Torus{{4, 3}, 1, 10};
  const Network network = network_of(spec, 12);
  CHECK(route_names(network, 0, 5) == Names{"node 0, out", "node 0, dimension 0 up", "node 1, dimension 1 up", "node 5, in"});
  CHECK(route_names(network, 0, 3) == Names{"node 0, out", "node 0, dimension 0 down", "node 3, in"});
  CHECK(route_names(network, 0, 8) == Names{"node 0, out", "node 0, dimension 1 down", "node 8, in"});
  CHECK(latency_ns(network, 0, 6) == 1030);
  CHECK(network.shape().group_of.empty());
}

TEST_CASE("links are numbered without gaps and all have names and speeds") {
  for (NetworkSpec spec : {fat_tree_spec(), dragonfly_spec(4), torus_spec({4, 4, 4})}) {
    spec.rank_gbytes_per_s = spec.memory_gbytes_per_s = 5;
    const Network network = network_of(spec, 64);
    std::set<std::string> names;
    for (uint32_t link = 0; link < network.link_count(); ++link) {
      names.insert(network.link_name(link));
      CHECK(network.ps_per_byte(link) > 0);
    }
    CHECK(names.size() == network.link_count());
    Network::Route route;
    for (uint32_t to = 1; to < 64; ++to) {
      network.route(0, to, route);
      CHECK_FALSE(route.links.empty());
      for (const uint32_t link : route.links) CHECK(link < network.link_count());
    }
  }
}

TEST_CASE("a spec that makes no sense is refused by the name of its field") {
  NetworkSpec spec = plain_spec();
  spec.ranks_per_node = 0;
  CHECK(refusal(spec).find("ranks_per_node") != std::string::npos);
  spec = plain_spec();
  spec.nic_gbytes_per_s = 0;
  CHECK(refusal(spec).find("nic_gbytes_per_s") != std::string::npos);
  spec = plain_spec();
  spec.prices.network.slots = 1;
  CHECK(refusal(spec).find("slots") != std::string::npos);
  spec = plain_spec();
  spec.fabric = FatTree{};
  CHECK(refusal(spec).find("needs a level") != std::string::npos);
  spec.fabric = FatTree{{{4, 0, 10}}};
  CHECK(refusal(spec).find("oversubscription") != std::string::npos);
  spec.fabric = Torus{{2, 0}, 1, 1};
  CHECK(refusal(spec).find("dimensions") != std::string::npos);
  spec.fabric = Dragonfly{0, 1, 1, 1, 1, 1, 1};
  CHECK(refusal(spec).find("groups") != std::string::npos);
  spec.fabric = Torus{{2, 2}, 1, 1};
  CHECK(refusal(spec).find("no room for 8 ranks") != std::string::npos);
  CHECK(refusal(plain_spec(), 0).find("one rank") != std::string::npos);
}
