// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Requests, split, abort, timeouts, threads.
#include <catch2/catch.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

int64_t sum_of_ones(tutti_comm_t comm, Complaints& c, const char* what) {
  int64_t one = 1;
  c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT64, TUTTI_SUM), TUTTI_OK, what);
  return one;
}

}  // namespace

TEST_CASE("non-blocking calls: many in flight, completed in any order, tested or waited for") {
  const char* transports = GENERATE("shm", "tcp");
  const std::string complaints = run_ranks(3, {{"transports", transports}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    constexpr size_t kCalls = 64;
    std::vector<std::vector<int32_t>> values(kCalls);
    std::vector<tutti_request_t> requests(kCalls);
    for (size_t i = 0; i < kCalls; ++i) {
      values[i].assign(1 + i * 97, rank + static_cast<int>(i));
      c.expect_status(tutti_iallreduce(comm, TUTTI_IN_PLACE, values[i].data(), values[i].size(), TUTTI_INT32, TUTTI_SUM, &requests[i]),
                      TUTTI_OK, "iallreduce");
    }
    // Every third by test, the last by wait first, the rest together.
    c.expect_status(tutti_wait(&requests[kCalls - 1]), TUTTI_OK, "wait");
    for (size_t i = 0; i < kCalls; i += 3) {
      int done = 0;
      while (requests[i] && !done) c.expect_status(tutti_test(&requests[i], &done), TUTTI_OK, "test");
    }
    std::vector<tutti_status_t> statuses(kCalls, -1);
    c.expect_status(tutti_wait_all(kCalls, requests.data(), statuses.data()), TUTTI_OK, "wait_all");
    for (size_t i = 0; i < kCalls; ++i) {
      c.expect(requests[i] == nullptr && statuses[i] == TUTTI_OK, "released");
      for (const int32_t value : values[i])
        if (value != 3 + 3 * static_cast<int>(i)) return c.expect(false, "call " + std::to_string(i));
    }
    tutti_request_t barrier = nullptr;
    c.expect_status(tutti_ibarrier(comm, &barrier), TUTTI_OK, "ibarrier");
    c.expect_status(tutti_request_free(&barrier), TUTTI_OK, "free");
    c.expect(barrier == nullptr, "free clears the handle");
    int32_t word = rank == 1 ? 77 : 0;
    tutti_request_t broadcast = nullptr;
    c.expect_status(tutti_ibroadcast(comm, &word, 1, TUTTI_INT32, 1, &broadcast), TUTTI_OK, "ibroadcast");
    const tutti_request_t copy = broadcast;
    c.expect_status(tutti_wait(&broadcast), TUTTI_OK, "wait");
    c.expect(word == 77, "broadcast word");
    tutti_request_t stale = copy;
    c.expect_status(tutti_wait(&stale), TUTTI_ERR_HANDLE, "a request that was waited for");
    c.expect(sum_of_ones(comm, c, "still in step") == 3, "still in step");
  });
  CHECK(complaints == "");
}

TEST_CASE("split by colour and key; either may be destroyed first") {
  const std::string complaints = run_ranks(5, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_comm_t half = nullptr;
    c.expect_status(tutti_comm_split(comm, rank % 2, -rank, &half), TUTTI_OK, "split");
    int size = 0;
    int own = -1;
    tutti_comm_size(half, &size);
    tutti_comm_rank(half, &own);
    c.expect(size == (rank % 2 ? 2 : 3), "size " + std::to_string(size));
    c.expect(own == (size - 1) - rank / 2, "ordered by key: " + std::to_string(own));
    c.expect(sum_of_ones(half, c, "half") == size, "sum in half");
    tutti_comm_t none = half;
    c.expect_status(tutti_comm_split(comm, rank == 2 ? 0 : TUTTI_COLOR_NONE, 0, &none), TUTTI_OK, "split off one");
    c.expect((none != nullptr) == (rank == 2), "only rank 2 is in it");
    if (none) {
      c.expect(sum_of_ones(none, c, "alone") == 1, "alone");
      tutti_comm_destroy(none);
    }
    tutti_comm_t quarter = nullptr;
    c.expect_status(tutti_comm_split(half, 0, 0, &quarter), TUTTI_OK, "split again");
    c.expect_status(tutti_comm_destroy(half), TUTTI_OK, "parent first");
    c.expect(sum_of_ones(quarter, c, "quarter") == size, "child outlives parent");
    c.expect_status(tutti_comm_destroy(quarter), TUTTI_OK, "destroy");
    c.expect(sum_of_ones(comm, c, "world") == 5, "world");
    int local_rank = -1;
    int local_size = -1;
    tutti_comm_local_rank(comm, &local_rank);
    tutti_comm_local_size(comm, &local_size);
    c.expect(local_rank == rank && local_size == 5, "one node");
  });
  CHECK(complaints == "");
}

