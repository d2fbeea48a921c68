// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// check=full: counts that ranks give for each other are compared one by one, before anything is sent.
#include <catch2/catch.hpp>
#include <functional>

#include "job.hpp"

using namespace tutti::test;

namespace {

constexpr int kRanks = 3;
using Counts = std::vector<uint64_t>;
using Body = std::function<tutti_status_t(tutti_comm_t, int rank)>;

/// The call fails on every rank, and every rank names both counts.
void check_refused(const std::string& what, const Body& call, const std::string& first, const std::string& second) {
  const std::string faults = run_ranks(kRanks, {{"check", "full"}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    c.expect_status(call(comm, rank), TUTTI_ERR_MISMATCH, what);
    const std::string told = tutti_last_error();
    for (const std::string& part : {first, second}) {
      c.expect(told.find(part) != std::string::npos, what + ", rank " + std::to_string(rank) + ": no '" + part + "' in: " + told);
    }
  });
  CHECK(faults == "");
}

int32_t memory_[kRanks][2][64];  // of each rank

}  // namespace

TEST_CASE("check=full: counts for each other that differ are named on every rank") {
  check_refused(
      "alltoallv",
      [](tutti_comm_t comm, int rank) {
        Counts sends(kRanks, 2);
        Counts expects(kRanks, 2);
        if (rank == 1) sends[2] = 5;
        const Counts places = {0, 10, 20};
        return tutti_alltoallv(comm, memory_[rank][0], sends.data(), places.data(), memory_[rank][1], expects.data(),
                               places.data(), TUTTI_INT32);
      },
      "rank 1 alltoall of 5 int32", "rank 2 alltoall of 2 int32");
  check_refused(
      "alltoallw",
      [](tutti_comm_t comm, int rank) {
        const Counts sends(kRanks, 2);
        Counts expects(kRanks, 2);
        if (rank == 0) expects[2] = 1;
        const Counts places = {0, 40, 80};
        const std::vector<tutti_dtype_t> types(kRanks, TUTTI_INT32);
        return tutti_alltoallw(comm, memory_[rank][0], sends.data(), places.data(), types.data(), memory_[rank][1],
                               expects.data(), places.data(), types.data());
      },
      "rank 0 alltoall of 4", "rank 2 alltoall of 8");
  check_refused(
      "gatherv",
      [](tutti_comm_t comm, int rank) {
        const Counts counts(kRanks, 3);
        return tutti_gatherv(comm, memory_[rank][0], rank == 2 ? 4 : 3, memory_[rank][1], counts.data(), nullptr, TUTTI_INT32, 1);
      },
      "rank 1 gather of 3 int32", "rank 2 gather of 4 int32");
  check_refused(
      "scatterv",
      [](tutti_comm_t comm, int rank) {
        const Counts counts = {1, 2, 3};
        return tutti_scatterv(comm, memory_[rank][0], counts.data(), nullptr, memory_[rank][1],
                              rank == 2 ? 1 : counts[static_cast<size_t>(rank)], TUTTI_INT32, 0);
      },
      "rank 0 scatter of 3 int32", "rank 2 scatter of 1 int32");
  // The sums are the same, and so are the lengths of what most algorithms send.
  check_refused(
      "allgatherv",
      [](tutti_comm_t comm, int rank) {
        const Counts counts = rank == 0 ? Counts{2, 3, 4} : Counts{2, 4, 3};
        return tutti_allgatherv(comm, memory_[rank][0], memory_[rank][1], counts.data(), nullptr, TUTTI_INT32);
      },
      "rank 0 allgather of 3 int32", "rank 1 allgather of 4 int32");
  check_refused(
      "reduce_scatterv",
      [](tutti_comm_t comm, int rank) {
        const Counts counts = rank == 2 ? Counts{5, 1, 1} : Counts{1, 5, 1};
        return tutti_reduce_scatterv(comm, memory_[rank][0], memory_[rank][1], counts.data(), TUTTI_INT32, TUTTI_SUM);
      },
      "rank 0 reduce_scatter of 1 int32", "rank 2 reduce_scatter of 5 int32");
}

TEST_CASE("check=full lets counts pass that go together") {
  const std::string faults = run_ranks(kRanks, {{"check", "full"}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    const auto own = static_cast<size_t>(rank);
    int32_t* const from = memory_[rank][0];
    int32_t* const to = memory_[rank][1];
    // From a to b go a + 2 * b elements.
    Counts sends;
    Counts expects;
    for (size_t other = 0; other < kRanks; ++other) {
      sends.push_back(own + 2 * other);
      expects.push_back(other + 2 * own);
    }
    const Counts places = {0, 10, 20};
    c.expect_status(tutti_alltoallv(comm, from, sends.data(), places.data(), to, expects.data(), places.data(), TUTTI_INT32),
                    TUTTI_OK, "alltoallv");
    const Counts alike(kRanks, 4);
    c.expect_status(tutti_alltoallv(comm, TUTTI_IN_PLACE, nullptr, nullptr, to, alike.data(), places.data(), TUTTI_INT32),
                    TUTTI_OK, "alltoallv in place");
    const Counts counts = {0, 3, 7};
    c.expect_status(tutti_gatherv(comm, from, counts[own], to, counts.data(), nullptr, TUTTI_INT32, 2), TUTTI_OK, "gatherv");
    c.expect_status(tutti_scatterv(comm, from, counts.data(), nullptr, to, counts[own], TUTTI_INT32, 2), TUTTI_OK, "scatterv");
    c.expect_status(tutti_allgatherv(comm, from, to, counts.data(), nullptr, TUTTI_INT32), TUTTI_OK, "allgatherv");
    c.expect_status(tutti_reduce_scatterv(comm, from, to, counts.data(), TUTTI_INT32, TUTTI_SUM), TUTTI_OK, "reduce_scatterv");
  });
  CHECK(faults == "");
}
