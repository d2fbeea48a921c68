// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <mutex>

namespace tutti::test {
namespace {

void run_rank(const tutti_unique_id_t& id, int size, int rank, const Settings& settings, int64_t timeout_ms,
              const tutti_hooks_t* hooks, const std::function<void(tutti_comm_t, int, Complaints&)>& body,
              Complaints& complaints) {
  tutti_config_t config = nullptr;
  complaints.expect_status(tutti_config_create(&config), TUTTI_OK, "config_create");
  for (const auto& [name, value] : settings)
    complaints.expect_status(tutti_config_set(config, name.c_str(), value.c_str()), TUTTI_OK, "config_set " + name);
  tutti_comm_options_t options;
  tutti_comm_options_init(&options);
  options.config = config;
  options.hooks = hooks;
  options.timeout_ms = timeout_ms;
  tutti_comm_t comm = nullptr;
  const tutti_status_t created = tutti_comm_create_from_id(&id, size, rank, &options, &comm);
  complaints.expect_status(created, TUTTI_OK, "create");
  tutti_config_destroy(config);
  if (created != TUTTI_OK) return;
  body(comm, rank, complaints);
  complaints.expect_status(tutti_comm_destroy(comm), TUTTI_OK, "destroy");
}

}  // namespace

std::string run_ranks(int size, const Settings& settings, const std::function<void(tutti_comm_t, int, Complaints&)>& body,
                      int64_t timeout_ms) {
  return run_ranks_with(
      size, [&](int) { return settings; }, body, timeout_ms);
}

std::string run_ranks_with(int size, const SettingsOf& settings, const std::function<void(tutti_comm_t, int, Complaints&)>& body,
                           int64_t timeout_ms, const tutti_hooks_t* hooks) {
  tutti_unique_id_t id;
  if (tutti_unique_id_create(nullptr, &id) != TUTTI_OK) return std::string("unique id: ") + tutti_last_error();
  std::vector<Complaints> complaints(static_cast<size_t>(size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < size; ++rank)
    ranks.emplace_back(
        [&, rank] { run_rank(id, size, rank, settings(rank), timeout_ms, hooks, body, complaints[static_cast<size_t>(rank)]); });
  for (std::thread& rank : ranks) rank.join();
  std::string all;
  for (int rank = 0; rank < size; ++rank)
    for (const std::string& line : complaints[static_cast<size_t>(rank)].lines())
      all += "rank " + std::to_string(rank) + ": " + line + "\n";
  return all;
}

}  // namespace tutti::test
