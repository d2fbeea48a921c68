// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>

#include "bootstrap/net.hpp"
#include "bootstrap/store_client.hpp"
#include "bootstrap/store_server.hpp"
#include "cluster.hpp"

using namespace tutti;

namespace {

std::unique_ptr<Listener> listener(Network& network, const Endpoint& at, PortRange range = {}) {
  Result<std::unique_ptr<Listener>> made = network.listen(at, range);
  INFO(made.status().message());
  REQUIRE(made.ok());
  return std::move(made).value();
}

/// Both ends of a connection over the kernel's sockets.
std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> connection(Network& network, Listener& at) {
  std::unique_ptr<Stream> client = network.connect(at.endpoint()).value();
  std::unique_ptr<Stream> server;
  const Deadline deadline = Deadline::after(network.clock(), 5'000'000'000);
  while (!server && !deadline.passed(network.clock())) (void)at.accept(&server);
  while (client->finish_connect() == Io::again && !deadline.passed(network.clock())) {
  }
  return {std::move(client), std::move(server)};
}

}  // namespace

TEST_CASE("endpoints as text, both ways") {
  for (const std::string text : {"10.0.0.5:4711", "[fd00::5]:1", "host.example:65535", "@name", "[fe80::1%eth0]:5"}) {
    const Result<Endpoint> endpoint = Endpoint::parse(text);
    REQUIRE(endpoint.ok());
    CHECK(endpoint->text() == text);
  }
  for (const std::string& text : {std::string(""), std::string("host"), std::string("host:"), std::string("host:0"),
                                  std::string("host:65536"), std::string("host:-1"), std::string("host:1x"), std::string(":5"),
                                  std::string("fd00::5:1"), std::string("[]:1"), std::string("@"), std::string(200, '@')}) {
    INFO(text);
    CHECK(Endpoint::parse(text).status().code() == TUTTI_ERR_ENVIRONMENT);
  }
  CHECK(parse_endpoints("a:1,@b")->size() == 2);
  CHECK(!parse_endpoints("a:1,").ok());
  CHECK(endpoints_text(*parse_endpoints("a:1,@b")) == "a:1,@b");
  for (const std::string local : {"127.0.0.1", "127.3.2.1", "localhost", "::1", "@x"})
    CHECK(Endpoint{local, 1}.on_this_machine());
  for (const std::string far : {"10.0.0.1", "127.example.org", "fd00::1"}) CHECK(!Endpoint{far, 1}.on_this_machine());
}

TEST_CASE("port ranges") {
  CHECK(PortRange::parse("7000-7010")->last == 7010);
  CHECK(PortRange::parse("7000")->last == 7000);
  CHECK(PortRange::parse("")->first == 0);
  for (const std::string bad : {"7010-7000", "0-5", "x", "1-70000", "-", "1-"}) {
    CHECK(PortRange::parse(bad).status().code() == TUTTI_ERR_CONFIG);
  }
}

TEST_CASE("a listener is at the address it was given and at a port of its range only") {
  const auto network = make_system_network();
  const auto any = listener(*network, {"127.0.0.1", 0});
  CHECK(any->endpoint().host == "127.0.0.1");
  const uint16_t port = any->endpoint().port;
  CHECK(port != 0);
  // The range's only port is taken.
  const auto refused = network->listen({"127.0.0.1", 0}, {port, port});
  REQUIRE(!refused.ok());
  CHECK(refused.status().code() == TUTTI_ERR_RESOURCE);
  CHECK(refused.status().message().find(fmt::format("{}-{}", port, port)) != std::string_view::npos);
  CHECK(!network->listen({"127.0.0.1", port}, {}).ok());
  // The same port at another address is free: nobody listens on all of them.
  CHECK(listener(*network, {"127.0.0.2", port})->endpoint().host == "127.0.0.2");
  CHECK(!network->listen({"192.0.2.77", 0}, {}).ok());
}

TEST_CASE("bytes go both ways and ends are seen, over TCP and local sockets") {
  const auto network = make_system_network();
  for (const Endpoint& at : {Endpoint{"127.0.0.1", 0}, Endpoint{fmt::format("@tutti-test-{}", getpid()), 0}}) {
    const auto listening = listener(*network, at);
    auto [client, server] = connection(*network, *listening);
    REQUIRE(server);
    CHECK((fcntl(server->fd(), F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(client->fd(), F_GETFD) & FD_CLOEXEC) != 0);
    std::array<std::byte, 8> buffer{};
    size_t moved = 0;
    CHECK(server->read(buffer, &moved) == Io::again);
    REQUIRE(client->write(buffer, &moved) == Io::done);
    CHECK(moved == 8);
    const auto poller = network->make_poller().value();
    REQUIRE(poller->watch(server->fd(), false, 42).ok());
    std::vector<uint64_t> ready;
    poller->wait(Deadline::after(network->clock(), 5'000'000'000), &ready);
    CHECK(ready == std::vector<uint64_t>{42});
    CHECK(server->read(buffer, &moved) == Io::done);
    client.reset();
    ready.clear();
    poller->wait(Deadline::after(network->clock(), 5'000'000'000), &ready);
    CHECK(server->read(buffer, &moved) == Io::closed);
    // Writing to a connection that is gone is an error, never SIGPIPE.
    Io io = Io::done;
    for (int i = 0; i < 100 && (io == Io::done || io == Io::again); ++i) io = server->write(buffer, &moved);
    CHECK(io == Io::failed);
  }
}

TEST_CASE("nobody listening is told at once, without a resolver") {
  const auto network = make_system_network();
  const uint16_t port = listener(*network, {"127.0.0.1", 0})->endpoint().port;
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    const auto made = network->connect({host, port});
    Io io = Io::failed;
    if (made.ok()) {
      const Deadline deadline = Deadline::after(network->clock(), 5'000'000'000);
      do {
        io = (*made)->finish_connect();
      } while (io == Io::again && !deadline.passed(network->clock()));
      CHECK((*made)->error().find("refused") != std::string::npos);
    }
    CHECK(io == Io::failed);
  }
  CHECK(!network->connect({"@nobody-is-here-at-all", 0}).ok());
}

TEST_CASE("a poller is woken from elsewhere, before or during its wait") {
  const auto network = make_system_network();
  const auto poller = network->make_poller().value();
  std::vector<uint64_t> ready;
  poller->wake();
  poller->wait(Deadline{}, &ready);
  std::thread other([&] { poller->wake(); });
  poller->wait(Deadline{}, &ready);
  other.join();
  CHECK(ready.empty());
}

TEST_CASE("only sockets are adopted") {
  const auto network = make_system_network();
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(network->adopt(ends[0]).status().code() == TUTTI_ERR_ENVIRONMENT);
  close(ends[0]);
  close(ends[1]);
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  CHECK(network->adopt(ends[0]).ok());
  close(ends[1]);
  CHECK(!network->adopt(9999).ok());
}

TEST_CASE("256 clients come at the same instant to a server that sleeps") {
  const auto network = make_system_network();
  SystemRandom random;
  StoreServerOptions serving;
  serving.network = network.get();
  serving.random = &random;
  serving.secret = Secret::from_text("s");
  serving.addresses = {{"127.0.0.1", 0}};
  const auto server = StoreServer::open(serving).value();
  StoreClientOptions options;
  options.network = network.get();
  options.random = &random;
  options.secret = serving.secret;
  options.servers = server->endpoints();
  options.deadline = Deadline::after(network->clock(), 60'000'000'000);
  std::vector<std::unique_ptr<StoreClient>> clients;
  std::vector<bool> joined(256);
  const auto ask_all = [&] {
    for (size_t i = 0; i < clients.size(); ++i) {
      std::string holder;
      if (joined[i]) continue;
      const Result<bool> known = clients[i]->claim(fmt::format("k{}", i), "x", &holder);
      joined[i] = known.ok() && *known;
    }
    return static_cast<size_t>(std::count(joined.begin(), joined.end(), true));
  };
  for (size_t i = 0; i < joined.size(); ++i) clients.push_back(StoreClient::open(options).value());
  CHECK(ask_all() == 0);  // all have knocked before the server looks for the first time
  while (ask_all() < joined.size() && !options.deadline.passed(network->clock())) server->step();
  CHECK(ask_all() == joined.size());
  CHECK(server->client_count() == joined.size());
}
