// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <system_error>
#include <thread>

#include "errors.hpp"

namespace tutti_perf {
namespace {

class Config {
 public:
  explicit Config(const Options& options) {
    require(tutti_config_create(&config_), "configuration");
    for (const auto& [setting, value] : options.settings) {
      const tutti_status_t status = tutti_config_set(config_, setting.c_str(), value.c_str());
      if (status == TUTTI_OK) continue;
      const std::string message = tutti_last_error();
      tutti_config_destroy(config_);
      throw UsageError(fmt::format("--set {}={}: {}", setting, value, message));
    }
    require(tutti_comm_options_init(&options_), "options");
    options_.config = config_;
  }
  ~Config() { tutti_config_destroy(config_); }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  const tutti_comm_options_t* options() const { return &options_; }

 private:
  tutti_config_t config_ = nullptr;
  tutti_comm_options_t options_{};
};

class Comm {
 public:
  explicit Comm(tutti_comm_t comm) : comm_(comm) {}
  ~Comm() { tutti_comm_destroy(comm_); }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  Member member() const {
    int rank = 0;
    int size = 0;
    require(tutti_comm_rank(comm_, &rank), "rank");
    require(tutti_comm_size(comm_, &size), "size");
    return {comm_, static_cast<uint32_t>(rank), static_cast<uint32_t>(size)};
  }

 private:
  tutti_comm_t comm_;
};

int complain(const std::string& who, const std::exception& problem, int code) {
  fmt::print(stderr, "tutti-perf: {}{}\n", who, problem.what());
  return code;
}

/// The body on one rank, with the communicator aborted when it fails.
int run_body(const Member& member, const std::function<int(const Member&)>& body) {
  const std::string who = fmt::format("rank {}: ", member.rank);
  try {
    return body(member);
  } catch (const UsageError& problem) {
    // Every rank sees the same options and would say the same: once is enough. The others wait until it is said, since a launcher
    // ends the job with the first rank that leaves.
    if (member.rank == 0) complain("", problem, kExitUsage);
    (void)tutti_barrier(member.comm);
    return kExitUsage;
  } catch (const std::exception& problem) {
    tutti_comm_abort(member.comm);
    return complain(who, problem, kExitRuntime);
  }
}

tutti_comm_t create_from_environment(const Config& config) {
  tutti_comm_t comm = nullptr;
  const tutti_status_t status = tutti_comm_create(config.options(), &comm);
  if (status == TUTTI_ERR_CONFIG) throw UsageError(tutti_last_error());
  require(status, "cannot create the communicator");
  return comm;
}

/// The id that all threads of all processes meet under: rank 0 of the processes makes it, the others get it from there.
tutti_unique_id_t agree_on_id(const Config& config, const Member& process) {
  tutti_unique_id_t id{};
  if (process.rank == 0) require(tutti_unique_id_create(config.options(), &id), "cannot create a unique id");
  require(tutti_broadcast(process.comm, id.bytes, sizeof id.bytes, TUTTI_UINT8, 0), "cannot pass on the unique id");
  return id;
}

int run_thread(const Config& config, const tutti_unique_id_t& id, int size, int rank,
               const std::function<int(const Member&)>& body) {
  try {
    tutti_comm_t created = nullptr;
    require(tutti_comm_create_from_id(&id, size, rank, config.options(), &created), "cannot create the communicator");
    const Comm comm(created);
    return run_body(comm.member(), body);
  } catch (const std::exception& problem) {
    return complain(fmt::format("rank {}: ", rank), problem, kExitRuntime);
  }
}

int run_threads(const Config& config, const Member& process, uint32_t threads, const std::function<int(const Member&)>& body) {
  const uint64_t size = uint64_t{process.size} * threads;
  if (size > INT32_MAX) throw UsageError(fmt::format("-t {}: {} ranks are too many", threads, size));
  const tutti_unique_id_t id = agree_on_id(config, process);
  std::vector<int> codes(threads, kExitOk);
  std::vector<std::thread> running;
  running.reserve(threads);
  try {
    for (uint32_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        const auto rank = static_cast<int>(process.rank * threads + t);
        codes[t] = run_thread(config, id, static_cast<int>(size), rank, body);
      });
    }
  } catch (const std::system_error& problem) {  // those that run will miss the others and end with an error
    codes.back() = complain(fmt::format("cannot start {} threads: ", threads), problem, kExitRuntime);
  }
  for (std::thread& thread : running) thread.join();
  return *std::max_element(codes.begin(), codes.end());
}

}  // namespace

void require(tutti_status_t status, const std::string& what) {
  if (status == TUTTI_OK) return;
  throw RunError(fmt::format("{}: {}: {}", what, tutti_status_string(status), tutti_last_error()));
}

int run_ranks(const Options& options, const std::function<int(const Member&)>& body) {
  const Config config(options);
  const Comm comm(create_from_environment(config));
  const Member process = comm.member();
  if (options.threads == 1) return run_body(process, body);
  return run_threads(config, process, options.threads, body);
}

}  // namespace tutti_perf
