// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// What the library owes to a program that polls, forks, and has threads of its own.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

TEST_CASE("the embedder's descriptor tells when a timeout has passed") {
  const std::string complaints = run_ranks(
      1, {{"control_thread", "off"}},
      [](tutti_comm_t comm, int, Complaints& c) {
        tutti_context_t context = nullptr;
        pollfd wanted{-1, POLLIN, 0};
        c.expect_status(tutti_comm_get_context(comm, &context), TUTTI_OK, "context");
        c.expect_status(tutti_context_get_fd(context, &wanted.fd), TUTTI_OK, "fd");
        const auto timeout = std::chrono::milliseconds(100);
        const auto start = std::chrono::steady_clock::now();
        int32_t word = 0;
        tutti_request_t request = nullptr;
        c.expect_status(tutti_irecv(comm, &word, 1, TUTTI_INT32, 0, 1, &request), TUTTI_OK, "irecv");
        // Nothing happens but that time passes; each time the descriptor has to say so.
        while (std::chrono::steady_clock::now() - start <= timeout) {
          if (poll(&wanted, 1, 20'000) != 1) return c.expect(false, "the descriptor told nothing for 20 s");
          c.expect_status(tutti_context_progress(context), TUTTI_OK, "progress");
        }
        int done = 0;
        c.expect_status(tutti_test(&request, &done), TUTTI_ERR_TIMEOUT, "test");
      },
      100);
  CHECK(complaints == "");
}

TEST_CASE("settings made before a fork are the parent's") {
  tutti_config_t config = nullptr;
  REQUIRE(tutti_config_create(&config) == TUTTI_OK);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    tutti_comm_options_t options;
    tutti_comm_options_init(&options);
    options.config = config;
    tutti_comm_t comm = nullptr;
    tutti_config_t own = nullptr;
    const bool refused = tutti_config_set(config, "timeout", "1s") == TUTTI_ERR_FORKED &&
                         tutti_comm_create(&options, &comm) == TUTTI_ERR_FORKED &&
                         tutti_config_destroy(config) == TUTTI_ERR_FORKED;
    const bool allowed = tutti_config_create(&own) == TUTTI_OK && tutti_config_set(own, "timeout", "1s") == TUTTI_OK &&
                         tutti_config_destroy(own) == TUTTI_OK;
    _exit(refused && allowed ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(tutti_config_set(config, "timeout", "1s") == TUTTI_OK);
  CHECK(tutti_config_destroy(config) == TUTTI_OK);
}

TEST_CASE("threads that take up one id at the same moment, while others make ids, share one rendezvous") {
  constexpr int kRanks = 3;
  for (int round = 0; round < 15; ++round) {
    tutti_unique_id_t id;
    REQUIRE(tutti_unique_id_create(nullptr, &id) == TUTTI_OK);
    std::atomic<int> waiting{kRanks + 1};
    std::vector<Complaints> found(kRanks + 1);
    std::vector<std::thread> threads;
    for (int rank = 0; rank <= kRanks; ++rank)
      threads.emplace_back([&, rank] {
        Complaints& c = found[static_cast<size_t>(rank)];
        --waiting;
        while (waiting > 0) std::this_thread::yield();
        if (rank == kRanks) {  // clears away ids whose job has met, and makes one that nobody takes up
          tutti_unique_id_t other;
          c.expect_status(tutti_unique_id_create(nullptr, &other), TUTTI_OK, "another id");
          tutti_comm_t alone = nullptr;
          c.expect_status(tutti_comm_create_from_id(&other, 1, 0, nullptr, &alone), TUTTI_OK, "alone");
          c.expect_status(tutti_comm_destroy(alone), TUTTI_OK, "destroy");
          return;
        }
        tutti_comm_t comm = nullptr;
        const tutti_status_t status = tutti_comm_create_from_id(&id, kRanks, rank, nullptr, &comm);
        c.expect_status(status, TUTTI_OK, "create");
        if (status != TUTTI_OK) return;
        int64_t one = 1;
        c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), TUTTI_OK, "allreduce");
        c.expect(one == kRanks, "the sum");
        c.expect_status(tutti_comm_destroy(comm), TUTTI_OK, "destroy");
      });
    for (std::thread& thread : threads) thread.join();
    for (const Complaints& one : found) REQUIRE(one.lines() == std::vector<std::string>{});
  }
}
