// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "layout.hpp"

using namespace tutti_perf;

namespace {

constexpr Spread kSpreads[] = {Spread::even, Spread::linear, Spread::random, Spread::one, Spread::sparse};

uint64_t elements(const std::vector<Piece>& pieces) {
  uint64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.count;
  return sum;
}

}  // namespace

TEST_CASE("blocks of the ranks: nothing is lost, and all ranks agree") {
  for (const Spread spread : kSpreads) {
    for (const uint32_t ranks : {1u, 2u, 3u, 5u, 16u}) {
      for (const uint64_t total : {uint64_t{0}, uint64_t{ranks}, uint64_t{ranks} * 1001, uint64_t{ranks} << 40}) {
        CAPTURE(text_of({spread, 3}), ranks, total);
        const Layout first = make_layout(Collective::allgatherv, {spread, 3}, total, ranks, 0);
        CHECK(first.recv.total() == total);
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          const Layout other = make_layout(Collective::allgatherv, {spread, 3}, total, ranks, rank);
          CHECK(other.recv.counts == first.recv.counts);
          CHECK(other.send_elements == first.recv.counts[rank]);
          CHECK(other.recv_elements == total);
        }
      }
    }
  }
  CHECK(make_layout(Collective::gatherv, {Spread::one, 1}, 300, 3, 1).recv.counts == std::vector<uint64_t>{300, 0, 0});
  CHECK(make_layout(Collective::gatherv, {Spread::linear, 1}, 300, 3, 1).recv.counts == std::vector<uint64_t>{50, 100, 150});
  CHECK(make_layout(Collective::gatherv, {Spread::sparse, 1}, 300, 3, 1).recv.counts == std::vector<uint64_t>{0, 300, 0});
  CHECK(make_layout(Collective::gather, {Spread::one, 1}, 300, 3, 1).recv.counts == std::vector<uint64_t>{100, 100, 100});
}

TEST_CASE("alltoallv: what one sends is what the other receives; in place they are the same") {
  for (const Spread spread : kSpreads) {
    for (const uint32_t ranks : {1u, 2u, 3u, 7u}) {
      const Counts counts{spread, 5};
      CAPTURE(text_of(counts), ranks);
      uint64_t sent = 0;
      for (uint32_t from = 0; from < ranks; ++from) {
        const Layout sender = make_layout(Collective::alltoallv, counts, 4200, ranks, from);
        sent += sender.send_elements;
        for (uint32_t to = 0; to < ranks; ++to) {
          const Layout receiver = make_layout(Collective::alltoallv, counts, 4200, ranks, to);
          CHECK(sender.send.counts[to] == receiver.recv.counts[from]);
          if (has_in_place(Collective::alltoallv, counts)) CHECK(sender.send.counts[to] == sender.recv.counts[to]);
        }
      }
      CHECK(sent > 0);
      CHECK(sent <= uint64_t{4200} * ranks);
      CHECK(sent > uint64_t{4200} * ranks - uint64_t{ranks} * ranks);  // but for what division leaves
    }
  }
  CHECK_FALSE(has_in_place(Collective::alltoallv, {Spread::one, 1}));
  CHECK(has_in_place(Collective::alltoall, {Spread::one, 1}));  // whose blocks are even all the same
  CHECK_FALSE(has_in_place(Collective::broadcast, {}));
}

TEST_CASE("results come from the places of the contributions") {
  const Counts counts{Spread::linear, 1};
  // alltoallv of 3 ranks, 60 elements a rank: (from + to) mod 3 + 1 parts of 18.
  const Layout layout = make_layout(Collective::alltoallv, counts, 60, 3, 1);
  CHECK(layout.recv.counts == std::vector<uint64_t>{20, 30, 10});
  const Contents contents = make_contents(Collective::alltoallv, counts, layout, {3, 1, 0, false});
  REQUIRE(contents.after.size() == 3);
  CHECK(contents.after[0].origin.first == 10);  // behind what rank 0 sends to itself
  CHECK(contents.after[1].origin.first == 20);
  CHECK(contents.after[2].origin.source == 2);
  CHECK(contents.after[2].place == 50);

  const Layout blocks = make_layout(Collective::reduce_scatterv, counts, 60, 3, 2);
  const Contents apart = make_contents(Collective::reduce_scatterv, counts, blocks, {3, 2, 0, false});
  CHECK(apart.after.at(0).place == 0);
  CHECK(apart.after.at(0).origin.first == 30);
  const Contents in_place = make_contents(Collective::reduce_scatterv, counts, blocks, {3, 2, 0, true});
  CHECK(in_place.after.at(0).place == 30);
  CHECK(elements(in_place.before) == 60);
}

TEST_CASE("who gets a result") {
  const auto after = [](Collective collective, uint32_t rank, bool in_place = false) {
    const Layout layout = make_layout(collective, {}, 12, 3, rank);
    return elements(make_contents(collective, {}, layout, {3, rank, 1, in_place}).after);
  };
  CHECK(after(Collective::allreduce, 0) == 12);
  CHECK(after(Collective::reduce, 1) == 12);
  CHECK(after(Collective::reduce, 0) == 0);
  CHECK(after(Collective::gather, 1) == 12);
  CHECK(after(Collective::gather, 2) == 0);
  CHECK(after(Collective::broadcast, 2) == 12);
  CHECK(after(Collective::scatter, 0) == 4);
  CHECK(after(Collective::scatter, 1, true) == 0);
  CHECK(after(Collective::exscan, 0) == 0);
  CHECK(after(Collective::exscan, 2) == 12);
  CHECK(after(Collective::scan, 0) == 12);
  CHECK(after(Collective::pingpong, 2) == 0);  // it has no partner
  CHECK(after(Collective::message_rate, 0) == 0);
  CHECK(after(Collective::message_rate, 1) == 12);
  CHECK(after(Collective::barrier, 1) == 0);
}

TEST_CASE("partners: halves, each with the other") {
  for (uint32_t ranks = 1; ranks < 10; ++ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const uint32_t partner = partner_of(rank, ranks);
      CHECK(partner < ranks);
      CHECK(partner_of(partner, ranks) == rank);
      CHECK((partner == rank) == (ranks % 2 == 1 && rank + 1 == ranks));
    }
  }
}
