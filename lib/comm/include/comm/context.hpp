// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "bootstrap/bootstrap.hpp"
#include "comm/fork_guard.hpp"
#include "comm/hooks.hpp"
#include "comm/request.hpp"
#include "engine/control.hpp"
#include "engine/engine.hpp"
#include "engine/fabric.hpp"
#include "select/tuning.hpp"
#include "topology/card.hpp"
#include "tutti/transport.h"

namespace tutti {

class Communicator;
class TransportHost;
struct StartCard;

/// The settings that force an algorithm, by Collective.
inline constexpr Setting kAlgorithmSettings[] = {
    Setting::allreduce,      Setting::reduce,   Setting::broadcast, Setting::allgather, Setting::gather,  Setting::scatter,
    Setting::reduce_scatter, Setting::alltoall, Setting::scan,      Setting::exscan,    Setting::barrier,
};

/// Which transports carry messages within nodes, and between them.
struct LinkFacts {
  std::vector<std::string> names;  ///< of all transports, in the order of the bits; the same on all ranks
  uint64_t within_node = 0;
  uint64_t between_nodes = 0;
  /// TuningKey::links.
  std::string text(bool on_one_node, bool rank_a_node) const;
};

struct ContextOptions {
  Config config;
  Hooks hooks;
  std::span<const tutti_transport_entry_t> built_in;
  /// Instead of the environment: an id or a store that the application brought, with rank and size.
  const tutti_unique_id_t* unique_id = nullptr;
  const tutti_store_t* store = nullptr;
  int rank = -1;
  int size = -1;
  std::string warning;               ///< to be logged once the job is found
  std::shared_ptr<void> keep_alive;  ///< goes with the context
};

/// One rank's presence in one job: its transports, engine and control thread. Shared by its communicators, and gone with the
/// last.
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// Finds the job and meets all its ranks. Blocks for `bootstrap_timeout` at most.
  static Result<std::shared_ptr<Context>> create(ContextOptions options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  uint32_t rank() const noexcept { return rank_; }
  uint32_t size() const noexcept { return size_; }
  const Config& config() const noexcept { return config_; }
  const Log& log() const noexcept { return log_; }
  const Clock& clock() const noexcept { return clock_; }
  Engine& engine() noexcept { return *engine_; }
  Fabric& fabric() noexcept { return *fabric_; }
  RequestPool& requests() noexcept { return requests_; }
  /// Where all ranks are: the same on all of them.
  const Topology& topology() const noexcept { return topology_.used; }
  /// What ranks found, not what was imagined for them.
  const Topology& found_topology() const noexcept { return topology_.found; }
  /// Longest segment that every pair can carry in a slot; agreed by all.
  uint64_t max_segment_bytes() const noexcept { return max_segment_bytes_; }
  /// Whether on every node all ranks reach each other through slots; agreed by all.
  bool node_slots() const noexcept { return node_slots_; }
  /// A setting that all ranks must agree on: rank 0's.
  const std::string& agreed(Setting setting) const;
  /// agreed(Setting::tuning_file) where rank 0 has a table to give; else it is "", or what is wrong with rank 0's file.
  static constexpr const char* kTuningFollows = "follows";
  /// Rank 0's table, as it goes to the others.
  const std::string& tuning_text() const noexcept { return tuning_text_; }
  /// Of the pairs of this rank.
  const LinkFacts& own_links() const noexcept { return own_links_; }
  /// What all ranks have agreed on; nullptr: no table.
  void share_tuning(std::shared_ptr<const TuningTable> tuning, LinkFacts links) {
    tuning_ = std::move(tuning);
    links_ = std::move(links);
  }
  const std::shared_ptr<const TuningTable>& tuning() const noexcept { return tuning_; }
  const LinkFacts& links() const noexcept { return links_; }
  uint64_t world_id() const noexcept { return world_id_; }
  bool in_forked_child() const noexcept { return guard_.in_child(); }
  /// nullptr past the last.
  const char* counter(size_t index, uint64_t* value);
  /// Something that lives as long as the context, made on first demand.
  const std::shared_ptr<void>& attachment(const std::function<std::shared_ptr<void>()>& make);

 private:
  struct PeerCount {
    uint64_t within_node = 0;
    uint64_t between_nodes = 0;
  };
  explicit Context(ContextOptions options);
  Status meet();
  Status find_job_info();
  void read_tuning_file();
  Status open_transports();
  Status exchange_addresses();
  Status take_topology(const std::vector<std::string>& cards);
  Status start_transports();
  Status choose_routes(const std::vector<std::string>& cards);
  Status start_engine();
  void collect_counter_names();
  void note_links(const std::vector<StartCard>& starts);
  void note_trouble(const char* transport, const std::string& line, tutti_status_t status);

  Config config_;
  Hooks hooks_;
  ContextOptions options_;
  Log log_;
  SystemClock clock_;
  SystemRandom random_;
  ForkGuard guard_;
  std::unique_ptr<Network> network_;
  BootstrapOptions bootstrap_;
  JobInfo job_;
  uint32_t rank_ = 0;
  uint32_t size_ = 1;
  uint64_t world_id_ = 0;
  uint64_t max_segment_bytes_ = 65536;
  bool node_slots_ = true;
  JobTopology topology_;
  std::map<std::string, std::string> agreed_;
  std::vector<std::map<std::string, std::string>> peer_addresses_;
  std::vector<std::unique_ptr<TransportHost>> transports_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ControlThread> control_;
  RequestPool requests_;
  std::string tuning_text_;
  LinkFacts own_links_;
  std::shared_ptr<const TuningTable> tuning_;
  LinkFacts links_;
  std::vector<PeerCount> peer_counts_;  // by transport
  std::string trouble_;                 // why transports did not start
  std::vector<std::string> counter_names_;
  std::mutex attachment_mutex_;
  std::shared_ptr<void> attachment_;
};

}  // namespace tutti
