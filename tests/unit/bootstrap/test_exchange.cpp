// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "bootstrap/exchange.hpp"
#include "cluster.hpp"

using namespace tutti;
using test::Cluster;

namespace {

/// Ranks of a job in one thread; each over its own store.
struct Ranks {
  explicit Ranks(uint64_t seed, bool networked = false) : cluster(seed), over_network(networked) {
    if (over_network) cluster.start_server();
  }

  size_t add(int rank, int size, uint32_t version = kProtocolVersion, uint64_t wait_ns = 60'000'000'000) {
    if (over_network) {
      stores.push_back(cluster.client());
    } else {
      stores.push_back(std::make_unique<MemoryStore>(table));
    }
    ExchangeOptions options;
    options.store = stores.back().get();
    options.clock = &cluster.network.time;
    options.random = &cluster.random;
    options.rank = rank;
    options.size = size;
    options.version = version;
    options.card = fmt::format("card of {}", rank);
    options.deadline = Deadline::after(cluster.network.time, wait_ns);
    exchanges.push_back(std::make_unique<Exchange>(options));
    outcomes.emplace_back();
    ended.push_back(false);
    return exchanges.size() - 1;
  }

  /// Steps all in a seeded order until all have ended.
  bool run(uint64_t limit_ns = 200'000'000'000, uint64_t step_ns = 10'000'000) {
    return cluster.until(
        [&] {
          bool all = true;
          const size_t first = cluster.random.next() % exchanges.size();
          for (size_t k = 0; k < exchanges.size(); ++k) {
            const size_t i = (first + k) % exchanges.size();
            if (ended[i]) continue;
            const Result<bool> step = exchanges[i]->step();
            ended[i] = !step.ok() || *step;
            outcomes[i] = step.status();
            all = all && ended[i];
          }
          return all;
        },
        limit_ns, step_ns);
  }
  bool all_have_all(int size) const {
    for (size_t i = 0; i < exchanges.size(); ++i) {
      if (!outcomes[i].ok() || exchanges[i]->cards().size() != static_cast<size_t>(size)) return false;
      for (int r = 0; r < size; ++r) {
        if (exchanges[i]->cards()[static_cast<size_t>(r)] != fmt::format("card of {}", r)) return false;
      }
    }
    return true;
  }
  void check_all_failed(tutti_status_t code, const std::vector<std::string>& words) const {
    for (const Status& outcome : outcomes) {
      CHECK(outcome.code() == code);
      INFO(outcome.message());
      for (const std::string& word : words) CHECK(outcome.message().find(word) != std::string_view::npos);
    }
  }

  Cluster cluster;
  bool over_network;
  MemoryStore::Table table;
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::vector<Status> outcomes;
  std::vector<bool> ended;
};

}  // namespace

TEST_CASE("every rank gets the cards of all, for every size") {
  for (int size = 1; size <= 20; ++size) {
    Ranks ranks(static_cast<uint64_t>(size));
    for (int r = size; r-- > 0;) ranks.add(r, size);
    REQUIRE(ranks.run());
    CHECK(ranks.all_have_all(size));
  }
}

TEST_CASE("three hundred ranks over a network that cuts everything small") {
  Ranks ranks(3, true);
  ranks.cluster.network.most_bytes_a_move = 500;
  for (int r = 0; r < 300; ++r) ranks.add(r, 300);
  REQUIRE(ranks.run());
  CHECK(ranks.all_have_all(300));
  CHECK(ranks.cluster.server->finished(300));
  CHECK(!ranks.cluster.server->finished(301));
}

TEST_CASE("a job of one needs no store") {
  Cluster cluster(1);
  ExchangeOptions options;
  options.clock = &cluster.network.time;
  options.random = &cluster.random;
  options.card = "only";
  Exchange exchange(options);
  const Result<bool> done = exchange.step();
  REQUIRE(done.ok());
  CHECK(*done);
  CHECK(exchange.take_cards() == std::vector<std::string>{"only"});
}

