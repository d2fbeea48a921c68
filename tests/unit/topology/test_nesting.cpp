// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include <numeric>

#include "topology/topology.hpp"

using namespace tutti;

namespace {

using Groups = std::vector<uint32_t>;

/// "a0.1": host a, package 0, NUMA node 1; "a0": no NUMA node; "a": not bound.
Place place(const std::string& text) {
  Place made;
  made.host = text.substr(0, 1);
  made.machine = "m";
  if (text.size() > 1) made.package = text[1] == '-' ? kSpread : text[1] - '0';
  if (text.size() > 3) made.numa = text[3] - '0';
  return made;
}

Topology job(const std::vector<std::string>& texts) {
  std::vector<Place> places;
  for (const std::string& text : texts) places.push_back(place(text));
  return Topology(std::move(places));
}

/// "node 0011; package 0123", innermost last here so that it reads from the outside.
std::string nesting(const std::vector<std::string>& texts, std::vector<uint32_t> members = {}) {
  const Topology topology = job(texts);
  if (members.empty()) {
    members.resize(texts.size());
    std::iota(members.begin(), members.end(), 0u);
  }
  std::string text;
  for (const NestingLevel& level : nesting_of(topology, members)) {
    std::string one = std::string(level.name) + " ";
    for (const uint32_t group : level.group_of) one += std::to_string(group);
    text = one + (text.empty() ? "" : "; ") + text;
  }
  return text;
}

}  // namespace

TEST_CASE("nodes, however ranks lie on them", "[topology]") {
  CHECK(nesting({"a", "a", "b", "b"}) == "node 0011");
  CHECK(nesting({"a", "b", "a", "b"}) == "node 0101");
  CHECK(nesting({"b", "a", "a", "a", "c", "c"}) == "node 011122");
  CHECK(nesting({"a", "b", "b", "a", "b"}) == "node 01101");
  // One node, or a rank on each: says nothing.
  CHECK(nesting({"a", "a", "a"}).empty());
  CHECK(nesting({"a", "b", "c"}).empty());
  CHECK(nesting({"a"}).empty());
}

TEST_CASE("two hosts of one name are two nodes", "[topology]") {
  std::vector<Place> places(3);
  places[0].host = "id 1";
  places[1].host = "id 2";
  places[2].host = "id 1";
  for (Place& one : places) one.host_name = "n1";
  const Topology topology(places);
  CHECK(topology.node_count() == 2);
  CHECK(topology.node(0) == topology.node(2));
  CHECK(topology.node(0) != topology.node(1));
}

TEST_CASE("packages and NUMA nodes count where all members are bound", "[topology]") {
  CHECK(nesting({"a0", "a0", "a1", "a1"}) == "package 0011");
  CHECK(nesting({"a0", "a1", "a0", "a1"}) == "package 0101");
  CHECK(nesting({"a0", "a0", "a1", "a1", "b0", "b0", "b1", "b1"}) == "node 00001111; package 00112233");
  // Equal numbers on different hosts are different packages.
  CHECK(nesting({"a0", "b0", "a0", "b0"}) == "node 0101");
  CHECK(nesting({"a0", "a0", "a0", "b1", "b1"}) == "node 00011");
  // One that is not bound: no such level for anybody.
  CHECK(nesting({"a0", "a0", "a1", "a"}).empty());
  CHECK(nesting({"a0", "a1", "a0", "b", "b"}) == "node 00011");
  // A rank in each package says nothing.
  CHECK(nesting({"a0", "a1", "b0", "b1"}) == "node 0011");
  // All in one package.
  CHECK(nesting({"a1", "a1", "a1"}).empty());
  CHECK(nesting({"a0.0", "a0.0", "a0.1", "a0.1", "a1.2", "a1.2", "a1.3", "a1.3"}) == "package 00001111; NUMA node 00112233");
  CHECK(nesting({"a0.0", "a0.0", "a1.1", "a1.1"}) == "package 0011");
  CHECK(nesting({"a0.0", "a0.0", "a0.1", "a0"}).empty());
  CHECK(nesting({"a-.0", "a-.0", "a-.1", "a-.1"}) == "NUMA node 0011");
}

