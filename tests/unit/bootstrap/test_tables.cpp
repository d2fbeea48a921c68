// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <map>

#include "bootstrap/environment.hpp"
#include "bootstrap/interface.hpp"

using namespace tutti;

namespace {

using Variables = std::map<std::string, std::string, std::less<>>;

Result<LaunchInfo> detect(const Variables& variables) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  std::vector<const char*> environment;
  for (const std::string& line : lines) environment.push_back(line.c_str());
  environment.push_back(nullptr);
  Config config;
  REQUIRE(config.load_environment(environment.data()).ok());
  return detect_launch(config, [variables](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

Variables operator+(Variables a, const Variables& b) {
  for (const auto& [name, value] : b) a[name] = value;
  return a;
}

const Variables kTuttirun{{"TUTTI_LAUNCHER", "tuttirun"},
                          {"TUTTI_RANK", "2"},
                          {"TUTTI_SIZE", "4"},
                          {"TUTTI_LOCAL_RANK", "0"},
                          {"TUTTI_LOCAL_SIZE", "2"},
                          {"TUTTI_JOB_ID", "ab"},
                          {"TUTTI_RENDEZVOUS", "tcp://10.0.0.5:4711"}};
const Variables kHydra{{"PMI_FD", "6"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "3"}};
const Variables kOpenMpi{{"PMIX_RANK", "1"},
                         {"PMIX_NAMESPACE", "587530241"},
                         {"OMPI_COMM_WORLD_RANK", "1"},
                         {"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
const Variables kTorch{{"TORCHELASTIC_RUN_ID", "run"},
                       {"TORCHELASTIC_RESTART_COUNT", "1"},
                       {"RANK", "3"},
                       {"WORLD_SIZE", "8"},
                       {"LOCAL_RANK", "3"},
                       {"LOCAL_WORLD_SIZE", "4"},
                       {"MASTER_ADDR", "n1"},
                       {"MASTER_PORT", "29500"}};
const Variables kSlurm{{"SLURM_PROCID", "5"},
                       {"SLURM_STEP_ID", "0"},
                       {"SLURM_JOB_ID", "77"},
                       {"SLURM_STEP_NUM_TASKS", "6"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_STEP_NUM_NODES", "3"},
                       {"SLURM_STEP_NODELIST", "node[03-05]"},
                       {"SLURM_NTASKS", "9"}};

InterfaceAddress entry(std::string interface, std::string address, unsigned bits, bool physical = false) {
  InterfaceAddress made;
  made.interface = std::move(interface);
  made.address = std::move(address);
  made.prefix_bits = bits;
  made.physical = physical;
  made.loopback = made.interface == "lo";
  return made;
}

using Addresses = std::vector<std::string>;

}  // namespace

TEST_CASE("nothing set: one rank alone") {
  const LaunchInfo info = *detect({});
  CHECK(info.launcher == Launcher::none);
  CHECK(info.meeting == Meeting::alone);
  CHECK(info.size == 1);
}

TEST_CASE("tuttirun") {
  const LaunchInfo info = *detect(kTuttirun);
  CHECK(info.launcher == Launcher::tuttirun);
  CHECK(info.meeting == Meeting::served);
  CHECK(info.rank == 2);
  CHECK(info.size == 4);
  CHECK(info.local_size == 2);
  CHECK(info.job_id == "ab");
  CHECK(!info.single_host);
  CHECK(info.servers == std::vector<Endpoint>{{"10.0.0.5", 4711}});
  CHECK(detect(kTuttirun + Variables{{"TUTTI_LOCAL_SIZE", "4"}})->single_host);
}

TEST_CASE("by hand: TCP, a local socket, a file") {
  const Variables base{{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}};
  LaunchInfo info = *detect(base + Variables{{"TUTTI_RENDEZVOUS", "tcp://[fd00::5]:99,localhost:5"}});
  CHECK(info.launcher == Launcher::by_hand);
  CHECK(info.meeting == Meeting::rank_zero);
  CHECK(!info.single_host);
  CHECK(info.servers == std::vector<Endpoint>{{"fd00::5", 99}, {"localhost", 5}});
  info = *detect(base + Variables{{"TUTTI_RENDEZVOUS", "tcp://@here"}});
  CHECK(info.single_host);
  info = *detect(base + Variables{{"TUTTI_RENDEZVOUS", "file:///scratch/x"}});
  CHECK(info.meeting == Meeting::file);
  CHECK(info.path == "/scratch/x");
  CHECK(detect({{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "1"}})->meeting == Meeting::alone);
}

TEST_CASE("other launchers") {
  LaunchInfo info = *detect(kHydra);
  CHECK(info.launcher == Launcher::pmi);
  CHECK(info.meeting == Meeting::pmi);
  CHECK(info.pmi_fd == 6);
  CHECK(info.single_host);
  info = *detect({{"PMI_PORT", "n1:4000"}, {"PMI_ID", "2"}});
  CHECK(info.pmi_server == Endpoint{"n1", 4000});
  CHECK(info.rank == 2);
  CHECK(info.size == 0);
  info = *detect(kOpenMpi);
  CHECK(info.launcher == Launcher::pmix);
  CHECK(info.rank == 1);
  CHECK(info.size == 2);
  CHECK(info.single_host);
  info = *detect(kTorch);
  CHECK(info.launcher == Launcher::torchrun);
  CHECK(info.job_id == "run.1");
  CHECK(!info.single_host);
  REQUIRE(info.servers.size() > 1);
  CHECK(info.servers[0] == Endpoint{"n1", 29501});
  info = *detect(kTorch + Variables{{"LOCAL_WORLD_SIZE", "8"}});
  CHECK(info.single_host);
  CHECK(info.servers.at(0).is_unix());
  info = *detect(kSlurm);
  CHECK(info.launcher == Launcher::slurm);
  CHECK(info.rank == 5);
  CHECK(info.size == 6);
  CHECK(info.servers.at(0).host == "node03");
  CHECK(info.servers == detect(kSlurm + Variables{{"SLURM_PROCID", "0"}})->servers);
  CHECK(info.servers != detect(kSlurm + Variables{{"SLURM_STEP_ID", "1"}})->servers);
}

TEST_CASE("what an outer launcher left behind is not taken inside an inner one") {
  CHECK(detect(kSlurm + kTuttirun)->launcher == Launcher::tuttirun);
  CHECK(detect(kSlurm + kHydra)->launcher == Launcher::pmi);
  CHECK(detect(kSlurm + kOpenMpi)->launcher == Launcher::pmix);
  CHECK(detect(kSlurm + kTorch)->launcher == Launcher::torchrun);
  CHECK(detect(kTuttirun + kTorch)->launcher == Launcher::torchrun);
  CHECK(detect(kTuttirun + kHydra)->launcher == Launcher::pmi);
  // A RANK alone is anybody's, and a batch script is no step.
  CHECK(detect({{"RANK", "3"}})->launcher == Launcher::none);
  CHECK(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}})->launcher == Launcher::none);
}

TEST_CASE("contradictions name variable and value") {
  const Variables hand{{"TUTTI_RANK", "0"}, {"TUTTI_SIZE", "2"}, {"TUTTI_RENDEZVOUS", "tcp://127.0.0.1:7"}};
  const std::pair<Variables, std::string> cases[] = {
      {hand + Variables{{"TUTTI_SIZE", "0"}}, "TUTTI_SIZE is '0'"},
      {hand + Variables{{"TUTTI_SIZE", "-2"}}, "TUTTI_SIZE is '-2'"},
      {hand + Variables{{"TUTTI_RANK", "2"}}, "TUTTI_RANK is 2"},
      {hand + Variables{{"TUTTI_RANK", "-1"}}, "TUTTI_RANK is '-1'"},
      {hand + Variables{{"TUTTI_RANK", "1x"}}, "'1x'"},
      {hand + Variables{{"TUTTI_RANK", ""}}, "TUTTI_RANK is not set"},
      {hand + Variables{{"TUTTI_SIZE", ""}}, "TUTTI_SIZE is not set"},
      {hand + Variables{{"TUTTI_RENDEZVOUS", ""}}, "TUTTI_RENDEZVOUS"},
      {hand + Variables{{"TUTTI_RENDEZVOUS", "tcp://127.0.0.1:0"}}, "port '0'"},
      {hand + Variables{{"TUTTI_RENDEZVOUS", "tcp://127.0.0.1:70000"}}, "70000"},
      {hand + Variables{{"TUTTI_RENDEZVOUS", "tcp://:7"}}, "no host"},
      {hand + Variables{{"TUTTI_RENDEZVOUS", "tcp://"}}, "no port"},
      {hand + Variables{{"TUTTI_RENDEZVOUS", "file://x"}}, "absolute"},
      {hand + Variables{{"TUTTI_RENDEZVOUS", "udp://x:1"}}, "udp://x:1"},
      {kHydra + Variables{{"PMI_RANK", "3"}}, "PMI_RANK is 3"},
      {kTorch + Variables{{"WORLD_SIZE", "none"}}, "WORLD_SIZE is 'none'"},
      {kTorch + Variables{{"MASTER_PORT", ""}}, "MASTER_PORT"},
      {kSlurm + Variables{{"SLURM_STEP_NODELIST", "[1"}}, "SLURM_STEP_NODELIST"},
  };
  for (const auto& [variables, words] : cases) {
    const Result<LaunchInfo> info = detect(variables);
    INFO(words);
    REQUIRE(!info.ok());
    CHECK(info.status().code() == TUTTI_ERR_ENVIRONMENT);
    INFO(info.status().message());
    CHECK(info.status().message().find(words) != std::string_view::npos);
  }
}

TEST_CASE("the first host of a Slurm list") {
  const std::pair<std::string, std::string> good[] = {
      {"node[03-05,9],x1", "node03"}, {"n1", "n1"}, {"a,b", "a"}, {"rack[1-2]n[07,09]-ib", "rack1n07-ib"}, {"n[5]", "n5"}};
  for (const auto& [list, host] : good) CHECK(*first_slurm_host(list) == host);
  for (const std::string list : {"", ",a", "n[1-", "n[]", "n[-3]"}) {
    CHECK(first_slurm_host(list).status().code() == TUTTI_ERR_ENVIRONMENT);
  }
}

TEST_CASE("interfaces are chosen without a wish") {
  InterfaceAddress down = entry("docker0", "172.17.0.1", 16);
  down.up = false;
  const std::vector<InterfaceAddress> host{entry("lo", "127.0.0.1", 8), down, entry("veth12", "fe80::1%veth12", 64),
                                           entry("eth0", "10.0.0.5", 24, true)};
  CHECK(*choose_addresses(host, "") == Addresses{"10.0.0.5"});
  // Physical first, software last, IPv4 before IPv6; an alias on lo counts, the loopback itself does not.
  CHECK(*choose_addresses({entry("virbr0", "192.168.122.1", 24), entry("lo", "127.0.0.1", 8), entry("lo", "10.9.9.1", 32),
                           entry("eth1", "fd00::5", 64, true), entry("bond0", "10.2.0.1", 16),
                           entry("eth1", "10.1.0.1", 16, true), entry("lo", "::1", 128), entry("eth1", "169.254.3.3", 16, true)},
                          "") == Addresses{"10.1.0.1", "fd00::5", "10.2.0.1", "10.9.9.1", "192.168.122.1"});
  // Of a kind the fastest; one whose speed nobody knows after those that tell, in the kernel's order.
  const auto fast = [](std::string interface, std::string address, uint32_t speed_mbits, bool physical = true) {
    InterfaceAddress made = entry(std::move(interface), std::move(address), 24, physical);
    made.speed_mbits = speed_mbits;
    return made;
  };
  CHECK(*choose_addresses({fast("eth0", "10.0.0.1", 0), fast("eth1", "10.1.0.1", 1000), fast("eth2", "10.2.0.1", 100000),
                           fast("eth3", "10.3.0.1", 0), fast("bond0", "10.4.0.1", 200000, false), fast("eth2", "fd00::2", 100000)},
                          "") == Addresses{"10.2.0.1", "10.1.0.1", "10.0.0.1", "10.3.0.1", "fd00::2", "10.4.0.1"});
  CHECK(*choose_addresses({entry("lo", "127.0.0.1", 8), entry("lo", "10.9.9.1", 32)}, "") == Addresses{"10.9.9.1"});
  CHECK(*choose_addresses({entry("lo", "127.0.0.1", 8), entry("lo", "::1", 128)}, "") == Addresses{"127.0.0.1", "::1"});
}

TEST_CASE("wishes select by exact name, address and network, in their order") {
  const std::vector<InterfaceAddress> host{entry("lo", "127.0.0.1", 8), entry("eth0", "10.0.0.5", 24, true),
                                           entry("eth0", "fd00::5", 64, true), entry("eth01", "10.1.0.5", 24, true),
                                           entry("docker0", "172.17.0.1", 16)};
  CHECK(*choose_addresses(host, "eth0") == Addresses{"10.0.0.5", "fd00::5"});
  CHECK(*choose_addresses(host, "10.1.0.0/16, eth0") == Addresses{"10.1.0.5", "10.0.0.5", "fd00::5"});
  CHECK(*choose_addresses(host, "fd00::/8") == Addresses{"fd00::5"});
  CHECK(*choose_addresses(host, "10.0.0.0/8,10.0.0.5") == Addresses{"10.0.0.5", "10.1.0.5"});
  CHECK(*choose_addresses(host, "lo,docker0") == Addresses{"127.0.0.1", "172.17.0.1"});
  for (const std::string wish : {"eth", "eth0,ib0", "10.7.0.0/16", "10.0.0.0/33", "10.0.0.9", ","}) {
    const auto chosen = choose_addresses(host, wish);
    INFO(wish);
    REQUIRE(!chosen.ok());
    CHECK(chosen.status().code() == TUTTI_ERR_CONFIG);
  }
  CHECK(choose_addresses(host, "ib0").status().message().find("eth01 10.1.0.5/24") != std::string_view::npos);
}

TEST_CASE("this machine has interfaces, and jobs within it use its loopback") {
  const auto here = list_interface_addresses();
  REQUIRE(here.ok());
  const bool has_loopback = std::any_of(here->begin(), here->end(), [](const auto& e) { return e.loopback; });
  CHECK(has_loopback);
  CHECK(*choose_local_addresses(Config(), true) == Addresses{"127.0.0.1"});
}

TEST_CASE("a host's identity is not its name") {
  Config config;
  const std::string real = host_identity(config);
  CHECK(real == host_identity(config));
  CHECK(real.find("pid:[") != std::string::npos);
  REQUIRE(config.set("node_id", "n1.a").ok());
  const std::string one = host_identity(config);
  REQUIRE(config.set("node_id", "n1.b").ok());
  CHECK(one != host_identity(config));
}
