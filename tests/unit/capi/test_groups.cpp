// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Collectives that are launched together.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <numeric>

#include "job.hpp"

using namespace tutti::test;

namespace {

/// One call of a group, and the same call by itself for comparison.
struct Member {
  std::string what;
  std::vector<int32_t> input;
  std::vector<int32_t> output;
  std::vector<int32_t> expected;
  std::function<tutti_status_t(tutti_comm_t, int32_t* in, int32_t* out, tutti_request_t*)> init;
  bool in_place = false;
};

using Init = decltype(Member::init);

Member member(std::string what, size_t input_count, size_t output_count, Init init) {
  Member result;
  result.what = std::move(what);
  result.input.resize(input_count);
  result.output.resize(output_count);
  result.init = std::move(init);
  result.in_place = input_count == 0;
  return result;
}

/// Every collective several times, with lengths and forms that differ, and kinds that are mixed.
std::vector<Member> members_of(int size) {
  const auto p = static_cast<size_t>(size);
  std::vector<Member> all;
  for (const uint64_t count : {uint64_t{1}, uint64_t{7}, uint64_t{0}, uint64_t{300}, uint64_t{100000}}) {
    const std::string n = " of " + std::to_string(count);
    all.push_back(
        member("sum" + n, count, count, [count](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
          return tutti_allreduce_init(comm, in, out, count, TUTTI_INT32, TUTTI_SUM, request);
        }));
    all.push_back(
        member("max" + n, count, count, [count](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
          return tutti_allreduce_init(comm, in, out, count, TUTTI_INT32, TUTTI_MAX, request);
        }));
    all.push_back(
        member("sum in place" + n, 0, count, [count](tutti_comm_t comm, int32_t*, int32_t* out, tutti_request_t* request) {
          return tutti_allreduce_init(comm, TUTTI_IN_PLACE, out, count, TUTTI_INT32, TUTTI_SUM, request);
        }));
    for (const int root : {0, size - 1}) {
      all.push_back(member("broadcast" + n, 0, count, [=](tutti_comm_t comm, int32_t*, int32_t* out, tutti_request_t* request) {
        return tutti_broadcast_init(comm, out, count, TUTTI_INT32, root, request);
      }));
      all.push_back(
          member("reduce" + n, count, count, [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
            return tutti_reduce_init(comm, in, out, count, TUTTI_INT32, TUTTI_SUM, root, request);
          }));
      all.push_back(
          member("gather" + n, count, count * p, [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
            return tutti_gather_init(comm, in, out, count, TUTTI_INT32, root, request);
          }));
      all.push_back(
          member("scatter" + n, count * p, count, [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
            return tutti_scatter_init(comm, in, out, count, TUTTI_INT32, root, request);
          }));
    }
    all.push_back(
        member("allgather" + n, count, count * p, [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
          return tutti_allgather_init(comm, in, out, count, TUTTI_INT32, request);
        }));
    all.push_back(
        member("allgather in place" + n, 0, count * p, [=](tutti_comm_t comm, int32_t*, int32_t* out, tutti_request_t* request) {
          return tutti_allgather_init(comm, TUTTI_IN_PLACE, out, count, TUTTI_INT32, request);
        }));
    all.push_back(member("reduce_scatter" + n, count * p, count,
                         [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
                           return tutti_reduce_scatter_init(comm, in, out, count, TUTTI_INT32, TUTTI_SUM, request);
                         }));
    all.push_back(
        member("alltoall" + n, count * p, count * p, [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
          return tutti_alltoall_init(comm, in, out, count, TUTTI_INT32, request);
        }));
    all.push_back(
        member("alltoall in place" + n, 0, count * p, [=](tutti_comm_t comm, int32_t*, int32_t* out, tutti_request_t* request) {
          return tutti_alltoall_init(comm, TUTTI_IN_PLACE, out, count, TUTTI_INT32, request);
        }));
    all.push_back(member("scan" + n, count, count, [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
      return tutti_scan_init(comm, in, out, count, TUTTI_INT32, TUTTI_SUM, request);
    }));
    all.push_back(member("exscan" + n, count, count, [=](tutti_comm_t comm, int32_t* in, int32_t* out, tutti_request_t* request) {
      return tutti_exscan_init(comm, in, out, count, TUTTI_INT32, TUTTI_SUM, request);
    }));
  }
  all.push_back(member("barrier", 0, 0, [](tutti_comm_t comm, int32_t*, int32_t*, tutti_request_t* request) {
    return tutti_barrier_init(comm, request);
  }));
  return all;
}

void fill(Member& one, int rank, int round, size_t number) {
  const auto seed = static_cast<int32_t>(rank * 1000 + round * 100000) + static_cast<int32_t>(number);
  std::iota(one.input.begin(), one.input.end(), seed);
  std::iota(one.output.begin(), one.output.end(), one.in_place ? seed : -1);
  one.expected = one.output;
}

void run_group(tutti_comm_t comm, int rank, int size, Complaints& c) {
  std::vector<Member> all = members_of(size);
  tutti_group_t group = nullptr;
  c.expect_status(tutti_group_begin(comm, &group), TUTTI_OK, "begin");
  for (Member& one : all) {
    tutti_request_t call = nullptr;
    c.expect_status(one.init(comm, one.input.data(), one.output.data(), &call), TUTTI_OK, one.what);
    c.expect_status(tutti_group_add(group, call), TUTTI_OK, "add " + one.what);
    c.expect_status(tutti_request_free(&call), TUTTI_OK, "free " + one.what);
  }
  for (int round = 0; round < 3; ++round) {
    for (size_t n = 0; n < all.size(); ++n) {
      fill(all[n], rank, round, n);
      tutti_request_t alone = nullptr;
      c.expect_status(all[n].init(comm, all[n].input.data(), all[n].expected.data(), &alone), TUTTI_OK, all[n].what);
      c.expect_status(tutti_start(alone), TUTTI_OK, "start " + all[n].what);
      c.expect_status(tutti_wait(&alone), TUTTI_OK, "wait " + all[n].what);
      c.expect_status(tutti_request_free(&alone), TUTTI_OK, "free " + all[n].what);
    }
    tutti_request_t request = nullptr;
    c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect(request == nullptr, "the request of a launch is gone once waited for");
    for (const Member& one : all) c.expect(one.output == one.expected, one.what + " in round " + std::to_string(round));
  }
  c.expect_status(tutti_group_free(&group), TUTTI_OK, "free");
  c.expect(group == nullptr, "a freed handle is NULL");
}

uint64_t counter(tutti_comm_t comm, const std::string& wanted) {
  tutti_context_t context = nullptr;
  if (tutti_comm_get_context(comm, &context) != TUTTI_OK) return 0;
  for (size_t index = 0;; ++index) {
    const char* name = nullptr;
    uint64_t value = 0;
    if (tutti_context_get_counter(context, index, &name, &value) != TUTTI_OK) return 0;
    if (name == wanted) return value;
  }
}

}  // namespace