TEST_CASE("node ids of tests make nodes") {
  std::atomic<int> locals{0};
  const std::string complaints = run_ranks(4, {{"node_id", "a"}}, [&](tutti_comm_t comm, int, Complaints&) {
    int local_size = 0;
    tutti_comm_local_size(comm, &local_size);
    locals += local_size;
  });
  CHECK(complaints == "");
  CHECK(locals == 16);
}

TEST_CASE("abort ends a waiting call on every rank") {
  const std::string complaints = run_ranks(3, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_comm_t other = nullptr;
    c.expect_status(tutti_comm_split(comm, 0, rank, &other), TUTTI_OK, "split");
    // Nobody is still on the way out of the split when it is aborted.
    c.expect(sum_of_ones(other, c, "before the abort") == 3, "before the abort");
    if (rank == 0) {
      c.expect_status(tutti_comm_abort(comm), TUTTI_OK, "abort");
      c.expect_status(tutti_barrier(comm), TUTTI_ERR_ABORTED, "after abort");
    } else {
      c.expect_status(tutti_barrier(comm), TUTTI_ERR_ABORTED, "waiting");
    }
    c.expect(sum_of_ones(other, c, "another communicator") == 3, "another communicator");
    tutti_comm_destroy(other);
  });
  CHECK(complaints == "");
}

TEST_CASE("a timeout ends the call with the name of the rank that is missing") {
  const std::string complaints = run_ranks(
      2, {},
      [](tutti_comm_t comm, int rank, Complaints& c) {
        if (rank != 0) {
          // Not in the call: hears of the failure in its next one.
          tutti_status_t status = TUTTI_OK;
          int32_t word = 0;
          status = tutti_recv(comm, &word, 1, TUTTI_INT32, 0, 1, nullptr);
          c.expect(status == TUTTI_ERR_TIMEOUT, tutti_last_error());
          return;
        }
        const auto start = std::chrono::steady_clock::now();
        c.expect_status(tutti_barrier(comm), TUTTI_ERR_TIMEOUT, "barrier");
        c.expect(std::strstr(tutti_last_error(), "rank 1") != nullptr, tutti_last_error());
        const auto passed = std::chrono::steady_clock::now() - start;
        c.expect(passed < std::chrono::seconds(5), "in time");
      },
      400);
  CHECK(complaints == "");
}

TEST_CASE("several communicators used by several threads at once") {
  const std::string complaints = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    constexpr size_t kThreads = 4;
    std::vector<tutti_comm_t> comms(kThreads);
    for (tutti_comm_t& one : comms) c.expect_status(tutti_comm_split(comm, 0, rank, &one), TUTTI_OK, "split");
    std::vector<std::thread> threads;
    std::vector<Complaints> found(kThreads);
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 300; ++i) {
          int64_t value = static_cast<int64_t>(t) * 10 + rank;
          found[t].expect_status(tutti_allreduce(comms[t], TUTTI_IN_PLACE, &value, 1, TUTTI_INT64, TUTTI_SUM), TUTTI_OK, "allreduce");
          if (value != static_cast<int64_t>(t) * 20 + 1) return found[t].expect(false, "wrong sum");
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const Complaints& one : found)
      for (const std::string& line : one.lines()) c.expect(false, line);
    for (const tutti_comm_t one : comms) tutti_comm_destroy(one);
  });
  CHECK(complaints == "");
}

