// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Types and operations of the caller's, persistent calls, many at once, what is refused, deterministic mode.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

/// Affine maps compose associatively, but the order matters. The user pointer counts calls.
struct Affine {
  uint32_t scale, offset;
};
void compose(const void* left, void* right_and_result, uint64_t count, tutti_dtype_t, void* user) {
  const auto* a = static_cast<const unsigned char*>(left);
  auto* b = static_cast<unsigned char*>(right_and_result);
  for (uint64_t i = 0; i < count; ++i) {
    Affine x;
    Affine y;
    std::memcpy(&x, a + i * sizeof x, sizeof x);
    std::memcpy(&y, b + i * sizeof y, sizeof y);
    const Affine z{x.scale * y.scale, x.scale * y.offset + x.offset};
    std::memcpy(b + i * sizeof z, &z, sizeof z);
  }
  static_cast<std::atomic<int>*>(user)->fetch_add(1);
}
Affine map_of(int rank, uint64_t i) {
  return {static_cast<uint32_t>(2 * rank + 3), static_cast<uint32_t>(rank * 100) + static_cast<uint32_t>(i)};
}

std::vector<Affine> maps(int rank, uint64_t count) {
  std::vector<Affine> all;
  for (uint64_t i = 0; i < count; ++i) all.push_back(map_of(rank, i));
  return all;
}
bool same(const std::vector<Affine>& a, const std::vector<Affine>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(Affine)) == 0;
}

}  // namespace

TEST_CASE("the caller's operations keep the order of ranks where they do not commute, with the caller's types") {
  for (const int size : {1, 2, 3, 4, 5, 7}) {
    std::atomic<int> calls{0};
    const std::string complaints = run_ranks(size, {}, [&](tutti_comm_t comm, int rank, Complaints& c) {
      tutti_dtype_t type = 0;
      tutti_op_t op = 0;
      c.expect_status(tutti_type_create(sizeof(Affine), &type), TUTTI_OK, "type");
      c.expect_status(tutti_op_create(compose, 0, &calls, &op), TUTTI_OK, "op");
      for (const uint64_t count : {uint64_t{1}, uint64_t{700}, uint64_t{60000}}) {
        std::vector<Affine> wanted = maps(size - 1, count);
        for (int r = size - 2; r >= 0; --r) compose(maps(r, count).data(), wanted.data(), count, type, &calls);
        std::vector<Affine> got = maps(rank, count);
        c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, got.data(), count, type, op), TUTTI_OK, "allreduce");
        c.expect(same(got, wanted), "allreduce in another order");
        for (int root = 0; root < size; ++root) {
          got = maps(rank, count);
          std::vector<Affine> result(count);
          c.expect_status(tutti_reduce(comm, got.data(), result.data(), count, type, op, root), TUTTI_OK, "reduce");
          c.expect(rank != root || same(result, wanted), "reduce in another order");
        }
      }
      c.expect_status(tutti_allreduce(comm, &type, &op, 1, type, TUTTI_SUM), TUTTI_ERR_OP, "sum of a type of the caller's");
      c.expect_status(tutti_op_destroy(op), TUTTI_OK, "op_destroy");
      c.expect_status(tutti_op_destroy(op), TUTTI_ERR_OP, "op_destroy twice");
      c.expect_status(tutti_type_destroy(type), TUTTI_OK, "type_destroy");
      std::vector<Affine> one = maps(rank, 1);
      c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, one.data(), 1, type, op), TUTTI_ERR_TYPE, "a destroyed type");
    });
    CHECK(complaints == "");
    CHECK((size == 1 || calls > 0));
  }
}

TEST_CASE("a sum on one rank and an operation of the caller's on another do not go together, and both are named") {
  std::atomic<int> calls{0};
  const std::string complaints = run_ranks(2, {}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_op_t op = 0;
    c.expect_status(tutti_op_create(compose, 1, &calls, &op), TUTTI_OK, "op");
    uint64_t value = 1;
    const tutti_op_t own = rank == 0 ? TUTTI_SUM : op;
    c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &value, 1, TUTTI_UINT64, own), TUTTI_ERR_MISMATCH, "allreduce");
    const std::string told = tutti_last_error();
    c.expect(told.find("different operations") != std::string::npos, told);
    c.expect(told.find("an operation of the caller's") != std::string::npos, told);
    c.expect_status(tutti_op_destroy(op), TUTTI_OK, "op_destroy");
  });
  CHECK(complaints == "");
}

