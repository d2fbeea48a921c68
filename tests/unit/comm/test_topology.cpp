// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks of different settings and affinities come to one topology.
#include <sched.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "comm/context.hpp"

extern "C" const tutti_tp_table_t* tutti_tcp_transport_entry(uint32_t host_abi_version);

using namespace tutti;

namespace {

constexpr tutti_transport_entry_t kTransports[] = {tutti_tcp_transport_entry};

struct Met {
  Status status;
  Topology topology;
};

/// A context on a thread for each rank; `prepare` runs on it first.
std::vector<Met> meet(uint32_t size, const std::function<Status(uint32_t, Config&)>& prepare) {
  Config config;
  const Log log(make_stderr_sink(), LogLevel::warn, "test");
  SystemRandom random;
  const std::unique_ptr<Network> network = make_system_network();
  BootstrapOptions bootstrap;
  bootstrap.config = &config;
  bootstrap.log = &log;
  bootstrap.random = &random;
  bootstrap.network = network.get();
  const Result<UniqueIdHost> host = create_unique_id(bootstrap);
  REQUIRE(host.ok());
  std::vector<Met> met(size);
  std::vector<std::thread> ranks;
  for (uint32_t rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      ContextOptions options;
      met[rank].status = prepare(rank, options.config);
      if (!met[rank].status.ok()) return;
      options.built_in = kTransports;
      options.unique_id = &host->id;
      options.rank = static_cast<int>(rank);
      options.size = static_cast<int>(size);
      const Result<std::shared_ptr<Context>> context = Context::create(std::move(options));
      met[rank].status = context.status();
      if (context.ok()) met[rank].topology = (*context)->topology();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return met;
}

void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

TEST_CASE("every rank has the same topology", "[comm]") {
  const CpuList cpus = allowed_cpus();
  const std::vector<Met> met = meet(5, [&](uint32_t rank, Config& config) {
    // Rank 0 as it is, the others bound to a CPU; ranks 3 and 4 on a node of their own, where they say which package.
    if (rank > 0) bind_to(cpus[rank % cpus.size()]);
    if (rank < 3) return Status();
    TUTTI_TRY(config.set("node_id", "far"));
    return config.set("package_id", std::to_string(rank));
  });
  for (const Met& one : met) {
    INFO(one.status.message());
    REQUIRE(one.status.ok());
    CHECK(one.topology == met[0].topology);
  }
  const Topology& topology = met[0].topology;
  REQUIRE(topology.size() == 5);
  CHECK(topology.node_count() == 2);
  CHECK(topology.place(0).cpus == cpus);
  CHECK(topology.place(2).cpus == CpuList{cpus[2 % cpus.size()]});
  CHECK(topology.place(2).package == find_place({cpus[2 % cpus.size()]}).package);
  CHECK(topology.place(4).package == 4);
  CHECK(topology.place(4).machine == topology.place(0).machine);
}

TEST_CASE("a rank alone has a topology", "[comm]") {
  const std::vector<Met> met = meet(1, [](uint32_t, Config&) { return Status(); });
  REQUIRE(met[0].status.ok());
  REQUIRE(met[0].topology.size() == 1);
  CHECK(met[0].topology.place(0).cpus == allowed_cpus());
}

TEST_CASE("what is wrong on one rank is an error on all, at once", "[comm]") {
  const std::string file = (std::filesystem::temp_directory_path() / fmt::format("tutti-places-{}", ::getpid())).string();
  std::ofstream(file) << R"({"tutti_topology": 1, "places": [{"ranks": "0-1", "host": "a"}]})";
  const SystemClock clock;
  const uint64_t began_ns = clock.now_ns();
  for (const std::string& setting : std::vector<std::string>{"topology_file", "package_id"}) {
    const std::vector<Met> met = meet(3, [&](uint32_t rank, Config& config) {
      return rank == 0 ? config.set(setting, file) : Status();
    });
    for (const Met& one : met) {
      CHECK(one.status.code() == TUTTI_ERR_CONFIG);
      const std::string message(one.status.message());
      INFO(message);
      CHECK(message.find(setting) != std::string::npos);
      CHECK(message.find(file) != std::string::npos);
      CHECK(message == met[0].status.message());
    }
  }
  std::filesystem::remove(file);
  CHECK(clock.now_ns() - began_ns < 20'000'000'000);
}