TEST_CASE("levels nest whatever a machine calls its parts", "[topology]") {
  // One NUMA node over both packages.
  CHECK(nesting({"a0.0", "a0.0", "a1.0", "a1.0"}) == "package 0011");
  // NUMA nodes that have the same numbers in each package.
  CHECK(nesting({"a0.0", "a0.0", "a0.1", "a0.1", "a1.0", "a1.0", "a1.1", "a1.1"}) == "package 00001111; NUMA node 00112233");
}

TEST_CASE("a part of the job nests by its own members, in their order", "[topology]") {
  const std::vector<std::string> all{"a0", "a0", "a1", "a1", "b0", "b", "b1", "c0"};
  CHECK(nesting(all) == "node 00001112");
  CHECK(nesting(all, {0, 1, 2, 3}) == "package 0011");
  CHECK(nesting(all, {3, 1, 2, 0}) == "package 0101");
  CHECK(nesting(all, {4, 0, 6, 1, 7}) == "node 01012; package 01213");
  CHECK(nesting(all, {7, 6, 0}).empty());
  CHECK(nesting(all, {5}).empty());
}

TEST_CASE("ranks that have to share CPUs", "[topology]") {
  const auto sharing = [](const std::vector<std::pair<const char*, const char*>>& ranks) {
    std::vector<Place> places;
    for (const auto& [machine, cpus] : ranks) {
      Place& one = places.emplace_back();
      one.machine = machine;
      one.cpus = parse_cpu_list(cpus);
    }
    const Topology found(std::move(places));
    std::string text;
    for (uint32_t rank = 0; rank < found.size(); ++rank) text += is_oversubscribed(found, rank) ? 'y' : 'n';
    return text;
  };
  CHECK(sharing({{"m", "0-1"}, {"m", "0-1"}}) == "nn");
  CHECK(sharing({{"m", "0-1"}, {"m", "0-1"}, {"m", "0-1"}}) == "yyy");
  CHECK(sharing({{"m", "0"}, {"m", "1"}, {"m", "2"}}) == "nnn");
  // Two on one CPU of many.
  CHECK(sharing({{"m", "0"}, {"m", "0"}, {"m", "2"}, {"m", "0-7"}}) == "yynn");
  // More on a package than it has CPUs, though the machine has enough.
  CHECK(sharing({{"m", "0-1"}, {"m", "0-1"}, {"m", "1"}, {"m", "0-3"}}) == "yyyn");
  CHECK(sharing({{"m", "0-1"}, {"n", "0-1"}, {"n", "0-1"}, {"n", "0-1"}}) == "nyyy");
  // Nobody knows.
  CHECK(sharing({{"m", ""}}) == "y");
}

TEST_CASE("CPUs for each rank, where there are the fewest", "[topology]") {
  const auto cpus = [](const std::vector<std::pair<const char*, const char*>>& ranks, const std::vector<uint32_t>& members) {
    std::vector<Place> places;
    for (const auto& [machine, list] : ranks) {
      Place& one = places.emplace_back();
      one.machine = machine;
      one.cpus = parse_cpu_list(list);
    }
    return cpus_per_rank(Topology(std::move(places)), members);
  };
  CHECK(cpus({{"m", "0-1"}, {"m", "0-1"}, {"m", "0-1"}, {"m", "0-1"}}, {0, 1, 2, 3}) == 0.5);
  CHECK(cpus({{"m", "0-1"}, {"m", "0-1"}, {"m", "0-1"}, {"m", "0-1"}}, {1, 3}) == 1);
  CHECK(cpus({{"m", "0-3"}, {"m", "2-5"}, {"m", "4"}}, {0, 1, 2}) == 2);
  CHECK(cpus({{"m", "0-7"}, {"n", "0-1"}, {"m", "0-7"}, {"n", "0-1"}}, {0, 1, 2, 3}) == 1);
  CHECK(std::isinf(cpus({{"m", ""}, {"m", ""}}, {0, 1})));
}