TEST_CASE("missing ranks are named to all that wait, and to one that comes late") {
  for (const bool over_network : {false, true}) {
    Ranks ranks(4, over_network);
    for (const int r : {0, 1, 3, 5, 6}) ranks.add(r, 8);
    REQUIRE(ranks.run());
    ranks.add(4, 8);
    REQUIRE(ranks.run(1'000'000'000));
    ranks.check_all_failed(TUTTI_ERR_MISSING_RANK, {"3 of 8 ranks", "missing ranks 2, 4 and 7"});
  }
}

TEST_CASE("ranks that disagree on the size all hear both sizes") {
  Ranks ranks(5);
  for (const int r : {0, 1, 2}) ranks.add(r, 4);
  ranks.add(3, 5);
  REQUIRE(ranks.run(1'000'000'000));
  ranks.check_all_failed(TUTTI_ERR_MISMATCH, {"one of 4", "one of 5", "rank 3"});
}

TEST_CASE("two processes with one rank end the start on all") {
  for (const int twice : {0, 2}) {
    Ranks ranks(6, true);
    for (const int r : {0, 1, 2}) ranks.add(r, 4);
    ranks.add(twice, 4);
    REQUIRE(ranks.run(5'000'000'000));
    ranks.check_all_failed(TUTTI_ERR_ENVIRONMENT, {fmt::format("rank {}", twice)});
  }
}

TEST_CASE("different versions end the start on all, with both numbers") {
  Ranks ranks(7);
  for (const int r : {0, 1}) ranks.add(r, 3, 1);
  ranks.add(2, 3, 9);
  REQUIRE(ranks.run(1'000'000'000));
  ranks.check_all_failed(TUTTI_ERR_VERSION, {"version 1", "version 9"});
}

TEST_CASE("a rank whose version the server refuses ends the others' wait") {
  Ranks ranks(8, true);
  for (const int r : {0, 1}) ranks.add(r, 3);
  StoreClientOptions options = ranks.cluster.client_options();
  options.version = 77;
  const auto refused = StoreClient::open(options).value();
  std::string value;
  REQUIRE(ranks.cluster.until([&] { return !refused->get("x", &value).ok(); }, 1'000'000'000));
  REQUIRE(ranks.run(1'000'000'000));
  ranks.check_all_failed(TUTTI_ERR_VERSION, {"version 77", fmt::format("version {}", kProtocolVersion)});
}

TEST_CASE("a job starts again and again on one store, and leaves little there") {
  Ranks ranks(9, true);
  size_t after_second = 0;
  for (uint32_t start = 1; start <= 8; ++start) {
    ranks.exchanges.clear();
    ranks.outcomes.clear();
    ranks.ended.clear();
    ranks.stores.clear();
    for (int r = 0; r < 5; ++r) ranks.add(r, 5);
    REQUIRE(ranks.run());
    CHECK(ranks.all_have_all(5));
    for (const auto& exchange : ranks.exchanges) CHECK(exchange->generation() == start);
    ranks.stores.clear();
    ranks.cluster.until([&] { return ranks.cluster.server->client_count() == 0; });
    if (start == 2) after_second = ranks.cluster.server->memory_bytes();
  }
  CHECK(ranks.cluster.server->memory_bytes() <= after_second + 64);
}

TEST_CASE("rooms are apart") {
  MemoryStore::Table table;
  MemoryStore store(table);
  Cluster cluster(10);
  for (const std::string room : {"", "a", "b"}) {
    ExchangeOptions options;
    options.store = &store;
    options.clock = &cluster.network.time;
    options.random = &cluster.random;
    options.card = "of " + room;
    options.room = room;
    Exchange exchange(options);
    const Result<bool> done = exchange.step();
    REQUIRE(done.ok());
    CHECK(*done);
    CHECK(exchange.generation() == 1);
    CHECK(exchange.cards() == std::vector<std::string>{"of " + room});
  }
}

TEST_CASE("the exchange survives a server that is replaced while ranks wait") {
  Ranks ranks(11, true);
  for (const int r : {0, 1, 2}) ranks.add(r, 4);
  CHECK(!ranks.run(200'000'000));
  ranks.cluster.server.reset();
  ranks.cluster.start_server();
  ranks.add(3, 4);
  REQUIRE(ranks.run(10'000'000'000));
  CHECK(ranks.all_have_all(4));
}

TEST_CASE("bad arguments are refused before anything is said") {
  Ranks ranks(12);
  ranks.add(4, 4);
  REQUIRE(ranks.run());
  CHECK(ranks.outcomes[0].code() == TUTTI_ERR_RANK);
  CHECK(ranks.table.empty());
}

TEST_CASE("a job of several ranks needs a store") {
  Cluster cluster(14);
  ExchangeOptions options;
  options.clock = &cluster.network.time;
  options.random = &cluster.random;
  options.size = 2;
  CHECK(Exchange(options).step().status().code() == TUTTI_ERR_ARGUMENT);
}

TEST_CASE("what cannot be read in the store is an error, not a crash") {
  for (const std::string key : {"done//1", "x//1/job", "x//1/up/3.", "x//1/error", "x//1/table"}) {
    Ranks ranks(13);
    ranks.table[key] = "\xff garbage";
    ranks.add(1, 4);
    if (key != "x//1/table") {
      REQUIRE(ranks.cluster.until([&] { return !ranks.exchanges[0]->step().ok(); }, 70'000'000'000, 1'000'000'000));
    } else {
      ranks.add(2, 4);
      REQUIRE(ranks.run());
      CHECK(ranks.outcomes[1].code() == TUTTI_ERR_PROTOCOL);
    }
  }
}
