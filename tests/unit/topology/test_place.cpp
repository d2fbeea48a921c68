// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "fake_system.hpp"
#include "topology/interfaces.hpp"
#include "topology/place.hpp"

using namespace tutti;
using namespace tutti::test;

TEST_CASE("CPU lists", "[topology]") {
  CHECK(parse_cpu_list("0-2,5,7-8") == CpuList{0, 1, 2, 5, 7, 8});
  CHECK(parse_cpu_list("8,0-1,1") == CpuList{0, 1, 8});
  CHECK(parse_cpu_list("").empty());
  CHECK(parse_cpu_list("3-1,4").empty());
  CHECK(parse_cpu_list("0-99999999").empty());
  CHECK(parse_cpu_list("1,x") == CpuList{1});
  CHECK(format_cpu_list({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
  CHECK(format_cpu_list({}).empty());
  CHECK(*check_cpu_list("0-2,5") == CpuList{0, 1, 2, 5});
  CHECK(check_cpu_list("")->empty());
  for (const std::string& text : std::vector<std::string>{"3-1", "x", "0-3,", ",1", "-1", "1,,2", "0-99999999", "1 2", "0-3,x"}) {
    INFO(text);
    const auto refused = check_cpu_list(text);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().message().find("'" + text + "'") != std::string_view::npos);
    CHECK(refused.status().message().find("0-3,8") != std::string_view::npos);
  }
  // The same CPUs again and again do not grow without a bound.
  std::string flood = "0-65535";
  for (int n = 0; n < 1000; ++n) flood += ",0-65535";
  CHECK(parse_cpu_list(flood).size() == 65536);
  CHECK_FALSE(check_cpu_list(flood).ok());
  CHECK(is_within({1, 3}, {0, 1, 2, 3}));
  CHECK(is_within({}, {0}));
  CHECK_FALSE(is_within({1, 4}, {0, 1, 2, 3}));
  CHECK_FALSE(allowed_cpus().empty());
}

TEST_CASE("where CPUs lie", "[topology]") {
  FakeSystem system;
  fill_two_packages(system);
  struct Case {
    const char* cpus;
    int package, numa, l3;
  };
  for (const Case& one : {Case{"5", 1, 2, 4}, Case{"4-5,12-13", 1, 2, 4}, Case{"3,11", 0, 1, 2}, Case{"4-7", 1, kSpread, kSpread},
                          Case{"0-3,8-11", 0, kSpread, kSpread}, Case{"3-4", kSpread, kSpread, kSpread},
                          Case{"0-15", kSpread, kSpread, kSpread}, Case{"77", kSpread, kSpread, kSpread}}) {
    INFO(one.cpus);
    const Place place = find_place(parse_cpu_list(one.cpus), system.path());
    CHECK(format_cpu_list(place.cpus) == one.cpus);
    CHECK(place.package == one.package);
    CHECK(place.numa == one.numa);
    CHECK(place.l3 == one.l3);
  }
}

TEST_CASE("a system that tells nothing, or nonsense, leaves places unknown", "[topology]") {
  CHECK(find_place({0, 1}, "/nonexistent").package == kSpread);
  CHECK(find_place({}).cpus.empty());
  FakeSystem system;
  system.cpu(0, "topology/physical_package_id", "-1");
  system.cpu(0, "topology/package_cpus_list", "0");
  system.cpu(0, "cache/index0/level", "3");
  system.cpu(0, "cache/index0/shared_cpu_list", "garbage");
  system.cpu(0, "nodeX/cpulist", "0");
  const Place place = find_place({0}, system.path());
  CHECK(place.package == kSpread);
  CHECK(place.numa == kSpread);
  CHECK(place.l3 == kSpread);
  // Kernels before 5.3 have the list of the package under another name.
  system.cpu(1, "topology/physical_package_id", "3");
  system.cpu(1, "topology/core_siblings_list", "0-1");
  CHECK(find_place({1}, system.path()).package == 3);
}

TEST_CASE("speeds of interfaces", "[topology]") {
  FakeSystem system;
  system.put("class/net/eth0/speed", "25000\n");
  system.put("class/net/eth1/speed", "-1\n");
  system.put("class/net/eth2/speed", "4294967295\n");
  system.put("class/net/eth3/speed", "fast\n");
  system.put("class/net/lo/mtu", "65536\n");
  CHECK(interface_speed_mbits("eth0", system.path()) == 25000);
  for (const char* unknown : {"eth1", "eth2", "eth3", "lo", "none"}) CHECK(interface_speed_mbits(unknown, system.path()) == 0);
  const auto here = list_interface_addresses();
  REQUIRE(here.ok());
  for (const InterfaceAddress& one : *here) {
    if (one.loopback) CHECK(one.speed_mbits == 0);
  }
}
