// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "bootstrap/auth.hpp"
#include "sim_network.hpp"

using namespace tutti;
using test::SeededRandom;

namespace {

using Bytes = std::vector<std::byte>;

/// Takes what one side has to say.
Bytes drain(Handshake& from) {
  const Bytes bytes(from.output().begin(), from.output().end());
  from.sent(bytes.size());
  return bytes;
}

void feed(Handshake& to, std::span<const std::byte> bytes, size_t chunk) {
  while (!bytes.empty() && to.wanted() > 0) {
    const size_t now = std::min({bytes.size(), chunk, to.wanted()});
    to.feed(bytes.first(now));
    bytes = bytes.subspan(now);
  }
}

void converse(Handshake& a, Handshake& b, size_t chunk) {
  for (int i = 0; i < 4; ++i) {
    feed(b, drain(a), chunk);
    feed(a, drain(b), chunk);
  }
}

const Secret kSecret = Secret::from_text("the job's own");

}  // namespace

TEST_CASE("both sides of a handshake with one secret accept, however the bytes are cut") {
  for (const size_t chunk : {size_t{1}, size_t{7}, size_t{64}, size_t{1000}}) {
    SeededRandom random(chunk);
    Handshake client(HandshakeRole::initiator, kSecret, "store", random);
    Handshake server(HandshakeRole::responder, kSecret, "store", random);
    converse(client, server, chunk);
    CHECK(client.state() == Handshake::State::accepted);
    CHECK(server.state() == Handshake::State::accepted);
    CHECK(client.wanted() == 0);
    CHECK(server.wanted() == 0);
  }
}

TEST_CASE("a wrong secret is refused by the responder before it has proved anything") {
  SeededRandom random(1);
  Handshake client(HandshakeRole::initiator, Secret::from_text("another"), "store", random);
  Handshake server(HandshakeRole::responder, kSecret, "store", random);
  feed(server, drain(client), 1000);
  const Bytes hello = drain(server);
  CHECK(hello.size() == Handshake::kHelloBytes);
  feed(client, hello, 1000);
  feed(server, drain(client), 1000);
  CHECK(server.state() == Handshake::State::refused);
  CHECK(server.why().code() == TUTTI_ERR_AUTH);
  CHECK(drain(server).empty());
}

TEST_CASE("an initiator does not trust a responder without the secret") {
  SeededRandom random(2);
  Handshake client(HandshakeRole::initiator, kSecret, "store", random);
  Handshake server(HandshakeRole::responder, kSecret, "store", random);
  feed(server, drain(client), 1000);
  feed(client, drain(server), 1000);
  (void)drain(client);
  feed(client, Bytes(32, std::byte{0x55}), 1000);
  CHECK(client.state() == Handshake::State::refused);
  CHECK(client.why().code() == TUTTI_ERR_AUTH);
}

TEST_CASE("another purpose or job is told apart on both sides") {
  SeededRandom random(3);
  Handshake client(HandshakeRole::initiator, kSecret, "store of job a", random);
  Handshake server(HandshakeRole::responder, kSecret, "store of job b", random);
  converse(client, server, 1000);
  CHECK(client.why().code() == TUTTI_ERR_AUTH);
  CHECK(server.why().code() == TUTTI_ERR_AUTH);
}

TEST_CASE("different versions authenticate each other and then report both numbers") {
  SeededRandom random(4);
  Handshake client(HandshakeRole::initiator, kSecret, "store", random, 3);
  Handshake server(HandshakeRole::responder, kSecret, "store", random, 8);
  converse(client, server, 5);
  for (const Handshake* side : {&client, &server}) {
    CHECK(side->state() == Handshake::State::refused);
    CHECK(side->why().code() == TUTTI_ERR_VERSION);
    CHECK(side->why().message().find("version 3") != std::string_view::npos);
    CHECK(side->why().message().find("version 8") != std::string_view::npos);
  }
}

TEST_CASE("garbage is refused at the first byte that does not fit") {
  SeededRandom random(5);
  Handshake server(HandshakeRole::responder, kSecret, "store", random);
  const std::string_view http = "GET / HTTP/1.1\r\n";
  server.feed(std::as_bytes(std::span(http)).first(1));
  CHECK(server.state() == Handshake::State::refused);
  CHECK(server.why().code() == TUTTI_ERR_PROTOCOL);
  CHECK(server.output().empty());
}

TEST_CASE("a reflected hello is refused") {
  SeededRandom random(6);
  Handshake client(HandshakeRole::initiator, kSecret, "store", random);
  const Bytes own = drain(client);
  feed(client, own, 1000);
  CHECK(client.state() == Handshake::State::refused);
  CHECK(client.why().code() == TUTTI_ERR_PROTOCOL);
}

TEST_CASE("a recorded conversation does not open a second connection") {
  SeededRandom random(7);
  Handshake client(HandshakeRole::initiator, kSecret, "store", random);
  Handshake server(HandshakeRole::responder, kSecret, "store", random);
  Bytes recorded = drain(client);
  feed(server, recorded, 1000);
  feed(client, drain(server), 1000);
  const Bytes proof = drain(client);
  recorded.insert(recorded.end(), proof.begin(), proof.end());
  Handshake again(HandshakeRole::responder, kSecret, "store", random);
  feed(again, recorded, 1000);
  CHECK(again.state() == Handshake::State::refused);
  CHECK(again.why().code() == TUTTI_ERR_AUTH);
}

TEST_CASE("every single damaged bit of the initiator's bytes is noticed") {
  for (size_t bit = 0; bit < Handshake::kMostBytes * 8; bit += 3) {
    SeededRandom random(bit);
    Handshake client(HandshakeRole::initiator, kSecret, "store", random);
    Handshake server(HandshakeRole::responder, kSecret, "store", random);
    Bytes bytes = drain(client);
    const auto flip = [&](size_t offset) {
      const size_t at = bit / 8;
      if (at >= offset && at - offset < bytes.size()) bytes[at - offset] ^= static_cast<std::byte>(1u << (bit % 8));
    };
    flip(0);
    feed(server, bytes, 1000);
    feed(client, drain(server), 1000);
    bytes = drain(client);
    flip(Handshake::kHelloBytes);
    feed(server, bytes, 1000);
    INFO("bit " << bit);
    CHECK(server.state() != Handshake::State::accepted);
  }
}
