// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Jobs whose ranks lie on several nodes and packages, in even and in odd ways: who is local to whom, and right results.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "job.hpp"

using namespace tutti::test;

namespace {

/// "a0": node a, package 0; "a": not bound; "": as it is.
Settings settings_of(const std::string& place, const std::string& algorithm) {
  Settings settings;
  if (!place.empty()) settings.emplace_back("node_id", place.substr(0, 1));
  if (place.size() > 1) settings.emplace_back("package_id", place.substr(1));
  if (!algorithm.empty()) settings.insert(settings.end(), {{"allreduce", algorithm}, {"reduce", algorithm}, {"broadcast", algorithm}, {"barrier", algorithm}});
  return settings;
}

int64_t value_of(int rank, size_t n) { return rank * 1000 + static_cast<int64_t>(n); }

class Rank {
 public:
  Rank(tutti_comm_t comm, Complaints& complaints) : comm_(comm), complaints_(complaints) {
    complaints_.expect_status(tutti_comm_rank(comm, &rank_), TUTTI_OK, "rank");
    complaints_.expect_status(tutti_comm_size(comm, &size_), TUTTI_OK, "size");
  }
  int rank() const { return rank_; }

  /// world: the rank of the job by rank of the communicator.
  void check_locals(const std::vector<std::string>& places, const std::vector<int>& world) {
    int size = 0;
    int before = 0;
    for (size_t r = 0; r < world.size(); ++r) {
      if (node_of(places, world[r]) != node_of(places, world[static_cast<size_t>(rank_)])) continue;
      ++size;
      before += static_cast<int>(r) < rank_ ? 1 : 0;
    }
    int local_rank = -1;
    int local_size = -1;
    complaints_.expect_status(tutti_comm_local_rank(comm_, &local_rank), TUTTI_OK, "local_rank");
    complaints_.expect_status(tutti_comm_local_size(comm_, &local_size), TUTTI_OK, "local_size");
    complaints_.expect(local_rank == before, "local rank " + std::to_string(local_rank));
    complaints_.expect(local_size == size, "local size " + std::to_string(local_size));
  }

  void check_collectives(size_t count) {
    std::vector<int64_t> own(count);
    for (size_t n = 0; n < count; ++n) own[n] = value_of(rank_, n);
    const auto sum = [&](size_t n) {
      int64_t all = 0;
      for (int r = 0; r < size_; ++r) all += value_of(r, n);
      return all;
    };
    std::vector<int64_t> result(count);
    expect_ok(tutti_allreduce(comm_, own.data(), result.data(), count, TUTTI_INT64, TUTTI_SUM), "allreduce");
    for (size_t n = 0; n < count; ++n) expect(result[n] == sum(n), "allreduce");
    const int root = size_ - 1;
    expect_ok(tutti_reduce(comm_, own.data(), result.data(), count, TUTTI_INT64, TUTTI_SUM, root), "reduce");
    for (size_t n = 0; n < count && rank_ == root; ++n) expect(result[n] == sum(n), "reduce");
    result = own;
    expect_ok(tutti_broadcast(comm_, result.data(), count, TUTTI_INT64, root), "broadcast");
    for (size_t n = 0; n < count; ++n) expect(result[n] == value_of(root, n), "broadcast");
    std::vector<int64_t> blocks(count * static_cast<size_t>(size_));
    expect_ok(tutti_allgather(comm_, own.data(), blocks.data(), count, TUTTI_INT64), "allgather");
    for (size_t n = 0; n < blocks.size(); ++n)
      expect(blocks[n] == value_of(static_cast<int>(n / count), n % count), "allgather");
    expect_ok(tutti_barrier(comm_), "barrier");
  }

 private:
  static std::string node_of(const std::vector<std::string>& places, int rank) {
    return places[static_cast<size_t>(rank)].substr(0, 1);
  }
  void expect_ok(tutti_status_t status, const std::string& what) { complaints_.expect_status(status, TUTTI_OK, what); }
  void expect(bool holds, const std::string& what) {
    if (!holds && !complained_) complaints_.expect(false, what + ": wrong data");
    complained_ = complained_ || !holds;
  }

  tutti_comm_t comm_;
  Complaints& complaints_;
  int rank_ = 0;
  int size_ = 0;
  bool complained_ = false;
};

/// The whole job, then its odd and even halves, whose ranks nest in their own way.
void use(tutti_comm_t comm, const std::vector<std::string>& places, Complaints& complaints) {
  Rank whole(comm, complaints);
  std::vector<int> world;
  std::vector<int> half;
  for (int r = 0; r < static_cast<int>(places.size()); ++r) {
    world.push_back(r);
    if (r % 2 == whole.rank() % 2) half.insert(half.begin(), r);  // reversed by the key
  }
  whole.check_locals(places, world);
  for (const size_t count : {size_t{1}, size_t{5000}}) whole.check_collectives(count);
  tutti_comm_t part = nullptr;
  complaints.expect_status(tutti_comm_split(comm, whole.rank() % 2, -whole.rank(), &part), TUTTI_OK, "split");
  if (part == nullptr) return;
  Rank one(part, complaints);
  one.check_locals(places, half);
  one.check_collectives(100);
  complaints.expect_status(tutti_comm_destroy(part), TUTTI_OK, "destroy");
}

const std::vector<std::vector<std::string>> kPlaces = {
    {"a", "a", "a", "b", "b", "b", "b", "c"},           // uneven blocks
    {"a", "b", "c", "a", "b", "c", "a"},                // round robin
    {"a", "b", "c", "d", "e"},                          // a rank on each
    {"a0", "a0", "a1", "a1", "b0", "b0", "b1", "b1"},   // packages in nodes
    {"a0", "b1", "a1", "b0", "a0", "b1", "a1"},         // the same, round robin and uneven
    {"a0", "a0", "a1", "a1", "a1"},                     // packages of one node
    {"a0", "a0", "a1", "b", "b1", "b0", "b0"},          // one is not bound: no packages but in some halves
};

}  // namespace

TEST_CASE("ranks on several nodes and packages", "[capi][places]") {
  for (const char* const algorithm : {"", "hierarchical"}) {
    for (const std::vector<std::string>& places : kPlaces) {
      INFO(algorithm << " on " << places.size() << " ranks, " << places[1] << " " << places[2]);
      CHECK(run_ranks_with(
                static_cast<int>(places.size()),
                [&](int rank) { return settings_of(places[static_cast<size_t>(rank)], algorithm); },
                [&](tutti_comm_t comm, int, Complaints& complaints) { use(comm, places, complaints); })
                .empty());
    }
  }
}