TEST_CASE("a group gives what its calls give one by one, again and again") {
  for (const int size : {1, 2, 3, 5}) {
    const std::string faults =
        run_ranks(size, {}, [size](tutti_comm_t comm, int rank, Complaints& c) { run_group(comm, rank, size, c); });
    CAPTURE(size);
    CHECK(faults == "");
  }
}

TEST_CASE("a group gives the same over TCP, in deterministic mode and with check=full") {
  const Settings settings = {{"transports", "tcp"}, {"deterministic", "on"}, {"check", "full"}};
  const std::string faults =
      run_ranks(3, settings, [](tutti_comm_t comm, int rank, Complaints& c) { run_group(comm, rank, 3, c); });
  CHECK(faults == "");
}

TEST_CASE("calls of a group share messages") {
  const std::string faults = run_ranks(2, {{"transports", "shm"}}, [](tutti_comm_t comm, int, Complaints& c) {
    constexpr size_t kCalls = 64;
    std::vector<std::vector<float>> values(kCalls, std::vector<float>(16, 1.0f));
    tutti_group_t group = nullptr;
    c.expect_status(tutti_group_begin(comm, &group), TUTTI_OK, "begin");
    for (std::vector<float>& one : values) {
      tutti_request_t call = nullptr;
      c.expect_status(tutti_allreduce_init(comm, TUTTI_IN_PLACE, one.data(), one.size(), TUTTI_FLOAT32, TUTTI_SUM, &call),
                      TUTTI_OK, "init");
      c.expect_status(tutti_group_add(group, call), TUTTI_OK, "add");
      c.expect_status(tutti_request_free(&call), TUTTI_OK, "free");
    }
    const uint64_t before = counter(comm, "shm.messages_sent");
    c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, values[0].data(), 16, TUTTI_FLOAT32, TUTTI_MAX), TUTTI_OK, "one alone");
    const uint64_t for_one = counter(comm, "shm.messages_sent") - before;
    tutti_request_t request = nullptr;
    c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    const uint64_t for_all = counter(comm, "shm.messages_sent") - before - for_one;
    c.expect(for_one > 0 && for_all <= 4 * for_one,
             std::to_string(for_all) + " messages for 64 calls, " + std::to_string(for_one) + " for one");
    c.expect(values == std::vector<std::vector<float>>(kCalls, std::vector<float>(16, 2.0f)), "sums");
    c.expect_status(tutti_group_free(&group), TUTTI_OK, "free");
  });
  CHECK(faults == "");
}

