// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Forcing an algorithm on one communicator.
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

constexpr uint64_t kCount = 1000;

/// Sums numbers that all ranks can check to the last bit.
void check_sum(tutti_comm_t comm, int rank, int size, Complaints& complaints, const std::string& what, uint64_t count = kCount) {
  std::vector<int32_t> own(kCount);
  std::iota(own.begin(), own.end(), rank * 1000);
  std::vector<int32_t> sum(kCount, -1);
  complaints.expect_status(tutti_allreduce(comm, own.data(), sum.data(), count, TUTTI_INT32, TUTTI_SUM), TUTTI_OK, what);
  for (uint64_t n = 0; n < kCount; ++n) {
    const auto wanted = n < count ? static_cast<int32_t>(n) * size + 1000 * (size * (size - 1) / 2) : -1;
    if (sum[n] == wanted) continue;
    complaints.expect(false, what + ": element " + std::to_string(n) + " is " + std::to_string(sum[n]));
    return;
  }
}

}  // namespace

TEST_CASE("an algorithm can be forced on a communicator, again and again") {
  const std::string faults = run_ranks(3, {}, [](tutti_comm_t comm, int rank, Complaints& complaints) {
    for (int round = 0; round < 2; ++round) {
      for (const char* algorithm : {"ring", "ring:channels=2", "flat", "tree:segment_bytes=1K", "recursive_doubling", ""}) {
        // Rank 0's text counts; the others may say what they like.
        const std::string text = rank == 0 ? algorithm : "nonsense";
        complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", text.c_str()), TUTTI_OK, algorithm);
        check_sum(comm, rank, 3, complaints, algorithm);
        check_sum(comm, rank, 3, complaints, algorithm);
      }
    }
  });
  CHECK(faults == "");
}

TEST_CASE("one plan serves lengths in any order, of one piece, of several and of none") {
  const std::string faults = run_ranks(3, {}, [](tutti_comm_t comm, int rank, Complaints& complaints) {
    for (const char* algorithm :
         {"flat:segment_bytes=1K", "tree:segment_bytes=1K", "recursive_doubling:segment_bytes=1K", "direct"}) {
      complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", algorithm), TUTTI_OK, algorithm);
      for (const uint64_t count : {1u, 7u, 256u, 257u, 1000u, 256u, 1000u, 2u, 0u, 3u, 0u, 1000u, 0u, 255u, 1u})
        check_sum(comm, rank, 3, complaints, algorithm + (" of " + std::to_string(count)), count);
    }
  });
  CHECK(faults == "");
}

TEST_CASE("an algorithm that cannot be used is an error on all ranks, and changes nothing") {
  const std::string faults = run_ranks(3, {}, [](tutti_comm_t comm, int rank, Complaints& complaints) {
    complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", "tree"), TUTTI_OK, "tree");
    for (const auto& [algorithm, told] :
         {std::pair{"rign", "'rign'"}, {"swing", "power of two"}, {"ring:channels=99", "1..16"}}) {
      const std::string text = rank == 0 ? algorithm : "ring";
      complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", text.c_str()), TUTTI_ERR_CONFIG, algorithm);
      complaints.expect(std::string(tutti_last_error()).find(told) != std::string::npos, tutti_last_error());
      check_sum(comm, rank, 3, complaints, algorithm);
    }
    complaints.expect_status(tutti_comm_set_algorithm(comm, "allredice", "ring"), TUTTI_ERR_ARGUMENT, "collective");
    complaints.expect_status(tutti_comm_set_algorithm(comm, nullptr, "ring"), TUTTI_ERR_ARGUMENT, "no collective");
    complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", nullptr), TUTTI_ERR_ARGUMENT, "no algorithm");
    check_sum(comm, rank, 3, complaints, "after bad arguments");
  });
  CHECK(faults == "");
}

TEST_CASE("what calls use can be asked for") {
  const std::string faults = run_ranks(3, {}, [](tutti_comm_t comm, int, Complaints& complaints) {
    const auto used = [&](const char* collective, uint64_t bytes) {
      char text[256] = "";
      complaints.expect_status(tutti_comm_get_algorithm(comm, collective, bytes, TUTTI_FLOAT32, TUTTI_SUM, text, sizeof text),
                               TUTTI_OK, collective);
      return std::string(text);
    };
    complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", "ring:segment_bytes=16K"), TUTTI_OK, "ring");
    complaints.expect(used("allreduce", 1000) == "ring:segment_bytes=16K,channels=1", used("allreduce", 1000));
    complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", ""), TUTTI_OK, "free");
    complaints.expect(used("allreduce", 8) != used("allreduce", 64 << 20),
                      "the same for 8 bytes and 64 MiB: " + used("allreduce", 8));
    complaints.expect(!used("barrier", 0).empty() && !used("alltoall", 12).empty(), "nothing for a barrier or an alltoall");

    char text[4] = "";
    complaints.expect_status(tutti_comm_get_algorithm(comm, "allreduce", 8, TUTTI_FLOAT32, TUTTI_SUM, text, sizeof text),
                             TUTTI_ERR_TRUNCATED, "no place");
    complaints.expect_status(tutti_comm_get_algorithm(comm, "alreduce", 8, TUTTI_FLOAT32, TUTTI_SUM, text, sizeof text),
                             TUTTI_ERR_ARGUMENT, "collective");
    complaints.expect(std::string(tutti_last_error()).find("did you mean 'allreduce'") != std::string::npos, tutti_last_error());
    complaints.expect_status(tutti_comm_get_algorithm(comm, "allreduce", 8, TUTTI_FLOAT32, TUTTI_BAND, text, sizeof text),
                             TUTTI_ERR_OP, "bits of floats");
    complaints.expect_status(tutti_comm_get_algorithm(comm, "allreduce", 8, TUTTI_FLOAT32, TUTTI_SUM, nullptr, 0),
                             TUTTI_ERR_ARGUMENT, "no text");
  });
  CHECK(faults == "");
}

