// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "topology_file.hpp"

using namespace tutti;
using namespace tutti::simulator;

namespace {

NetworkSpec parsed(const char* text) {
  const Result<NetworkSpec> spec = parse_topology(text, "test.json");
  INFO(spec.status().message());
  REQUIRE(spec.ok());
  return *spec;
}

std::string complaint(const char* text) {
  const Status status = parse_topology(text, "test.json").status();
  CHECK(status.code() == TUTTI_ERR_CONFIG);
  return std::string(status.message());
}

}  // namespace

TEST_CASE("every field of a topology file is taken") {
  const NetworkSpec spec = parsed(R"({
    "name": "mine", "ranks_per_node": 3, "cores_per_node": 21, "switch_ns": 22, "nic_gbytes_per_s": 4, "rank_gbytes_per_s": 5, "memory_gbytes_per_s": 6,
    "step_ns": 7, "reduce_ns_per_byte": 8, "copy_ns_per_byte": 9, "segment_bytes": "16K",
    "node": {"latency_ns": 10, "overhead_ns": 11, "copy_ns_per_byte": 12, "slots": 13},
    "network": {"latency_ns": 14, "overhead_ns": 15, "copy_ns_per_byte": 16, "slots": 17},
    "fat_tree": {"levels": [{"radix": 18, "oversubscription": 1.5, "hop_ns": 19}, {"radix": 20}]}})");
  CHECK(spec.name == "mine");
  CHECK(spec.ranks_per_node == 3);
  CHECK(spec.cores_per_node == 21);
  CHECK(spec.prices.switch_ns == 22);
  CHECK(spec.nic_gbytes_per_s == 4);
  CHECK(spec.rank_gbytes_per_s == 5);
  CHECK(spec.memory_gbytes_per_s == 6);
  CHECK(spec.prices.step_ns == 7);
  CHECK(spec.prices.reduce_ns_per_byte == 8);
  CHECK(spec.prices.copy_ns_per_byte == 9);
  CHECK(spec.prices.segment_bytes == 16384);
  CHECK(spec.prices.node.latency_ns == 10);
  CHECK(spec.prices.node.overhead_ns == 11);
  CHECK(spec.prices.node.copy_ns_per_byte == 12);
  CHECK(spec.prices.node.slots == 13);
  CHECK(spec.prices.network.latency_ns == 14);
  CHECK(spec.prices.network.slots == 17);
  const auto& tree = std::get<FatTree>(spec.fabric);
  REQUIRE(tree.levels.size() == 2);
  CHECK(tree.levels[0].radix == 18);
  CHECK(tree.levels[0].oversubscription == 1.5);
  CHECK(tree.levels[0].hop_ns == 19);
  CHECK(tree.levels[1].radix == 20);
}

TEST_CASE("the other fabrics") {
  const auto dragonfly = std::get<Dragonfly>(parsed(R"({"dragonfly": {"groups": 2, "routers": 3, "hosts": 4,
    "local_gbytes_per_s": 5, "global_gbytes_per_s": 6, "local_hop_ns": 7, "global_hop_ns": 8}})")
                                                 .fabric);
  CHECK(dragonfly.groups == 2);
  CHECK(dragonfly.routers == 3);
  CHECK(dragonfly.hosts == 4);
  CHECK(dragonfly.local_gbytes_per_s == 5);
  CHECK(dragonfly.global_gbytes_per_s == 6);
  CHECK(dragonfly.local_hop_ns == 7);
  CHECK(dragonfly.global_hop_ns == 8);
  const auto torus = std::get<Torus>(parsed(R"({"torus": {"dimensions": [4, 5], "gbytes_per_s": 6, "hop_ns": 7}})").fabric);
  CHECK(torus.dimensions == std::vector<uint32_t>{4, 5});
  CHECK(torus.gbytes_per_s == 6);
  CHECK(torus.hop_ns == 7);
  CHECK(std::get<Crossbar>(parsed(R"({"flat": {"hop_ns": 3}})").fabric).hop_ns == 3);
}

TEST_CASE("what is wrong in a file is told with the line or the field") {
  CHECK(complaint("{\n  \"flat\": {},\n  oops\n}").find("line 3") != std::string::npos);
  CHECK(complaint("").find("test.json") != std::string::npos);
  CHECK(complaint("[]").find("an object is needed") != std::string::npos);
  CHECK(complaint("{}").find("one of flat, fat_tree, dragonfly, torus") != std::string::npos);
  CHECK(complaint(R"({"flat": {}, "torus": {"dimensions": [2]}})").find("one of flat") != std::string::npos);
  CHECK(complaint(R"({"flat": {"hops": 1}})").find("flat.hops: there is no such field; known are hop_ns") != std::string::npos);
  CHECK(complaint(R"({"flat": {}, "ranks": 1})").find("ranks: there is no such field") != std::string::npos);
  CHECK(complaint(R"({"fat_tree": {"levels": [{"radix": 2}, {"radix": "x"}]}})")
            .find("fat_tree.levels[1].radix: a whole number is needed, not \"x\"") != std::string::npos);
  CHECK(complaint(R"({"fat_tree": {"levels": 3}})").find("fat_tree.levels: a list is needed") != std::string::npos);
  CHECK(complaint(R"({"flat": {"hop_ns": -1}})").find("flat.hop_ns: a number from 0 on") != std::string::npos);
  CHECK(complaint(R"({"flat": {}, "segment_bytes": "much"})").find("segment_bytes") != std::string::npos);
  CHECK(complaint(R"({"flat": {}, "segment_bytes": 0})").find("segment_bytes") != std::string::npos);
  CHECK(complaint(R"({"flat": {}, "name": 3})").find("name: a text is needed") != std::string::npos);
  CHECK(complaint(R"({"flat": 3})").find("flat: an object is needed") != std::string::npos);
  CHECK(complaint(R"({"torus": {"dimensions": [2, 0]}})").find("dimensions") != std::string::npos);
  CHECK(complaint(R"({"flat": {}, "network": {"slots": 1}})").find("slots: at least 2") != std::string::npos);
}

TEST_CASE("a file that is not there") {
  CHECK(load_topology("no/such/file.json").status().code() == TUTTI_ERR_CONFIG);
  CHECK(load_topology("").ok());
}
