// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <numeric>

#include "job.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

std::vector<uint32_t> everybody(uint32_t size) {
  std::vector<uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

sim::Options options(uint32_t size, uint32_t caps) {
  sim::Options result;
  result.size = size;
  result.caps = [caps](uint32_t, uint32_t) { return caps; };
  return result;
}

struct Calls {
  explicit Calls(uint32_t size) : values(size), operations(size) {}
  void start(SimComm& comm, uint32_t rank, size_t count, const char* algorithm, Deadline deadline = {}) {
    values[rank].assign(count, 1);
    comm.allreduce(rank, values[rank], algorithm, operations[rank], deadline);
  }
  std::vector<std::vector<int64_t>> values;
  std::vector<CollectiveOperation> operations;
};

/// A rank that dies while the connection to it is being made cannot be reached; later it has failed.
bool names_a_peer(const Status& status) {
  return status.code() == TUTTI_ERR_PEER_FAILED || status.code() == TUTTI_ERR_CONNECT;
}

}  // namespace

TEST_CASE("with a rank dead every other one has an error that names it, within a second") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  constexpr uint32_t kSize = 8;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SimJob job(seed, options(kSize, caps));
    Calls calls(kSize);  // the victim's outlives its communicator
    SimComm comm(job, 1, everybody(kSize));
    const auto victim = static_cast<uint32_t>(seed % kSize);
    for (uint32_t r = 0; r < kSize; ++r) calls.start(comm, r, 20000, seed % 2 ? "ring" : "tree");
    // At some point in the middle of it.
    uint64_t steps = job.world.random_u64() % 300;
    job.drive([&] { return steps-- == 0; });
    const uint64_t died_at = job.world.now_ns();
    job.crash(victim);
    const auto survivors_done = [&] {
      for (uint32_t r = 0; r < kSize; ++r)
        if (r != victim && !calls.operations[r].done()) return false;
      return true;
    };
    INFO("seed " << seed);
    REQUIRE(job.drive(survivors_done, 60 * kSecondNs));
    CHECK(job.world.now_ns() - died_at < kSecondNs);
    uint32_t failed = 0;
    for (uint32_t r = 0; r < kSize; ++r) {
      const Status& result = calls.operations[r].result();
      if (r == victim || result.ok()) continue;  // success means the right result on that rank
      ++failed;
      CHECK(names_a_peer(result));
      CHECK(result.message().find("rank " + std::to_string(victim)) != std::string_view::npos);
    }
    // The call after it fails everywhere.
    Calls again(kSize);
    for (uint32_t r = 0; r < kSize; ++r)
      if (r != victim) again.start(comm, r, 10, seed % 2 ? "ring" : "tree");
    REQUIRE(job.drive(
        [&] {
          for (uint32_t r = 0; r < kSize; ++r)
            if (r != victim && !again.operations[r].done()) return false;
          return true;
        },
        60 * kSecondNs));
    for (uint32_t r = 0; r < kSize; ++r)
      if (r != victim) CHECK(names_a_peer(again.operations[r].result()));
  }
}

TEST_CASE("abort on one rank ends everybody's calls, and only on that communicator") {
  constexpr uint32_t kSize = 9;
  SimJob job(1, options(kSize, TUTTI_TP_CAP_MESSAGES));
  SimComm aborted(job, 1, everybody(kSize));
  SimComm other(job, 2, everybody(kSize));
  Calls calls(kSize);
  for (uint32_t r = 1; r < kSize; ++r) calls.start(aborted, r, 100, "recursive_doubling");
  job.drive([] { return false; }, kSecondNs);
  aborted.engine(0).abort(aborted.group(0));
  REQUIRE(job.drive([&] { return std::all_of(calls.operations.begin() + 1, calls.operations.end(), [](auto& o) { return o.done(); }); },
                    10 * kSecondNs));
  for (uint32_t r = 1; r < kSize; ++r) CHECK(calls.operations[r].result().code() == TUTTI_ERR_ABORTED);
  Calls fine(kSize);
  for (uint32_t r = 0; r < kSize; ++r) fine.start(other, r, 100, "ring");
  REQUIRE(job.drive([&] { return std::all_of(fine.operations.begin(), fine.operations.end(), [](auto& o) { return o.done(); }); }));
  for (uint32_t r = 0; r < kSize; ++r) {
    CHECK(fine.operations[r].result().ok());
    CHECK(fine.values[r][0] == kSize);
  }
}

