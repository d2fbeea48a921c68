// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "fake_system.hpp"
#include "topology/machine.hpp"
#include "topology/places_file.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

struct Refusal {
  const char* text;
  std::vector<std::string> words;  // all of them are in the message
};

template <class Read>
void check_refusals(const std::vector<Refusal>& refusals, Read read) {
  for (const Refusal& one : refusals) {
    INFO(one.text);
    const auto refused = read(one.text, "some.json");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().code() == TUTTI_ERR_CONFIG);
    const std::string message(refused.status().message());
    INFO(message);
    CHECK(message.rfind("some.json: ", 0) == 0);
    for (const std::string& word : one.words) CHECK(message.find(word) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("places, written and read", "[topology]") {
  std::vector<Place> places(7);
  for (size_t rank = 0; rank < places.size(); ++rank) {
    Place& one = places[rank];
    one.host = rank < 3 ? "id 1" : "id \"2\"\n";
    one.host_name = "n";
    one.machine = "boot";
    if (rank == 1 || rank == 2) one.cpus = {0, 1, 2, 9};
    if (rank > 2) one.package = 0, one.numa = static_cast<int>(rank % 2), one.l3 = 4;
  }
  const std::string text = format_places(places);
  CHECK(text.find("\"1-2\"") != std::string::npos);
  const auto read = parse_places(text, "f");
  REQUIRE(read.ok());
  CHECK(*read == places);
  CHECK(format_places(*read) == text);
  // Bytes that are no text do not end the program.
  places[0].host = "\xff\xfe";
  CHECK(parse_places(format_places(places), "f").ok());
}

TEST_CASE("faults in a file of places are named", "[topology]") {
  check_refusals(
      {
          {"", {"line 1"}},
          {"{\n\"tutti_topology\": 1,\n \"places\": [}", {"line 3", "column"}},
          {"[]", {"an object is needed"}},
          {"7", {"an object is needed"}},
          {"{}", {"tutti_topology", "is missing", "tutti-sim"}},
          {R"({"flat": {}, "ranks_per_node": 4})", {"tutti_topology", "is missing", "tutti-sim"}},
          {R"({"tutti_topology": 2, "places": []})", {"tutti_topology", "version 2"}},
          {R"({"tutti_topology": "1"})", {"tutti_topology", "\"1\""}},
          {R"({"tutti_topology": 1})", {"places", "no rank"}},
          {R"({"tutti_topology": 1, "places": []})", {"places", "no rank"}},
          {R"({"tutti_topology": 1, "places": {}})", {"places", "a list is needed"}},
          {R"({"tutti_topology": 1, "machine": {}})", {"machine", "--job"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0", "host": "a", "socket": 1}]})", {"places[0].socket", "package"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0-x", "host": "a"}]})", {"places[0].ranks", "0-x", "0-3,8"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": 0, "host": "a"}]})", {"places[0].ranks", "a text is needed"}},
          {R"({"tutti_topology": 1, "places": [{"host": "a"}]})", {"places[0].ranks", "which ranks"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0"}]})", {"places[0].host", "which host"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0", "host": "a", "package": -1}]})", {"places[0].package", "-1"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0", "host": "a", "numa": 4294967295}]})", {"places[0].numa", "too large"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0", "host": "a", "cpus": "a"}]})", {"places[0].cpus"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0-2", "host": "a"}, {"ranks": "2-3", "host": "b"}]})",
           {"places[1].ranks", "rank 2"}},
          {R"({"tutti_topology": 1, "places": [{"ranks": "0,3", "host": "a"}, {"ranks": "1", "host": "b"}]})",
           {"places", "rank 2 has no place"}},
      },
      [](const char* text, const char* source) { return parse_places(text, source); });
}

TEST_CASE("a machine by the system's files", "[topology]") {
  FakeSystem system;
  fill_two_packages(system);
  const Machine machine = read_machine_files(system.path(), system.path());
  CHECK(machine.memory_bytes == uint64_t{4} << 30);
  REQUIRE(machine.packages.size() == 2);
  CHECK(format_cpu_list(machine.packages[1].cpus) == "4-7,12-15");
  CHECK(machine.packages[1].model == "Some Processor");
  REQUIRE(machine.numa_nodes.size() == 4);
  CHECK(format_cpu_list(machine.numa_nodes[2].cpus) == "4-5,12-13");
  CHECK(machine.numa_nodes[2].memory_bytes == uint64_t{1} << 30);
  CHECK(machine.cores.size() == 8);
  CHECK(machine.cores[3] == CpuList{3, 11});
  REQUIRE(machine.caches.size() == 12);
  CHECK(machine.caches[0] == Cache{3, uint64_t{32} << 20, {0, 1, 8, 9}});
  CHECK(machine.caches[4] == Cache{2, 512 << 10, {0, 8}});
  REQUIRE(machine.devices.size() == 2);
  CHECK(machine.devices[0] == Device{DeviceKind::network, "0000:01:00.0", "10de:2335", {"ib0", "mlx5_0"}, 0});
  CHECK(machine.devices[1] == Device{DeviceKind::gpu, "0000:81:00.0", "10de:2335", {"card1"}, 3});

  const auto read = parse_machine(format_machine(machine), "f");
  REQUIRE(read.ok());
  CHECK(*read == machine);
}

TEST_CASE("a system without files is one package with this process's CPUs", "[topology]") {
  const Machine machine = read_machine_files("/nonexistent", "/nonexistent");
  REQUIRE(machine.packages.size() == 1);
  CHECK(machine.packages[0].cpus == allowed_cpus());
  REQUIRE(machine.numa_nodes.size() == 1);
  CHECK(machine.numa_nodes[0].cpus == allowed_cpus());
  CHECK(machine.cores.size() == allowed_cpus().size());
  CHECK(machine.caches.empty());
}

TEST_CASE("this machine, written and read; hwloc and the files agree", "[topology]") {
  const auto machine = read_machine();
  REQUIRE(machine.ok());
  const auto read = parse_machine(format_machine(*machine), "f");
  REQUIRE(read.ok());
  CHECK(*read == *machine);
  const Machine files = read_machine_files();
  CHECK(files.cores == machine->cores);
  REQUIRE(files.packages.size() == machine->packages.size());
  for (size_t n = 0; n < files.packages.size(); ++n) CHECK(files.packages[n].cpus == machine->packages[n].cpus);
  REQUIRE(files.numa_nodes.size() == machine->numa_nodes.size());
  for (size_t n = 0; n < files.numa_nodes.size(); ++n) CHECK(files.numa_nodes[n].cpus == machine->numa_nodes[n].cpus);
  CHECK(files.interfaces == machine->interfaces);
}

TEST_CASE("a machine as XML of hwloc", "[topology]") {
  if (!has_hwloc()) {
    const auto refused = parse_machine_xml("<topology/>", "some.xml");
    CHECK(refused.status().code() == TUTTI_ERR_UNSUPPORTED);
    CHECK(refused.status().message().find("-Dhwloc=enabled") != std::string_view::npos);
    CHECK(export_machine_xml().status().code() == TUTTI_ERR_UNSUPPORTED);
    return;
  }
  std::ifstream file(TUTTI_TEST_XML);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto machine = parse_machine_xml(text, "two_packages.xml");
  REQUIRE(machine.ok());
  CHECK(machine->host_name == "node7");
  REQUIRE(machine->packages.size() == 2);
  CHECK(machine->packages[1].cpus == CpuList{2, 3});
  CHECK(machine->numa_nodes.size() == 2);
  CHECK(machine->numa_nodes[1].memory_bytes == uint64_t{1} << 30);
  CHECK(machine->cores == std::vector<CpuList>{{0}, {1}, {2}, {3}});
  CHECK(machine->caches == std::vector<Cache>{{3, 16 << 20, {0, 1}}, {3, 16 << 20, {2, 3}}});
  REQUIRE(machine->devices.size() == 2);
  CHECK(machine->devices[0] == Device{DeviceKind::gpu, "0000:81:00.0", "NVIDIA Corporation H200", {"card1"}, 1});
  CHECK(machine->devices[1] == Device{DeviceKind::network, "0000:82:00.0", "15b3:1021", {"ib0", "mlx5_0"}, 1});
  for (const std::string& bad : {std::string("<topology>"), std::string("<a/>"), text.substr(0, text.size() / 2)}) {
    const auto refused = parse_machine_xml(bad, "some.xml");
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().message().rfind("some.xml: ", 0) == 0);
  }
  const auto own = export_machine_xml();
  REQUIRE(own.ok());
  const auto again = parse_machine_xml(*own, "own");
  REQUIRE(again.ok());
  CHECK(again->cores == read_machine()->cores);
}

TEST_CASE("faults in a file of a machine are named", "[topology]") {
  check_refusals(
      {
          {"{", {"line 1"}},
          {R"({"tutti_topology": 1})", {"machine", "is missing"}},
          {R"({"tutti_topology": 1, "machine": {"socket": 1}})", {"machine.socket", "packages"}},
          {R"({"tutti_topology": 1, "machine": {"memory_bytes": "much"}})", {"machine.memory_bytes", "much"}},
          {R"({"tutti_topology": 1, "machine": {"cores": [{"cpus": "1-"}]}})", {"machine.cores[0].cpus", "1-"}},
          {R"({"tutti_topology": 1, "machine": {"devices": [{"kind": "disk"}]}})", {"machine.devices[0].kind", "disk", "gpu"}},
          {R"({"tutti_topology": 1, "machine": {"interfaces": [{"up": 1}]}})", {"machine.interfaces[0].up", "true or false"}},
          {R"({"tutti_topology": 1, "machine": {"packages": [{"number": 4000000000}]}})", {"machine.packages[0].number"}},
      },
      [](const char* text, const char* source) { return parse_machine(text, source); });
}