TEST_CASE("scaled sums multiply each rank's contribution by its own factor") {
  const std::string complaints = run_ranks(3, {}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_op_t op = 0;
    c.expect_status(tutti_op_create_scaled_sum(rank + 0.5, &op), TUTTI_OK, "op");
    for (const bool in_place : {false, true}) {
      std::vector<float> values(5000, 2.0f);
      std::vector<float> sums(values.size());
      c.expect_status(tutti_allreduce(comm, in_place ? TUTTI_IN_PLACE : values.data(), in_place ? values.data() : sums.data(),
                                      values.size(), TUTTI_FLOAT32, op),
                      TUTTI_OK, "allreduce");
      const std::vector<float>& got = in_place ? values : sums;
      c.expect(got == std::vector<float>(values.size(), 9.0f), "2 * (0.5 + 1.5 + 2.5) is 9");
      c.expect(in_place || values[0] == 2.0f, "the contribution is left alone");
    }
    int32_t whole = 1;
    c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, &whole, 1, TUTTI_INT32, op), TUTTI_ERR_OP, "of integers");
    c.expect_status(tutti_op_destroy(op), TUTTI_OK, "op_destroy");
  });
  CHECK(complaints == "");
}

TEST_CASE("persistent calls run again and again, with what the buffers then hold") {
  const std::string complaints = run_ranks(3, {}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    int64_t value = 0;
    int64_t sum = 0;
    std::vector<int32_t> blocks(3);
    int32_t own = 0;
    tutti_request_t requests[2] = {};
    c.expect_status(tutti_allreduce_init(comm, &value, &sum, 1, TUTTI_INT64, TUTTI_SUM, &requests[0]), TUTTI_OK,
                    "allreduce_init");
    c.expect_status(tutti_allgather_init(comm, &own, blocks.data(), 1, TUTTI_INT32, &requests[1]), TUTTI_OK, "allgather_init");
    c.expect_status(tutti_wait(&requests[0]), TUTTI_OK, "waiting for what does not run");
    for (int round = 0; round < 50; ++round) {
      value = rank + round;
      own = rank * 10 + round;
      c.expect_status(tutti_start_all(2, requests), TUTTI_OK, "start_all");
      c.expect_status(tutti_start(requests[0]), TUTTI_ERR_ARGUMENT, "started twice");
      c.expect_status(tutti_wait(&requests[1]), TUTTI_OK, "wait");
      c.expect_status(tutti_wait(&requests[0]), TUTTI_OK, "wait");
      c.expect(requests[0] != nullptr && sum == 3 + 3 * round, "sum of round " + std::to_string(round));
      c.expect(blocks == std::vector<int32_t>{round, 10 + round, 20 + round}, "blocks of round " + std::to_string(round));
    }
    c.expect_status(tutti_request_free(&requests[0]), TUTTI_OK, "free");
    c.expect_status(tutti_request_free(&requests[1]), TUTTI_OK, "free");
    int64_t other = 1;
    tutti_request_t running = nullptr;
    c.expect_status(tutti_iallreduce(comm, TUTTI_IN_PLACE, &other, 1, TUTTI_INT64, TUTTI_SUM, &running), TUTTI_OK, "iallreduce");
    c.expect_status(tutti_start(running), TUTTI_ERR_ARGUMENT, "start of what is not persistent");
    c.expect_status(tutti_wait(&running), TUTTI_OK, "wait");
  });
  CHECK(complaints == "");
}