TEST_CASE("what is no call of a group is refused, and changes nothing") {
  const std::string faults = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    int32_t value = 1;
    int32_t other = 1;
    tutti_comm_t child = nullptr;
    c.expect_status(tutti_comm_split(comm, 0, rank, &child), TUTTI_OK, "split");
    tutti_group_t group = nullptr;
    c.expect_status(tutti_group_begin(nullptr, &group), TUTTI_ERR_HANDLE, "no communicator");
    c.expect_status(tutti_group_begin(comm, nullptr), TUTTI_ERR_ARGUMENT, "nowhere to put it");
    c.expect_status(tutti_group_begin(comm, &group), TUTTI_OK, "begin");

    tutti_request_t call = nullptr;
    c.expect_status(tutti_allreduce_init(child, TUTTI_IN_PLACE, &other, 1, TUTTI_INT32, TUTTI_SUM, &call), TUTTI_OK, "init");
    c.expect_status(tutti_group_add(group, call), TUTTI_ERR_ARGUMENT, "a call of another communicator");
    c.expect_status(tutti_request_free(&call), TUTTI_OK, "free");
    c.expect_status(tutti_group_add(group, nullptr), TUTTI_ERR_HANDLE, "no call");
    c.expect_status(tutti_iallreduce(comm, TUTTI_IN_PLACE, &other, 1, TUTTI_INT32, TUTTI_MAX, &call), TUTTI_OK, "start");
    c.expect_status(tutti_group_add(group, call), TUTTI_ERR_ARGUMENT, "a call that runs");
    c.expect_status(tutti_wait(&call), TUTTI_OK, "wait");

    tutti_request_t request = nullptr;
    c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "an empty group");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect_status(tutti_group_launch(group, nullptr), TUTTI_ERR_ARGUMENT, "nowhere to put the request");

    c.expect_status(tutti_allreduce_init(comm, TUTTI_IN_PLACE, &value, 1, TUTTI_INT32, TUTTI_SUM, &call), TUTTI_OK, "init");
    c.expect_status(tutti_group_add(group, call), TUTTI_OK, "add");
    c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
    tutti_request_t again = nullptr;
    c.expect_status(tutti_group_launch(group, &again), TUTTI_ERR_ARGUMENT, "launched while it runs");
    c.expect_status(tutti_group_add(group, call), TUTTI_ERR_ARGUMENT, "added to while it runs");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect(value == 2, "sum");

    // Nobody waits, and the group is gone before it has ended.
    c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
    tutti_group_t gone = group;
    c.expect_status(tutti_group_free(&group), TUTTI_OK, "free while it runs");
    c.expect_status(tutti_request_free(&request), TUTTI_OK, "free the request");
    c.expect_status(tutti_group_launch(gone, &request), TUTTI_ERR_HANDLE, "a group that was freed");
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "barrier");
    c.expect(value == 4, "sum of what nobody waited for");

    c.expect_status(tutti_group_begin(child, &group), TUTTI_OK, "begin");
    c.expect_status(tutti_comm_destroy(child), TUTTI_OK, "destroy");
    c.expect_status(tutti_group_launch(group, &request), TUTTI_ERR_HANDLE, "of a communicator that is gone");
    c.expect_status(tutti_group_free(&group), TUTTI_OK, "free");
    c.expect_status(tutti_request_free(&call), TUTTI_OK, "free");
  });
  CHECK(faults == "");
}

TEST_CASE("groups that differ are an error on every rank, also where the sums of their counts are the same") {
  for (const char* check : {"default", "full"}) {
    const Settings settings = std::strcmp(check, "full") == 0 ? Settings{{"check", "full"}} : Settings{};
    const std::string faults = run_ranks(3, settings, [](tutti_comm_t comm, int rank, Complaints& c) {
      int32_t values[3] = {1, 1, 1};
      tutti_group_t group = nullptr;
      c.expect_status(tutti_group_begin(comm, &group), TUTTI_OK, "begin");
      int32_t* place = values;
      for (const uint64_t count : {rank == 2 ? 1u : 2u, rank == 2 ? 2u : 1u}) {
        tutti_request_t call = nullptr;
        c.expect_status(tutti_allreduce_init(comm, TUTTI_IN_PLACE, place, count, TUTTI_INT32, TUTTI_SUM, &call), TUTTI_OK,
                        "init");
        c.expect_status(tutti_group_add(group, call), TUTTI_OK, "add");
        c.expect_status(tutti_request_free(&call), TUTTI_OK, "free");
        place += count;
      }
      tutti_request_t request = nullptr;
      c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
      c.expect_status(tutti_wait(&request), TUTTI_ERR_MISMATCH, "wait");
      c.expect(std::string(tutti_last_error()).find("of a group") != std::string::npos, tutti_last_error());
      c.expect_status(tutti_group_free(&group), TUTTI_OK, "free");
    });
    CAPTURE(check);
    CHECK(faults == "");
  }
}

