// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <deque>
#include <numeric>

#include "job.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

std::vector<uint32_t> everybody(uint32_t size) {
  std::vector<uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

sim::Options options(uint32_t size, uint32_t caps, uint32_t again_percent = 0) {
  sim::Options result;
  result.size = size;
  result.again_percent = again_percent;
  result.caps = [caps](uint32_t, uint32_t) { return caps; };
  return result;
}

/// All ranks start the allreduce; true when all got the right sums.
bool run_once(SimJob& job, SimComm& comm, const char* algorithm, size_t count) {
  const uint32_t size = comm.size();
  std::vector<std::vector<int64_t>> values(size);
  std::vector<CollectiveOperation> operations(size);
  for (uint32_t r = 0; r < size; ++r) {
    for (size_t i = 0; i < count; ++i) values[r].push_back(static_cast<int64_t>(r * 1000 + i));
    comm.allreduce(r, values[r], algorithm, operations[r]);
  }
  const auto all_done = [&] {
    return std::all_of(operations.begin(), operations.end(), [](const CollectiveOperation& o) { return o.done(); });
  };
  if (!job.drive(all_done)) {
    UNSCOPED_INFO("nothing happens any more, at " << job.world.now_ns() << " ns");
    return false;
  }
  const int64_t ranks_sum = static_cast<int64_t>(size) * (size - 1) / 2 * 1000;
  for (uint32_t r = 0; r < size; ++r) {
    if (!operations[r].result().ok()) {
      UNSCOPED_INFO("rank " << r << ": " << operations[r].result().message());
      return false;
    }
    for (size_t i = 0; i < count; ++i)
      if (values[r][i] != ranks_sum + static_cast<int64_t>(i * size)) {
        UNSCOPED_INFO("rank " << r << ", element " << i << ": " << values[r][i]);
        return false;
      }
  }
  return true;
}

}  // namespace

TEST_CASE("every allreduce algorithm is right over slots and over messages, under reordering and refusals") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  const uint32_t size = GENERATE(2u, 3u, 5u, 8u, 13u);
  for (const char* algorithm : {"ring", "recursive_doubling", "tree"})
    for (const size_t count : {size_t{1}, size_t{7}, size_t{1000}, size_t{5000}}) {
      SimJob job(size * 100 + count, options(size, caps, 20));
      SimComm comm(job, 1, everybody(size));
      INFO(algorithm << ", " << size << " ranks, " << count << " elements");
      CHECK(run_once(job, comm, algorithm, count));
      CHECK(run_once(job, comm, algorithm, count + 1));  // another size on the same plan
    }
}

TEST_CASE("a job of nodes: slots within, messages between") {
  sim::Options mixed = options(12, 0);
  mixed.caps = [](uint32_t a, uint32_t b) -> uint32_t { return a / 4 == b / 4 ? TUTTI_TP_CAP_SLOTS : TUTTI_TP_CAP_MESSAGES; };
  for (const char* algorithm : {"ring", "recursive_doubling", "tree"}) {
    SimJob job(5, mixed);
    SimComm comm(job, 1, everybody(12));
    CHECK(run_once(job, comm, algorithm, 3000));
  }
}

TEST_CASE("hundreds of ranks in one thread") {
  SimJob job(11, options(300, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, everybody(300));
  CHECK(run_once(job, comm, "tree", 64));
  CHECK(run_once(job, comm, "recursive_doubling", 64));
}

TEST_CASE("many collectives in flight on several communicators end in order and right") {
  constexpr uint32_t kSize = 6;
  constexpr size_t kCalls = 40;
  SimJob job(3, options(kSize, TUTTI_TP_CAP_SLOTS));
  SimComm whole(job, 1, everybody(kSize));
  SimComm odd(job, 2, {5, 3, 1});
  std::deque<std::vector<int64_t>> values;
  std::deque<CollectiveOperation> operations;
  const auto start = [&](SimComm& comm, uint32_t rank, size_t call) {
    values.push_back({static_cast<int64_t>(call), 1});
    operations.emplace_back();
    comm.allreduce(rank, values.back(), call % 2 ? "ring" : "tree", operations.back());
  };
  for (size_t call = 0; call < kCalls; ++call) {
    for (uint32_t r = 0; r < kSize; ++r) start(whole, r, call);
    for (uint32_t r = 0; r < odd.size(); ++r) start(odd, r, call);
  }
  REQUIRE(job.drive([&] {
    return std::all_of(operations.begin(), operations.end(), [](const CollectiveOperation& o) { return o.done(); });
  }));
  size_t at = 0;
  for (size_t call = 0; call < kCalls; ++call)
    for (uint32_t r = 0; r < kSize + odd.size(); ++r, ++at) {
      const int64_t members = r < kSize ? kSize : odd.size();
      REQUIRE(operations[at].result().ok());
      REQUIRE(values[at] == std::vector<int64_t>{static_cast<int64_t>(call) * members, members});
    }
}

TEST_CASE("the same seed gives the same run") {
  const auto digest = [](uint64_t seed) {
    SimJob job(seed, options(7, TUTTI_TP_CAP_MESSAGES, 30));
    SimComm comm(job, 1, everybody(7));
    REQUIRE(run_once(job, comm, "ring", 900));
    return job.world.digest();
  };
  CHECK(digest(42) == digest(42));
  CHECK(digest(42) != digest(43));
}