TEST_CASE("a message is waited for, also when its request was a persistent call before") {
  const std::string complaints = run_ranks(2, {}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    int64_t value = 0;
    tutti_request_t request = nullptr;
    c.expect_status(tutti_allreduce_init(comm, TUTTI_IN_PLACE, &value, 1, TUTTI_INT64, TUTTI_SUM, &request), TUTTI_OK, "init");
    c.expect_status(tutti_request_free(&request), TUTTI_OK, "free");
    value = rank == 0 ? 0 : 7;
    c.expect_status(rank == 0 ? tutti_irecv(comm, &value, 1, TUTTI_INT64, 1, 0, &request)
                              : tutti_isend(comm, &value, 1, TUTTI_INT64, 0, 0, &request),
                    TUTTI_OK, "start");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect(request == nullptr && value == 7, "received");
  });
  CHECK(complaints == "");
}

TEST_CASE("4096 calls in flight are waited for in any order, one by one or all at once") {
  const bool at_once = GENERATE(false, true);
  const std::string complaints = run_ranks(2, {}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    constexpr size_t kCalls = 4096;
    std::vector<int32_t> values(kCalls, rank + 1);
    std::vector<tutti_request_t> requests(kCalls);
    for (size_t n = 0; n < kCalls; ++n) {
      c.expect_status(tutti_iallreduce(comm, TUTTI_IN_PLACE, &values[n], 1, TUTTI_INT32, TUTTI_SUM, &requests[n]), TUTTI_OK,
                      "start");
    }
    std::shuffle(requests.begin(), requests.end(), std::mt19937(static_cast<uint32_t>(rank)));
    if (at_once) {
      c.expect_status(tutti_wait_all(kCalls, requests.data(), nullptr), TUTTI_OK, "wait_all");
    } else {
      for (tutti_request_t& request : requests) c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    }
    c.expect(requests == std::vector<tutti_request_t>(kCalls), "no request is left");
    c.expect(values == std::vector<int32_t>(kCalls, 3), "sums");
  });
  CHECK(complaints == "");
}

TEST_CASE("calls of one plan with other lengths, persistent and blocking, by turns") {
  for (const char* algorithm : {"ring", "halving", "recursive_doubling"}) {
    const std::string complaints = run_ranks(3, {{"allreduce", algorithm}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
      const std::vector<size_t> lengths{5, 300, 1, 7};
      std::vector<std::vector<int32_t>> in(lengths.size());
      std::vector<std::vector<int32_t>> out(lengths.size());
      std::vector<tutti_request_t> requests(lengths.size());
      for (size_t n = 0; n < lengths.size(); ++n) {
        in[n].resize(lengths[n]);
        out[n].resize(lengths[n]);
        c.expect_status(tutti_allreduce_init(comm, in[n].data(), out[n].data(), lengths[n], TUTTI_INT32, TUTTI_SUM, &requests[n]),
                        TUTTI_OK, "init");
      }
      for (size_t round = 0; round < 40; ++round) {
        const auto number = static_cast<int32_t>(round);
        const size_t n = round * round % 7 % lengths.size();
        // The same one twice in a row, then one that uses its plan in between.
        for (int turn = 0; turn < 3; ++turn) {
          std::iota(in[n].begin(), in[n].end(), rank + number + turn);
          std::fill(out[n].begin(), out[n].end(), -1);
          if (turn == 2) {
            for (const size_t length : lengths) {
              const std::vector<int32_t> others(length, rank);
              std::vector<int32_t> sums(length);
              c.expect_status(tutti_allreduce(comm, others.data(), sums.data(), length, TUTTI_INT32, TUTTI_SUM), TUTTI_OK,
                              "in between");
              c.expect(sums == std::vector<int32_t>(length, 3), "sums in between");
            }
          }
          c.expect_status(tutti_start(requests[n]), TUTTI_OK, "start");
          c.expect_status(tutti_wait(&requests[n]), TUTTI_OK, "wait");
          std::vector<int32_t> wanted(lengths[n]);
          for (size_t e = 0; e < wanted.size(); ++e) wanted[e] = 3 + 3 * (number + turn + static_cast<int32_t>(e));
          c.expect(out[n] == wanted, "sums of round " + std::to_string(round));
        }
      }
      for (tutti_request_t& request : requests) c.expect_status(tutti_request_free(&request), TUTTI_OK, "free");
    });
    CHECK(complaints == "");
  }
}

