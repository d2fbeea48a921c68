// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "fake_system.hpp"
#include "topology/card.hpp"
#include "topology/places_file.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

Config config_with(const std::vector<std::pair<const char*, std::string>>& settings) {
  Config config;
  for (const auto& [name, value] : settings) REQUIRE(config.set(name, value).ok());
  return config;
}

std::vector<std::string> cards_of(uint32_t size, const std::function<Config(uint32_t)>& config) {
  std::vector<std::string> cards;
  for (uint32_t rank = 0; rank < size; ++rank)
    cards.push_back(make_topology_card(config(rank), fmt::format("host {}", rank % 2), rank, size));
  return cards;
}

std::string message_of(const std::vector<std::string>& cards, tutti_status_t code) {
  const auto read = read_topology_cards(cards);
  REQUIRE_FALSE(read.ok());
  CHECK(read.status().code() == code);
  return std::string(read.status().message());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("cards tell where ranks are", "[topology]") {
  const auto read = read_topology_cards(cards_of(4, [](uint32_t) { return Config(); }));
  REQUIRE(read.ok());
  CHECK(read->found == read->used);
  REQUIRE(read->used.size() == 4);
  CHECK(read->used.node_count() == 2);
  const Place here = find_place(allowed_cpus());
  for (const Place& place : read->used.places()) {
    CHECK(place.cpus == here.cpus);
    CHECK(place.package == here.package);
    CHECK(place.numa == here.numa);
    CHECK(place.l3 == here.l3);
    CHECK_FALSE(place.machine.empty());
    CHECK_FALSE(place.host_name.empty());
  }
  CHECK(read->used.place(3).host == "host 1");
}

TEST_CASE("a host's name may hold any bytes", "[topology]") {
  const std::string odd = "node \xff\xfe\xc3";
  const auto read = read_topology_cards(std::vector<std::string>{make_topology_card(Config(), odd, 0, 1)});
  REQUIRE(read.ok());
  CHECK(read->used.place(0).host == odd);
}

TEST_CASE("simulated packages", "[topology]") {
  const auto read = read_topology_cards(
      cards_of(4, [](uint32_t rank) { return config_with({{"package_id", std::to_string(rank / 2 + 7)}}); }));
  REQUIRE(read.ok());
  CHECK(read->used.place(1).package == 7);
  CHECK(read->used.place(2).package == 8);
  CHECK(read->used.place(2).numa == kSpread);
  for (const std::string& bad : std::vector<std::string>{"x", "-1", "1.5", "99999999999"}) {
    const std::string message = message_of(
        cards_of(3, [&](uint32_t rank) { return config_with({{"package_id", rank == 1 ? bad : "0"}}); }), TUTTI_ERR_CONFIG);
    INFO(message);
    CHECK(has(message, "rank 1"));
    CHECK(has(message, "package_id"));
    CHECK(has(message, "'" + bad + "'"));
  }
}

TEST_CASE("a file of rank 0 counts for all", "[topology]") {
  FakeSystem folder;
  const std::string path = folder.put("job.json", R"({"tutti_topology": 1, "places": [
    {"ranks": "0,3", "host": "n1", "package": 1, "numa": 3, "l3": 8, "cpus": "70-80"},
    {"ranks": "1-2", "host": "n2"}]})");
  const auto read = read_topology_cards(
      cards_of(4, [&](uint32_t rank) { return config_with({{"topology_file", rank == 0 ? path : "/another/one"}}); }));
  REQUIRE(read.ok());
  CHECK(read->found.place(2).host == "host 0");
  CHECK(read->used.node(0) == read->used.node(3));
  CHECK(read->used.node(1) == read->used.node(2));
  CHECK(read->used.node_count() == 2);
  CHECK(read->used.place(3).package == 1);
  CHECK(read->used.place(3).numa == 3);
  CHECK(read->used.place(3).l3 == 8);
  CHECK(read->used.place(1).package == kSpread);
  // Which CPUs ranks have is known, and counts for how they wait.
  CHECK(read->used.place(0).cpus == allowed_cpus());
  CHECK(read->used.place(0).machine == read->found.place(0).machine);
}

TEST_CASE("a bad file of rank 0 is an error on all, with its name", "[topology]") {
  FakeSystem folder;
  const auto with = [&](const std::string& path) {
    return cards_of(3, [&](uint32_t rank) { return rank == 0 ? config_with({{"topology_file", path}}) : Config(); });
  };
  const std::string absent = message_of(with(folder.path() + "/absent.json"), TUTTI_ERR_CONFIG);
  CHECK(has(absent, "topology_file"));
  CHECK(has(absent, "absent.json"));
  const std::string cut = message_of(with(folder.put("cut.json", "{\"tutti_topology\": 1,\n \"places\": [")), TUTTI_ERR_CONFIG);
  CHECK(has(cut, "cut.json"));
  CHECK(has(cut, "line 2"));
  const std::string few = message_of(
      with(folder.put("few.json", R"({"tutti_topology": 1, "places": [{"ranks": "0-1", "host": "a"}]})")), TUTTI_ERR_CONFIG);
  CHECK(has(few, "2 ranks"));
  CHECK(has(few, "has 3"));
}

TEST_CASE("a job's places travel compactly", "[topology]") {
  FakeSystem folder;
  std::vector<Place> places(10000);
  for (size_t rank = 0; rank < places.size(); ++rank) {
    places[rank].host = fmt::format("host{}", rank / 128);
    places[rank].package = static_cast<int>(rank / 64 % 2);
  }
  const std::string path = folder.put("large.json", format_places(places));
  const std::string card = make_topology_card(config_with({{"topology_file", path}}), "h", 0, 10000);
  CHECK(card.size() < 8192);
}

TEST_CASE("garbled cards name the rank", "[topology]") {
  const std::vector<std::string> good = cards_of(2, [](uint32_t) { return Config(); });
  REQUIRE(read_topology_cards(good).ok());
  for (size_t length = 0; length < good[1].size(); ++length) {
    const std::string message = message_of({good[0], good[1].substr(0, length)}, TUTTI_ERR_PROTOCOL);
    CHECK(has(message, "rank 1"));
  }
  for (const std::string& junk : {std::string("\x00", 1), std::string("\xc1"), std::string("\xdd\xff\xff\xff\xff"),
                                 std::string("\x97\x01\x02\x03\x04\x05\x06\x07"), std::string(1000, '\x91')})
    CHECK(has(message_of({good[0], junk}, TUTTI_ERR_PROTOCOL), "rank 1"));
  // Any byte changed: an error, or another card; never a crash.
  for (size_t at = 0; at < good[1].size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string bent = good[1];
      bent[at] = static_cast<char>(bent[at] ^ flip);
      const auto read = read_topology_cards(std::vector<std::string>{good[0], bent});
      if (read.ok()) CHECK(read->used.size() == 2);
    }
  }
}