TEST_CASE("of two threads in collectives of one communicator the second is refused") {
  const std::string complaints = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    int32_t go = 1;
    if (rank == 1) {
      c.expect_status(tutti_recv(comm, &go, 1, TUTTI_INT32, 0, 6, nullptr), TUTTI_OK, "go");
      c.expect_status(tutti_barrier(comm), TUTTI_OK, "barrier");
      return;
    }
    // Neither can complete before rank 1 comes, and that is told only by the one who was refused.
    std::atomic<int> refused{0};
    std::atomic<int> completed{0};
    const auto call = [&] {
      const tutti_status_t status = tutti_barrier(comm);
      if (status == TUTTI_OK) ++completed;
      if (status == TUTTI_ERR_CONCURRENT && ++refused == 1) tutti_send(comm, &go, 1, TUTTI_INT32, 1, 6);
    };
    std::thread first(call);
    std::thread second(call);
    first.join();
    second.join();
    c.expect(refused == 1 && completed == 1, "one refused, one completed");
  });
  CHECK(complaints == "");
}

namespace {

struct SharedStore {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
};

tutti_store_t store_over(SharedStore& shared) {
  tutti_store_t store;
  tutti_store_init(&store);
  store.user = &shared;
  store.prefix = "test/";
  store.set = [](void* user, const char* key, const void* value, size_t bytes) {
    auto* s = static_cast<SharedStore*>(user);
    const std::lock_guard<std::mutex> hold(s->mutex);
    s->values[key] = std::string(static_cast<const char*>(value), bytes);
    s->changed.notify_all();
    return 0;
  };
  store.get = [](void* user, const char* key, void* value, size_t capacity, size_t* bytes) {
    auto* s = static_cast<SharedStore*>(user);
    const std::lock_guard<std::mutex> hold(s->mutex);
    const auto found = s->values.find(key);
    if (found == s->values.end()) return 1;
    *bytes = found->second.size();
    std::memcpy(value, found->second.data(), std::min(capacity, found->second.size()));
    return 0;
  };
  store.wait = [](void* user, const char* key, int64_t timeout_ms) {
    auto* s = static_cast<SharedStore*>(user);
    std::unique_lock<std::mutex> hold(s->mutex);
    const auto there = [&] { return s->values.count(key) != 0; };
    return s->changed.wait_for(hold, std::chrono::milliseconds(timeout_ms), there) ? 0 : 1;
  };
  return store;
}

}  // namespace

TEST_CASE("communicators from a store of the caller's") {
  SharedStore shared;
  const tutti_store_t store = store_over(shared);
  std::vector<std::thread> ranks;
  std::vector<Complaints> found(3);
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back([&, rank] {
      Complaints& c = found[static_cast<size_t>(rank)];
      tutti_comm_t comm = nullptr;
      const tutti_status_t status = tutti_comm_create_from_store(&store, 3, rank, nullptr, &comm);
      c.expect_status(status, TUTTI_OK, "create");
      if (status != TUTTI_OK) return;
      c.expect(sum_of_ones(comm, c, "allreduce") == 3, "sum");
      tutti_comm_destroy(comm);
    });
  for (std::thread& rank : ranks) rank.join();
  for (const Complaints& one : found) CHECK(one.lines() == std::vector<std::string>{});
  for (const auto& [key, value] : shared.values) {
    CHECK(key.rfind("test/", 0) == 0);
    CHECK(value.size() < 4096);
  }
}