TEST_CASE("what a failed call would have brought to its buffer is forgotten, also by the request that is used again") {
  std::vector<uint16_t> never(2, 0x1234);
  const std::string complaints = run_ranks(2, {{"deterministic", "on"}}, [&](tutti_comm_t comm, int rank, Complaints& c) {
    tutti_comm_t child = nullptr;
    c.expect_status(tutti_comm_split(comm, 0, rank, &child), TUTTI_OK, "split");
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "the split is over everywhere");
    if (rank == 0) {
      // Travels as f32 and would be rounded into place in the end; but nobody joins.
      const std::vector<uint16_t> ones(2, 0x3f80);
      tutti_request_t request = nullptr;
      c.expect_status(tutti_iallreduce(child, ones.data(), never.data(), 2, TUTTI_BFLOAT16, TUTTI_SUM, &request), TUTTI_OK,
                      "start");
      c.expect_status(tutti_comm_abort(child), TUTTI_OK, "abort");
      c.expect_status(tutti_wait(&request), TUTTI_ERR_ABORTED, "wait");
    }
    int32_t one = 1;
    tutti_request_t request = nullptr;
    c.expect_status(tutti_iallreduce(comm, TUTTI_IN_PLACE, &one, 1, TUTTI_INT32, TUTTI_SUM, &request), TUTTI_OK, "start");
    c.expect_status(tutti_wait(&request), TUTTI_OK, "wait");
    c.expect(one == 2, "sum");
    c.expect_status(tutti_comm_destroy(child), TUTTI_OK, "destroy");
  });
  CHECK(complaints == "");
  CHECK(never == std::vector<uint16_t>(2, 0x1234));
}

TEST_CASE("blocks: counts and roots that cannot be are refused before anything is sent") {
  const std::string complaints = run_ranks(2, {}, [](tutti_comm_t comm, int rank, Complaints& c) {
    int32_t data[8] = {};
    int32_t own = 0;
    const uint64_t counts[] = {1, 1};
    const uint64_t huge[] = {uint64_t{1} << 62, uint64_t{1} << 62};
    c.expect_status(tutti_allgatherv(comm, &own, data, nullptr, nullptr, TUTTI_INT32), TUTTI_ERR_ARGUMENT, "no counts");
    c.expect_status(tutti_allgatherv(comm, &own, data, huge, nullptr, TUTTI_INT32), TUTTI_ERR_SIZE, "huge counts");
    c.expect_status(tutti_gatherv(comm, &own, 3, data, counts, nullptr, TUTTI_INT32, rank), TUTTI_ERR_ARGUMENT, "another count");
    c.expect_status(tutti_gather(comm, &own, data, 1, TUTTI_INT32, 2), TUTTI_ERR_RANK, "root 2 of 2");
    c.expect_status(tutti_alltoall(comm, data, data + 1, 2, TUTTI_INT32), TUTTI_ERR_ARGUMENT, "overlap");
    c.expect_status(tutti_scan(comm, TUTTI_IN_PLACE, data, 1, TUTTI_INT32, TUTTI_AVG), TUTTI_ERR_OP, "average of a scan");
    c.expect_status(tutti_reduce_local(data, data + 4, 2, TUTTI_INT32, TUTTI_AVG), TUTTI_ERR_OP, "average here");
    c.expect_status(tutti_barrier(comm), TUTTI_OK, "the communicator works");
  });
  CHECK(complaints == "");
}