TEST_CASE("persistent and outstanding calls are not disturbed when an algorithm is forced") {
  const std::string faults = run_ranks(3, {}, [](tutti_comm_t comm, int rank, Complaints& complaints) {
    int32_t own = rank + 1;
    int32_t sum = 0;
    tutti_request_t persistent = nullptr;
    complaints.expect_status(tutti_allreduce_init(comm, &own, &sum, 1, TUTTI_INT32, TUTTI_SUM, &persistent), TUTTI_OK, "init");
    for (const char* algorithm : {"ring", "flat", "tree", "double_tree"}) {
      int32_t other = 0;
      tutti_request_t outstanding = nullptr;
      complaints.expect_status(tutti_iallreduce(comm, &own, &other, 1, TUTTI_INT32, TUTTI_MAX, &outstanding), TUTTI_OK, "start");
      complaints.expect_status(tutti_comm_set_algorithm(comm, "allreduce", algorithm), TUTTI_OK, algorithm);
      complaints.expect_status(tutti_wait(&outstanding), TUTTI_OK, "wait");
      complaints.expect(other == 3, "maximum of an outstanding call");
      sum = 0;
      complaints.expect_status(tutti_start(persistent), TUTTI_OK, "start");
      complaints.expect_status(tutti_wait(&persistent), TUTTI_OK, "wait");
      complaints.expect(sum == 6, "sum of a persistent call");
    }
    complaints.expect_status(tutti_request_free(&persistent), TUTTI_OK, "free");
  });
  CHECK(faults == "");
}

TEST_CASE("a persistent call keeps its algorithm also where one rank's data have to be brought into form") {
  const std::string faults = run_ranks(4, {}, [](tutti_comm_t comm, int rank, Complaints& complaints) {
    std::vector<int32_t> to(4);
    std::vector<int32_t> from(4);
    tutti_request_t request = nullptr;
    // Rank 0 does in place what the others do not.
    complaints.expect_status(
        tutti_alltoall_init(comm, rank == 0 ? TUTTI_IN_PLACE : to.data(), from.data(), 1, TUTTI_INT32, &request), TUTTI_OK,
        "init");
    for (const char* algorithm : {"", "bruck", "pairwise", "spread_out"}) {
      complaints.expect_status(tutti_comm_set_algorithm(comm, "alltoall", algorithm), TUTTI_OK, algorithm);
      for (int peer = 0; peer < 4; ++peer) {
        const auto block = static_cast<size_t>(peer);
        (rank == 0 ? from : to)[block] = 10 * rank + peer;
      }
      complaints.expect_status(tutti_start(request), TUTTI_OK, "start");
      complaints.expect_status(tutti_wait(&request), TUTTI_OK, algorithm);
      complaints.expect(from == std::vector<int32_t>{rank, 10 + rank, 20 + rank, 30 + rank}, algorithm);
    }
    complaints.expect_status(tutti_request_free(&request), TUTTI_OK, "free");
  });
  CHECK(faults == "");
}

TEST_CASE("what is forced on one communicator leaves others alone") {
  const std::string faults = run_ranks(4, {}, [](tutti_comm_t comm, int rank, Complaints& complaints) {
    tutti_comm_t half = nullptr;
    complaints.expect_status(tutti_comm_split(comm, rank % 2, rank, &half), TUTTI_OK, "split");
    // Swing needs a power of two: the halves have that, and choose for themselves.
    complaints.expect_status(tutti_comm_set_algorithm(half, "allreduce", rank % 2 == 0 ? "swing" : "ring"), TUTTI_OK, "halves");
    check_sum(comm, rank, 4, complaints, "all");
    check_sum(half, rank / 2, 2, complaints, "half");
    complaints.expect_status(tutti_comm_destroy(half), TUTTI_OK, "destroy");
  });
  CHECK(faults == "");
}
