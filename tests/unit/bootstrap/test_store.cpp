// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "cluster.hpp"

using namespace tutti;
using test::Cluster;

namespace {

/// Repeats a question until it is answered; false: refused or never.
bool answered(Cluster& cluster, const std::function<Result<bool>()>& ask) {
  bool good = false;
  return cluster.until([&] {
    const Result<bool> known = ask();
    good = known.ok() && *known;
    return good || !known.ok();
  }) && good;
}

/// What every store has to do.
void check_store(Cluster& cluster, Store& a, Store& b) {
  std::string value;
  REQUIRE(a.set("k1", "one").ok());
  CHECK(answered(cluster, [&] { return a.flushed(); }));
  CHECK(answered(cluster, [&] { return b.get("k1", &value); }));
  CHECK(value == "one");
  REQUIRE(a.set("k1", "two").ok());
  CHECK(answered(cluster, [&] { return a.flushed(); }));
  CHECK(answered(cluster, [&] { return b.get("k1", &value); }));
  CHECK(value == "two");
  CHECK(answered(cluster, [&] { return a.claim("c", "mine", &value); }));
  CHECK(value == "mine");
  CHECK(answered(cluster, [&] { return b.claim("c", "mine too", &value); }));
  CHECK(value == "mine");
  for (const int i : {0, 3, 4}) REQUIRE(a.set(fmt::format("r/{}", i), "").ok());
  CHECK(answered(cluster, [&] { return a.flushed(); }));
  RankSet absent;
  CHECK(answered(cluster, [&] { return b.find_absent("r/", 7, &absent); }));
  CHECK(absent.count == 4);
  CHECK(absent.first == std::vector<int>{1, 2, 5, 6});
  REQUIRE(b.erase("r/").ok());
  CHECK(answered(cluster, [&] { return b.flushed(); }));
  CHECK(answered(cluster, [&] { return a.find_absent("r/", 100, &absent); }));
  CHECK(absent.count == 100);
  CHECK(absent.first.size() == RankSet::kNamed);
  const std::string large(1 << 16, 'x');
  REQUIRE(a.set("large", large).ok());
  CHECK(answered(cluster, [&] { return a.flushed(); }));
  CHECK(answered(cluster, [&] { return b.get("large", &value); }));
  CHECK(value == large);
  CHECK(!a.set(std::string(Store::kMostKeyBytes + 1, 'k'), "").ok());
}

}  // namespace

TEST_CASE("rank sets as text") {
  CHECK(RankSet{1, {4}}.text() == "4");
  CHECK(RankSet{3, {2, 5, 7}}.text() == "2, 5 and 7");
  CHECK(RankSet{34, {2, 5, 7}}.text() == "2, 5, 7 and 31 more");
}

TEST_CASE("the store in memory and the one over a network do the same") {
  Cluster cluster(1);
  MemoryStore::Table table;
  MemoryStore one(table);
  MemoryStore two(table);
  check_store(cluster, one, two);
  cluster.start_server();
  const auto a = cluster.client();
  const auto b = cluster.client();
  check_store(cluster, *a, *b);
}

TEST_CASE("a question waits at the server until there is an answer") {
  Cluster cluster(2);
  cluster.start_server();
  const auto asker = cluster.client();
  const auto teller = cluster.client();
  std::string value;
  CHECK(!cluster.until([&] { return *asker->get("later", &value); }, 100'000'000));
  REQUIRE(teller->set("later", "now").ok());
  CHECK(answered(cluster, [&] { return teller->flushed(); }));
  CHECK(answered(cluster, [&] { return asker->get("later", &value); }));
  CHECK(value == "now");
}

