// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "../support/sim_world.hpp"
#include "base/log.hpp"
#include "engine/engine.hpp"
#include "engine/fabric.hpp"
#include "engine/group.hpp"
#include "schedule/algorithm.hpp"
#include "schedule/program.hpp"
#include "sim/world.hpp"
#include "tutti/transport.h"

namespace tutti::test {

/// One simulated rank: endpoint, fabric, engine, and groups, all in the world's virtual time.
class SimRank {
 public:
  SimRank(sim::World& world, uint32_t rank, uint32_t size, const tutti_tp_table_t* table);
  ~SimRank();
  void set_peers(const std::vector<std::string>& addresses);
  void choose_routes();
  /// Another engine in place of the rank's, with a clock of the test's.
  void renew_engine(const Clock& clock);

  sim::World& world;
  uint32_t rank;
  Fabric fabric;
  std::unique_ptr<Engine> engine;
  tutti_tp_endpoint_t* endpoint = nullptr;
  std::string address;
  bool dead = false;
  uint64_t timer_ns = 0;

 private:
  const tutti_tp_table_t* table_;
  SimClock clock_;
  Log log_;
  tutti_tp_host_t host_{};
  friend class SimJob;
};

/// A job of simulated ranks in one thread. drive() steps the world and the ranks that it woke.
class SimJob {
 public:
  /// table: of sim, or of something that decorates it.
  SimJob(uint64_t seed, sim::Options options, const tutti_tp_table_t* table = tutti_sim_transport_entry(TUTTI_TP_ABI_VERSION));
  ~SimJob();
  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
  Deadline after(uint64_t duration_ns) const { return {world.now_ns() + duration_ns}; }
  /// Until `done` holds; false if nothing would ever happen again (a deadlock) or the virtual limit has passed.
  bool drive(const std::function<bool()>& done, uint64_t limit_ns = 600'000'000'000);
  void crash(uint32_t rank);
  /// Closes the rank's endpoint in order.
  void leave(uint32_t rank);
  Capabilities capabilities(uint32_t rank) const;

  sim::World world;
  std::vector<std::unique_ptr<SimRank>> ranks;
  /// Called with true before an engine runs and with false after.
  std::function<void(bool)> around_engine = [](bool) {};

 private:
  const tutti_tp_table_t* table_;
  void poke(SimRank& rank);
};

/// A communicator of all (or some) ranks of a SimJob, with what its collectives need. Members are given in order.
class SimComm {
 public:
  SimComm(SimJob& job, uint64_t id, std::vector<uint32_t> members);
  ~SimComm();
  uint32_t size() const { return static_cast<uint32_t>(members_.size()); }
  Group& group(uint32_t rank) { return *groups_[rank]; }
  Engine& engine(uint32_t rank) { return *job_.ranks[members_[rank]]->engine; }
  /// Makes ready an int64 sum over `values` of each rank in place, by this algorithm with its default parameters.
  void prepare_allreduce(uint32_t rank, std::vector<int64_t>& values, const char* algorithm, CollectiveOperation& operation,
                         Deadline deadline = {});
  /// Makes ready any call, in place on `data`, by this algorithm of its collective.
  void prepare(uint32_t rank, const CallSignature& call, void* data, const char* algorithm, CollectiveOperation& operation,
               Deadline deadline = {});
  /// ... and starts it.
  void allreduce(uint32_t rank, std::vector<int64_t>& values, const char* algorithm, CollectiveOperation& operation,
                 Deadline deadline = {}) {
    prepare_allreduce(rank, values, algorithm, operation, deadline);
    engine(rank).submit(*groups_[rank], operation);
  }
  void send(uint32_t rank, const void* data, uint64_t bytes, uint32_t peer, int32_t tag, MessageOperation& operation,
            Deadline deadline = {});
  void recv(uint32_t rank, void* data, uint64_t bytes, uint32_t peer, int32_t tag, MessageOperation& operation,
            Deadline deadline = {});
  void leave(uint32_t rank);

 private:
  /// Plans are made by the driver, when the operation's turn comes; here simply ahead, in the same thread.
  Plan& plan(uint32_t rank, const CallSignature& call, const char* algorithm);

  SimJob& job_;
  std::vector<uint32_t> members_;
  std::vector<std::unique_ptr<Group>> groups_;
  using PlanKey = std::tuple<Collective, uint32_t, std::string>;  // with the root and the algorithm
  std::vector<std::map<PlanKey, std::unique_ptr<Plan>>> plans_;
};

}  // namespace tutti::test