TEST_CASE("a timeout names the rank that is not in the call, and everybody hears of it") {
  constexpr uint32_t kSize = 5;
  SimJob job(2, options(kSize, TUTTI_TP_CAP_SLOTS));
  Calls calls(kSize);
  SimComm comm(job, 1, everybody(kSize));
  for (uint32_t r = 0; r < kSize; ++r)
    if (r != 3) calls.start(comm, r, 100, "ring", job.after(2 * kSecondNs));
  const uint64_t start = job.world.now_ns();
  REQUIRE(job.drive([&] { return calls.operations[4].done() && calls.operations[0].done(); }, 60 * kSecondNs));
  CHECK(job.world.now_ns() - start >= 2 * kSecondNs);
  CHECK(job.world.now_ns() - start < 3 * kSecondNs);
  CHECK(calls.operations[4].result().code() == TUTTI_ERR_TIMEOUT);
  CHECK(comm.group(4).failed());
  REQUIRE(job.drive([&] { return comm.group(3).failed(); }, 10 * kSecondNs));
  CHECK(comm.group(3).failure().code() == TUTTI_ERR_TIMEOUT);
}

TEST_CASE("a rank that destroyed the communicator is no riddle for those that wait for it") {
  constexpr uint32_t kSize = 3;
  SimJob job(4, options(kSize, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, everybody(kSize));
  Calls first(kSize);
  for (uint32_t r = 0; r < kSize; ++r) first.start(comm, r, 2000, "ring");
  REQUIRE(job.drive([&] { return first.operations[1].done(); }));
  comm.leave(1);  // 0 and 2 may not have finished: what rank 1 owes them has been sent
  REQUIRE(job.drive([&] { return first.operations[0].done() && first.operations[2].done(); }, 60 * kSecondNs));
  CHECK(first.operations[0].result().ok());
  CHECK(first.operations[2].result().ok());
  // Its next call is one too many.
  Calls second(kSize);
  second.start(comm, 0, 10, "ring");
  second.start(comm, 2, 10, "ring");
  REQUIRE(job.drive([&] { return second.operations[0].done() && second.operations[2].done(); }, 60 * kSecondNs));
  CHECK(second.operations[0].result().code() == TUTTI_ERR_PEER_FAILED);
  CHECK(second.operations[2].result().code() == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("a rank that left the job fails only those who still wait for it") {
  constexpr uint32_t kSize = 4;
  SimJob job(6, options(kSize, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, everybody(kSize));
  SimComm pair(job, 2, {0, 1});
  Calls first(kSize);
  for (uint32_t r = 0; r < kSize; ++r) first.start(comm, r, 10, "tree");
  REQUIRE(job.drive([&] { return std::all_of(first.operations.begin(), first.operations.end(), [](auto& o) { return o.done(); }); }));
  comm.leave(3);
  job.leave(3);
  Calls second(2);
  for (uint32_t r = 0; r < 2; ++r) second.start(pair, r, 10, "ring");
  REQUIRE(job.drive([&] { return second.operations[0].done() && second.operations[1].done(); }));
  CHECK(second.operations[0].result().ok());
  Calls third(kSize);
  for (uint32_t r = 0; r < 3; ++r) third.start(comm, r, 10, "tree");
  REQUIRE(job.drive([&] { return third.operations[0].done() && third.operations[1].done() && third.operations[2].done(); },
                    60 * kSecondNs));
  for (uint32_t r = 0; r < 3; ++r) CHECK(third.operations[r].result().code() == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("different counts are a mismatch on all ranks, not a hang and not wrong data") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  constexpr uint32_t kSize = 4;
  SimJob job(8, options(kSize, caps));
  Calls calls(kSize);
  SimComm comm(job, 1, everybody(kSize));
  for (uint32_t r = 0; r < kSize; ++r) calls.start(comm, r, r == 2 ? 11 : 16, "recursive_doubling");
  REQUIRE(job.drive([&] { return std::all_of(calls.operations.begin(), calls.operations.end(), [](auto& o) { return o.done(); }); },
                    60 * kSecondNs));
  for (uint32_t r = 0; r < kSize; ++r)
    if (!calls.operations[r].result().ok()) CHECK(calls.operations[r].result().code() == TUTTI_ERR_MISMATCH);
  CHECK_FALSE(calls.operations[2].result().ok());
}