TEST_CASE("garbage, half a header and silence cost a fixed number of bytes and disturb nobody") {
  Cluster cluster(3);
  cluster.start_server();
  std::vector<std::unique_ptr<Stream>> strangers;
  for (const std::string& text : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string("\x16\x03\x01\x02\x00", 5),
                                  std::string(4000, '\xff'), std::string("TUTTI"), std::string()}) {
    strangers.push_back(cluster.network.connect(cluster.at).value());
    size_t moved = 0;
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(moved)) {
      REQUIRE(strangers.back()->write(std::as_bytes(std::span(rest)), &moved) == Io::done);
    }
  }
  const auto client = cluster.client();
  std::string value;
  const uint64_t before = cluster.network.time.now_ns();
  CHECK(answered(cluster, [&] { return client->claim("a", "b", &value); }));
  CHECK(cluster.network.time.now_ns() - before < 1'000'000'000);
  CHECK(cluster.server->pending_count() == 2);  // those two that have said nothing wrong yet
  CHECK(cluster.server->memory_bytes() < 200'000);
  CHECK(cluster.until([&] { return cluster.server->pending_count() == 0; }, 6'000'000'000));
  CHECK(cluster.server->client_count() == 1);
  CHECK(cluster.sink->text().find("does not speak Tutti") != std::string::npos);
}

TEST_CASE("more idle strangers than the server holds do not keep a client out") {
  Cluster cluster(4);
  cluster.start_server();
  std::vector<std::unique_ptr<Stream>> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(cluster.network.connect(cluster.at).value());
  const auto client = cluster.client();
  std::string value;
  const uint64_t before = cluster.network.time.now_ns();
  CHECK(answered(cluster, [&] { return client->claim("a", "b", &value); }));
  CHECK(cluster.network.time.now_ns() - before < 1'000'000'000);
  CHECK(cluster.server->pending_count() <= 256);
}

TEST_CASE("an authenticated client that breaks the protocol is dropped") {
  Cluster cluster(5);
  cluster.start_server();
  const std::string bad[] = {
      std::string("\xff\xff\xff\xff", 4) + std::string(50, 'x'),                                  // a length beyond all bounds
      std::string("\x01\x00\x00\x00", 4) + std::string(50, '\0'),                                 // shorter than a header
      std::string("\x0b\x00\x00\x00\x63", 5) + std::string(10, '\0'),                             // unknown kind
      std::string("\x0b\x00\x00\x00\x02\0\0\0\0\0\0\0\0\xff\xff", 15),                            // a key longer than the frame
      std::string("\x0b\x00\x00\x00\x03", 5) + std::string(10, '\0'),                             // an empty key
      std::string("\x0c\x00\x00\x00\x05", 5) + std::string(8, '\0') + std::string("\x01\0k", 3),  // no count
  };
  for (const std::string& bytes : bad) {
    const auto stream = cluster.network.connect(cluster.at).value();
    Handshake handshake(HandshakeRole::initiator, cluster.secret, "store of job job", cluster.random);
    REQUIRE(cluster.until([&] { return drive(handshake, *stream) == Io::done; }));
    REQUIRE(handshake.state() == Handshake::State::accepted);
    std::string_view rest = bytes;
    const bool dropped = cluster.until(
        [&] {
          size_t moved = 0;
          if (!rest.empty() && stream->write(std::as_bytes(std::span(rest)), &moved) == Io::done) rest.remove_prefix(moved);
          std::array<std::byte, 64> sink;
          const Io io = stream->read(sink, &moved);
          return io == Io::closed || io == Io::failed;
        },
        1'000'000'000);
    CHECK(dropped);
  }
  CHECK(cluster.server->client_count() == 0);
}

TEST_CASE("connections that are reset during and after the handshake are made again") {
  Cluster cluster(6);
  cluster.start_server();
  cluster.network.resets = 2;
  const auto client = cluster.client();
  std::string value;
  CHECK(answered(cluster, [&] { return client->claim("a", "b", &value); }));
  CHECK(cluster.network.connection_count == 3);
}

TEST_CASE("what was not answered when a connection broke is said again") {
  for (uint64_t seed = 10; seed < 40; ++seed) {
    Cluster cluster(seed);
    cluster.start_server();
    const auto client = cluster.client();
    REQUIRE(cluster.until([&] { return client->flushed().ok() && client->connected(); }));
    for (int i = 0; i < 20; ++i) REQUIRE(client->set(fmt::format("k{}", i), fmt::format("{}", i)).ok());
    for (uint64_t i = 0; i < seed % 7; ++i) cluster.server->step();
    const uint32_t before = client->incarnation();
    const size_t connections = cluster.network.connection_count;
    cluster.network.break_all();
    cluster.network.resets = static_cast<int>(seed % 3);
    CHECK(answered(cluster, [&] { return client->flushed(); }));
    CHECK(cluster.network.connection_count == connections + 1 + seed % 3);
    for (int i = 0; i < 20; ++i) {
      std::string value;
      CHECK(cluster.server->get(fmt::format("k{}", i), &value));
      CHECK(value == fmt::format("{}", i));
    }
    CHECK(client->incarnation() == before);
  }
}

TEST_CASE("a client notices that another server has taken the place") {
  Cluster cluster(7);
  cluster.start_server();
  const auto client = cluster.client();
  std::string value;
  CHECK(answered(cluster, [&] { return client->claim("a", "1", &value); }));
  CHECK(client->incarnation() == 0);
  cluster.server.reset();
  cluster.start_server();
  REQUIRE(cluster.until([&] { return client->flushed().ok() && client->incarnation() == 1; }));
  CHECK(answered(cluster, [&] { return client->claim("a", "2", &value); }));
  CHECK(value == "2");
}

TEST_CASE("a wrong secret ends after the grace, a wrong version at once, both with the reason on both sides") {
  Cluster cluster(8);
  cluster.start_server();
  StoreClientOptions options = cluster.client_options();
  options.secret = Secret::from_text("another");
  auto client = StoreClient::open(options).value();
  const uint64_t before = cluster.network.time.now_ns();
  std::string value;
  Status why;
  REQUIRE(cluster.until([&] { return !(why = client->get("a", &value).status()).ok(); }));
  CHECK(why.code() == TUTTI_ERR_AUTH);
  CHECK(why.message().find("10.0.0.1:4711") != std::string_view::npos);
  CHECK(cluster.network.time.now_ns() - before < 5'000'000'000);
  CHECK(cluster.sink->text().find("does not have this job's secret") != std::string::npos);

  options = cluster.client_options();
  options.version = kProtocolVersion + 5;
  client = StoreClient::open(options).value();
  REQUIRE(cluster.until([&] { return !(why = client->get("a", &value).status()).ok(); }, 1'000'000'000));
  CHECK(why.code() == TUTTI_ERR_VERSION);
  CHECK(why.message().find(fmt::format("version {}", kProtocolVersion + 5)) != std::string_view::npos);
  CHECK(cluster.sink->text().find(fmt::format("version {}", kProtocolVersion + 5)) != std::string::npos);
}

TEST_CASE("nobody there, and somebody else there, at the deadline") {
  Cluster cluster(9);
  auto client = cluster.client();
  std::string value;
  Status why;
  REQUIRE(cluster.until([&] { return !(why = client->get("a", &value).status()).ok(); }, 70'000'000'000, 5'000'000));
  CHECK(why.code() == TUTTI_ERR_CONNECT);
  CHECK(why.message().find("connection refused") != std::string_view::npos);
  // It stays an error.
  CHECK(client->get("a", &value).status().code() == TUTTI_ERR_CONNECT);

  const auto foreign = cluster.network.listen(cluster.at, {}).value();
  client = cluster.client();
  std::vector<std::unique_ptr<Stream>> held;
  REQUIRE(cluster.until(
      [&] {
        std::unique_ptr<Stream> stream;
        while (foreign->accept(&stream) == Io::done) {
          size_t moved = 0;
          const std::string_view banner = "SSH-2.0-OpenSSH_9.2\r\n";
          (void)stream->write(std::as_bytes(std::span(banner)), &moved);
          held.push_back(std::move(stream));
        }
        return !(why = client->get("a", &value).status()).ok();
      },
      70'000'000'000, 5'000'000));
  CHECK(why.code() == TUTTI_ERR_PROTOCOL);
  CHECK(why.message().find("not a Tutti server") != std::string_view::npos);
}

TEST_CASE("a silent foreign server is named too") {
  Cluster cluster(11);
  const auto foreign = cluster.network.listen(cluster.at, {}).value();
  const auto client = cluster.client();
  std::string value;
  Status why;
  REQUIRE(cluster.until([&] { return !(why = client->get("a", &value).status()).ok(); }, 70'000'000'000, 5'000'000));
  CHECK(why.message().find("not a Tutti server") != std::string_view::npos);
}

TEST_CASE("servers are tried in turn until one is ours") {
  Cluster cluster(12);
  cluster.start_server();
  const auto foreign = cluster.network.listen({"10.0.0.7", 1}, {}).value();
  StoreClientOptions options = cluster.client_options();
  options.servers = {{"10.0.0.6", 1}, {"10.0.0.7", 1}, cluster.at};
  const auto client = StoreClient::open(options).value();
  std::string value;
  const uint64_t before = cluster.network.time.now_ns();
  CHECK(answered(cluster, [&] { return client->claim("a", "b", &value); }));
  CHECK(cluster.network.time.now_ns() - before < 2'000'000'000);
}

TEST_CASE("a large table goes to many clients and is held once") {
  Cluster cluster(13);
  cluster.network.most_bytes_a_move = 100'000;
  cluster.start_server();
  const std::string table(1 << 18, 't');
  std::vector<std::unique_ptr<StoreClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(cluster.client());
  cluster.server->set("table", table);
  size_t done = 0;
  std::vector<bool> has(clients.size());
  CHECK(cluster.until([&] {
    for (size_t i = 0; i < clients.size(); ++i) {
      std::string value;
      if (has[i] || !*clients[i]->get("table", &value)) continue;
      has[i] = value == table;
      ++done;
    }
    CHECK(cluster.server->memory_bytes() < 1u << 20);
    return done == clients.size();
  }));
  CHECK(std::count(has.begin(), has.end(), true) == 8);
}
