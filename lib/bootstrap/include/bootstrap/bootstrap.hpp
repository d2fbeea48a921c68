// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "bootstrap/auth.hpp"
#include "bootstrap/environment.hpp"
#include "bootstrap/exchange.hpp"
#include "bootstrap/interface.hpp"
#include "bootstrap/net.hpp"
#include "bootstrap/secret.hpp"
#include "bootstrap/store.hpp"
#include "bootstrap/store_server.hpp"
#include "bootstrap/unique_id.hpp"
#include "tutti/tutti.h"

namespace tutti {

/// Everything pointed to outlives the Bootstrap and the JobInfo it gives.
struct BootstrapOptions {
  const Config* config = nullptr;
  const Log* log = nullptr;
  Random* random = nullptr;
  Network* network = nullptr;     // its clock is the clock
  EnvironmentLookup environment;  // process_environment() in production
  /// Instead of the environment: an id or a store that the application brought.
  const tutti_unique_id_t* unique_id = nullptr;
  const tutti_store_t* store = nullptr;
  int rank = -1;  // with unique_id or store
  int size = -1;
  /// Set from anywhere: the start ends with TUTTI_ERR_ABORTED.
  const std::atomic<bool>* abort = nullptr;
  /// false: whoever drives the Bootstrap and later JobInfo::host steps the store that rank 0 hosts (simulation).
  bool host_thread = true;
  ThreadStarter start_thread;
  /// Addresses to listen on instead of the interfaces of this machine (tests, simulation).
  std::vector<std::string> addresses;
  uint32_t version = kProtocolVersion;  // another one only in tests
};

/// What a process knows once it has found its job.
struct JobInfo {
  int rank = 0;
  int size = 1;
  int local_rank_hint = -1;  // the launcher's word; truth comes from the cards' host identities
  int local_size_hint = -1;
  Launcher launcher = Launcher::none;
  std::string job_id;               // for messages
  std::array<std::byte, 16> job{};  // the same on all ranks, different for every job
  Secret secret;                    // never empty: drawn by rank 0 where nothing else gives one
  bool insecure = false;            // the secret came over an unauthenticated connection
  bool single_host_hint = false;
  std::vector<std::string> addresses;  // chosen interface addresses, best first: for tutti_tp_open.bind_addresses
  std::string host_identity;
  std::unique_ptr<Store> store;     // null when size is 1; may be dropped after the exchange
  std::unique_ptr<StoreHost> host;  // on the rank that serves; keep until finished() or linger()
  Deadline deadline;                // of the start as a whole (setting bootstrap_timeout)
  uint32_t version = kProtocolVersion;
};

/// The start of a rank, without blocking. step() until true, then take().
class Bootstrap {
 public:
  static Result<std::unique_ptr<Bootstrap>> start(BootstrapOptions options);
  ~Bootstrap();
  Result<bool> step();
  /// Sleeps until step() may do something, or the deadline.
  void wait(Deadline deadline);
  JobInfo take();

 private:
  struct State;
  explicit Bootstrap(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// start, step and wait until done. Blocks for `bootstrap_timeout` at most.
Result<JobInfo> find_job(BootstrapOptions options);

/// Gives `card` to all and returns the cards of all, by rank. Blocks until the job's deadline at most. `abort` as above.
Result<std::vector<std::string>> exchange_cards(JobInfo& job, const BootstrapOptions& options, std::string card,
                                                std::string room = {});

/// The same without blocking.
std::unique_ptr<Exchange> start_exchange(JobInfo& job, const BootstrapOptions& options, std::string card, std::string room = {});

/// tutti_unique_id_create: serves a store on a thread until the job has met or `bootstrap_timeout` has passed twice, on
/// loopback and the chosen interfaces' addresses.
struct UniqueIdHost {
  tutti_unique_id_t id;
  std::unique_ptr<StoreHost> host;  // StoreHost::release() it, or keep it
};
Result<UniqueIdHost> create_unique_id(const BootstrapOptions& options);

}  // namespace tutti
