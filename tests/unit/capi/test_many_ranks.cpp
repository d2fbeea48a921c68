// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Hundreds of ranks in one process, many more than cores: whoever waits sleeps.
#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "job.hpp"
#include "tutti/tutti.h"

using namespace tutti::test;

namespace {

/// As many descriptors as the system lets this process have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

void call_everything(tutti_comm_t comm, int rank, int size, Complaints& c) {
  const auto ranks = static_cast<size_t>(size);
  int64_t sum = rank;
  c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &sum, 1, TUTTI_INT64, TUTTI_SUM), TUTTI_OK, "allreduce");
  c.expect(sum == int64_t{size} * (size - 1) / 2, "sum");
  std::vector<int32_t> values(100, rank == size - 1 ? 7 : 0);
  c.expect_status(tutti_broadcast(comm, values.data(), values.size(), TUTTI_INT32, size - 1), TUTTI_OK, "broadcast");
  c.expect(values == std::vector<int32_t>(100, 7), "what was broadcast");
  std::vector<int32_t> to(ranks);
  std::vector<int32_t> from(ranks);
  for (size_t peer = 0; peer < ranks; ++peer) to[peer] = rank * 1000 + static_cast<int32_t>(peer);
  c.expect_status(tutti_alltoall(comm, to.data(), from.data(), 1, TUTTI_INT32), TUTTI_OK, "alltoall");
  for (size_t peer = 0; peer < ranks; ++peer) {
    c.expect(from[peer] == static_cast<int32_t>(peer) * 1000 + rank, "block of rank " + std::to_string(peer));
  }
  c.expect_status(tutti_barrier(comm), TUTTI_OK, "barrier");
  int32_t got = -1;
  c.expect_status(tutti_sendrecv(comm, &rank, 1, TUTTI_INT32, (rank + 1) % size, 3, &got, 1, TUTTI_INT32,
                                 (rank + size - 1) % size, 3, nullptr),
                  TUTTI_OK, "sendrecv");
  c.expect(got == (rank + size - 1) % size, "message");
}

std::string run_many(int size, const char* transports) {
  raise_descriptor_limit();
  return run_ranks(
      size, {{"transports", transports}, {"control_thread", "off"}},
      [size](tutti_comm_t comm, int rank, Complaints& c) { call_everything(comm, rank, size, c); }, 120000);
}

}  // namespace

TEST_CASE("257 ranks in one process") { CHECK(run_many(257, "shm") == ""); }
TEST_CASE("300 ranks in one process") { CHECK(run_many(300, "shm") == ""); }
TEST_CASE("64 ranks in one process over tcp") { CHECK(run_many(64, "tcp") == ""); }