namespace {

/// Sums whose last bits depend on the order; the same values for a rank, wherever it runs.
template <class Store>
uint64_t hash_of_sums(tutti_comm_t comm, int rank, tutti_dtype_t dtype, size_t width, Complaints& c, Store store) {
  std::vector<unsigned char> values(3001 * width);
  for (size_t i = 0; i < 3001; ++i)
    store(&values[i * width], static_cast<float>((rank * 37 + static_cast<int>(i) * 11) % 101) / 7.0f);
  c.expect_status(tutti_allreduce(comm, TUTTI_IN_PLACE, values.data(), 3001, dtype, TUTTI_SUM), TUTTI_OK, "allreduce");
  uint64_t hash = 1469598103934665603u;
  for (const unsigned char byte : values) hash = (hash ^ byte) * 1099511628211u;
  return hash;
}

}  // namespace

TEST_CASE("deterministic mode gives the same bits whatever carries, cuts or places the job") {
  std::vector<uint64_t> hashes[2];
  const std::vector<Settings> ways = {{},
                                      {{"transports", "tcp"}},
                                      {{"allreduce", "recursive_doubling:segment_bytes=64"}},
                                      {{"cpu", "scalar"}},
                                      {{"allreduce", "ring"}}};  // which is not deterministic, and passed over
  for (Settings settings : ways) {
    settings.emplace_back("deterministic", "on");
    std::atomic<uint64_t> got[2] = {};
    const std::string complaints = run_ranks(6, settings, [&](tutti_comm_t comm, int rank, Complaints& c) {
      const uint64_t wide =
          hash_of_sums(comm, rank, TUTTI_FLOAT32, 4, c, [](unsigned char* to, float v) { std::memcpy(to, &v, 4); });
      const uint64_t half = hash_of_sums(comm, rank, TUTTI_BFLOAT16, 2, c, [](unsigned char* to, float v) {
        uint32_t bits;
        std::memcpy(&bits, &v, 4);
        const auto upper = static_cast<uint16_t>(bits >> 16);
        std::memcpy(to, &upper, 2);
      });
      if (rank == 0) got[0] = wide;
      if (rank == 0) got[1] = half;
    });
    CHECK(complaints == "");
    for (int kind = 0; kind < 2; ++kind) hashes[kind].push_back(got[kind]);
  }
  for (const auto& kind : hashes) CHECK(std::vector<uint64_t>(kind.size(), kind[0]) == kind);
}

TEST_CASE("requests keep some of the memory that they staged data in for the next ones, and give back the rest") {
  const std::string complaints = run_ranks(1, {}, [](tutti_comm_t comm, int, Complaints& c) {
    const auto kept_bytes = [&] {
      tutti_context_t context = nullptr;
      c.expect_status(tutti_comm_get_context(comm, &context), TUTTI_OK, "context");
      const char* name = nullptr;
      uint64_t value = 0;
      for (size_t i = 0; tutti_context_get_counter(context, i, &name, &value) == TUTTI_OK; ++i)
        if (std::string(name) == "requests.kept_bytes") return value;
      c.expect(false, "no such counter");
      return uint64_t{0};
    };
    constexpr size_t kRequests = 10;
    constexpr size_t kCount = 1 << 19;  // 2 MiB
    tutti_op_t op = TUTTI_SUM;
    c.expect_status(tutti_op_create_scaled_sum(2, &op), TUTTI_OK, "op");
    std::vector<float> in(kCount, 3);
    std::vector<std::vector<float>> out(kRequests, std::vector<float>(kCount));
    for (int round = 0; round < 3; ++round) {
      std::vector<tutti_request_t> requests(kRequests);
      for (size_t i = 0; i < kRequests; ++i)
        c.expect_status(tutti_iallreduce(comm, in.data(), out[i].data(), kCount, TUTTI_FLOAT32, op, &requests[i]), TUTTI_OK,
                        "call");
      c.expect_status(tutti_wait_all(kRequests, requests.data(), nullptr), TUTTI_OK, "wait_all");
      for (const auto& result : out) c.expect(result[kCount - 1] == 6, "result");
      const uint64_t kept = kept_bytes();
      c.expect(kept >= kCount * sizeof(float), "some is kept: " + std::to_string(kept));
      c.expect(kept <= 16 << 20, "not all: " + std::to_string(kept));
    }
    c.expect_status(tutti_op_destroy(op), TUTTI_OK, "destroy");
  });
  CHECK(complaints == "");
}