TEST_CASE("an abort ends a group that runs") {
  const std::string faults = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    if (rank == 0) {
      std::vector<int32_t> values(200000, 1);
      tutti_group_t group = nullptr;
      c.expect_status(tutti_group_begin(comm, &group), TUTTI_OK, "begin");
      tutti_request_t call = nullptr;
      c.expect_status(tutti_allreduce_init(comm, TUTTI_IN_PLACE, values.data(), values.size(), TUTTI_INT32, TUTTI_SUM, &call),
                      TUTTI_OK, "init");
      c.expect_status(tutti_group_add(group, call), TUTTI_OK, "add");
      c.expect_status(tutti_request_free(&call), TUTTI_OK, "free");
      tutti_request_t request = nullptr;
      c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
      c.expect_status(tutti_comm_abort(comm), TUTTI_OK, "abort");
      c.expect_status(tutti_wait(&request), TUTTI_ERR_ABORTED, "wait");
      c.expect_status(tutti_group_launch(group, &request), TUTTI_ERR_ABORTED, "launched on what has failed");
      c.expect_status(tutti_group_free(&group), TUTTI_OK, "free");
    } else {  // does not leave before, which would be an end of its own
      int32_t word = 0;
      c.expect_status(tutti_recv(comm, &word, 1, TUTTI_INT32, 0, 1, nullptr), TUTTI_ERR_ABORTED, "recv");
    }
  });
  CHECK(faults == "");
}

TEST_CASE("factors of scaled sums are each rank's own, and change nothing about which calls are joined") {
  const std::string faults = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_op_t ops[2] = {};
    float values[2] = {2, 2};
    tutti_group_t group = nullptr;
    c.expect_status(tutti_group_begin(comm, &group), TUTTI_OK, "begin");
    for (int n = 0; n < 2; ++n) {
      // Rank 0 has one factor for both, rank 1 two.
      c.expect_status(tutti_op_create_scaled_sum(rank == 0 ? 0.5 : 1.0 + n, &ops[n]), TUTTI_OK, "op");
      tutti_request_t call = nullptr;
      c.expect_status(tutti_allreduce_init(comm, TUTTI_IN_PLACE, &values[n], 1, TUTTI_FLOAT32, ops[n], &call), TUTTI_OK, "init");
      c.expect_status(tutti_group_add(group, call), TUTTI_OK, "add");
      c.expect_status(tutti_request_free(&call), TUTTI_OK, "free");
    }
    tutti_request_t request = nullptr;
    c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect(values[0] == 3 && values[1] == 5, "sums");
    c.expect_status(tutti_group_free(&group), TUTTI_OK, "free");
    for (const tutti_op_t op : ops) c.expect_status(tutti_op_destroy(op), TUTTI_OK, "destroy");
  });
  CHECK(faults == "");
}

TEST_CASE("what a scatter in place sends is only read, in a group as well") {
  static const int32_t kTable[4] = {1, 2, 3, 4};  // in pages that cannot be written
  const std::string faults = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    int32_t got[2] = {};
    tutti_group_t group = nullptr;
    c.expect_status(tutti_group_begin(comm, &group), TUTTI_OK, "begin");
    for (int n = 0; n < 2; ++n) {
      void* own = rank == 0 ? TUTTI_IN_PLACE : static_cast<void*>(&got[n]);
      tutti_request_t call = nullptr;
      c.expect_status(tutti_scatter_init(comm, kTable + 2 * n, own, 1, TUTTI_INT32, 0, &call), TUTTI_OK, "init");
      c.expect_status(tutti_group_add(group, call), TUTTI_OK, "add");
      c.expect_status(tutti_request_free(&call), TUTTI_OK, "free");
    }
    tutti_request_t request = nullptr;
    c.expect_status(tutti_group_launch(group, &request), TUTTI_OK, "launch");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect(rank == 0 || (got[0] == 2 && got[1] == 4), "blocks");
    c.expect_status(tutti_group_free(&group), TUTTI_OK, "free");
  });
  CHECK(faults == "");
}