TEST_CASE("counters and the embedder's descriptor") {
  const std::string complaints = run_ranks(2, {{"control_thread", "off"}}, [](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_context_t context = nullptr;
    c.expect_status(tutti_comm_get_context(comm, &context), TUTTI_OK, "context");
    int fd = -1;
    c.expect_status(tutti_context_get_fd(context, &fd), TUTTI_OK, "fd");
    int64_t value = rank;
    tutti_request_t request = nullptr;
    c.expect_status(tutti_iallreduce(comm, TUTTI_IN_PLACE, &value, 1, TUTTI_INT64, TUTTI_SUM, &request), TUTTI_OK, "iallreduce");
    int done = 0;
    while (!done) {
      c.expect_status(tutti_context_progress(context), TUTTI_OK, "progress");
      c.expect_status(tutti_test(&request, &done), TUTTI_OK, "test");
    }
    c.expect(value == 1, "sum");
    const char* name = nullptr;
    uint64_t number = 0;
    bool operations = false;
    for (size_t i = 0; tutti_context_get_counter(context, i, &name, &number) == TUTTI_OK; ++i)
      operations = operations || (std::string(name) == "engine.operations" && number > 0);
    c.expect(operations, "engine.operations counts");
  });
  CHECK(complaints == "");
  // With the control thread the descriptor is not to be had.
  const std::string with_thread = run_ranks(1, {}, [](tutti_comm_t comm, int, Complaints& c) {
    tutti_context_t context = nullptr;
    int fd = -1;
    tutti_comm_get_context(comm, &context);
    c.expect_status(tutti_context_get_fd(context, &fd), TUTTI_ERR_UNSUPPORTED, "fd");
  });
  CHECK(with_thread == "");
}

TEST_CASE("a program that only polls has its timeout all the same, with and without a control thread") {
  const std::string control = GENERATE("on", "off");
  CHECK(run_ranks(
            2, {{"control_thread", control}},
            [](tutti_comm_t comm, int rank, Complaints& c) {
              if (rank != 0) return;
              int value = 0;
              int done = 0;
              tutti_request_t request = nullptr;
              c.expect_status(tutti_irecv(comm, &value, 1, TUTTI_INT32, 0, 1, &request), TUTTI_OK, "irecv");
              tutti_status_t status = TUTTI_OK;
              const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
              while (!done && status == TUTTI_OK && std::chrono::steady_clock::now() < limit)
                status = tutti_test(&request, &done);
              c.expect_status(status, TUTTI_ERR_TIMEOUT, "test");
            },
            100) == "");
}

TEST_CASE("a timeout of many centuries is none of microseconds") {
  CHECK(run_ranks(
            2, {},
            [](tutti_comm_t comm, int rank, Complaints& c) {
              int value = rank;
              if (rank == 1) {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                c.expect_status(tutti_send(comm, &value, 1, TUTTI_INT32, 0, 1), TUTTI_OK, "send");
              } else {
                c.expect_status(tutti_recv(comm, &value, 1, TUTTI_INT32, 1, 1, nullptr), TUTTI_OK, "recv");
              }
            },
            18'446'744'073'710) == "");
}

TEST_CASE("a rank that computes answers its peers although its last call undid the arming") {
  CHECK(run_ranks(
            2, {},
            [](tutti_comm_t comm, int rank, Complaints& c) {
              tutti_comm_t child = nullptr;
              c.expect_status(tutti_comm_split(comm, 0, rank, &child), TUTTI_OK, "split");
              // Long enough that the control thread has armed and sleeps; the call after it is the last.
              std::this_thread::sleep_for(std::chrono::milliseconds(200));
              static std::atomic<bool> over;
              over = false;
              c.expect_status(tutti_barrier(child), TUTTI_OK, "barrier");
              if (rank == 1) {
                tutti_comm_destroy(child);
                const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(15);
                while (!over && std::chrono::steady_clock::now() < limit)  // computes
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                return;
              }
              c.expect_status(tutti_barrier(child), TUTTI_ERR_PEER_FAILED, "barrier without the other rank");
              over = true;
              tutti_comm_destroy(child);
            },
            8000) == "");
}
