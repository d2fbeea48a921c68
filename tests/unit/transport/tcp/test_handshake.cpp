// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "handshake.hpp"
#include "job.hpp"

namespace tutti::tcp {
namespace {

struct Party {
  explicit Party(std::uint32_t rank, std::uint8_t job = 1) : host(&double_.table) {
    identity.rank = rank;
    identity.job_id[0] = job;
    identity.incarnation[0] = static_cast<std::uint8_t>(rank + 100);
    identity.window_bytes = 65536 + rank;
  }
  test::HostDouble double_;
  Host host;
  Identity identity;
};

std::string take(Handshake& from) {
  std::string bytes(reinterpret_cast<const char*>(from.output()), from.output_bytes());
  from.sent(bytes.size());
  return bytes;
}

void give(Handshake& to, const std::string& bytes, std::size_t step = 1000) {
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const std::string part = bytes.substr(at, step);
    to.feed(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  }
}

/// Runs both to their ends, the acceptor saying what it is told to.
void meet(Handshake& connector, Handshake& acceptor, Verdict verdict = Verdict::kAccept, std::size_t step = 1000) {
  for (int turn = 0; turn < 6; ++turn) {
    give(acceptor, take(connector), step);
    if (acceptor.state() == Handshake::State::kAsksVerdict) acceptor.decide(verdict);
    give(connector, take(acceptor), step);
  }
}

using State = Handshake::State;

}  // namespace

TEST_CASE("two members of a job recognise each other, byte by byte too") {
  for (const std::size_t step : {1u, 1000u}) {
    Party a(0);
    Party b(1);
    Handshake connector = Handshake::connector(a.host, a.identity, 1, b.identity.incarnation);
    Handshake acceptor = Handshake::acceptor(b.host, b.identity);
    CHECK_FALSE(connector.committed());
    meet(connector, acceptor, Verdict::kAccept, step);
    REQUIRE(connector.state() == State::kEstablished);
    REQUIRE(acceptor.state() == State::kEstablished);
    CHECK(acceptor.peer() == 0);
    CHECK(acceptor.peer_incarnation() == a.identity.incarnation);
    CHECK(acceptor.peer_window_bytes() == 65536);
    CHECK(connector.peer_window_bytes() == 65537);
  }
}

TEST_CASE("the acceptor's verdict reaches the connector") {
  Party a(0);
  Party b(1);
  Handshake connector = Handshake::connector(a.host, a.identity, 1, b.identity.incarnation);
  Handshake acceptor = Handshake::acceptor(b.host, b.identity);
  meet(connector, acceptor, Verdict::kYield);
  CHECK(connector.state() == State::kYielded);
  Handshake again = Handshake::connector(a.host, a.identity, 1, b.identity.incarnation);
  Handshake refusing = Handshake::acceptor(b.host, b.identity);
  meet(again, refusing, Verdict::kRefuse);
  CHECK(again.state() == State::kFailed);
}

TEST_CASE("another secret, job, rank or run is not taken for the peer") {
  Party a(0);
  Party b(1);
  const auto outcome = [&](Party& connecting, Party& accepting, std::uint32_t rank, const Incarnation& incarnation) {
    Handshake connector = Handshake::connector(connecting.host, connecting.identity, rank, incarnation);
    Handshake acceptor = Handshake::acceptor(accepting.host, accepting.identity);
    meet(connector, acceptor);
    CHECK(acceptor.state() != State::kEstablished);
    CHECK(connector.state() == State::kFailed);
    return connector.failure();
  };
  Party other_secret(1);
  other_secret.double_.secret = "another";
  CHECK(outcome(a, other_secret, 1, other_secret.identity.incarnation) == "it is not of this job, or its secret differs");
  Party other_job(1, 2);
  CHECK(outcome(a, other_job, 1, other_job.identity.incarnation) == "it is not of this job, or its secret differs");
  CHECK(outcome(a, b, 2, b.identity.incarnation) == "rank 1 answers there");
  CHECK(outcome(a, b, 1, a.identity.incarnation) == "an earlier or later run of it answers");
  CHECK(outcome(a, a, 1, b.identity.incarnation) == "the address leads back to this rank itself");
}

TEST_CASE("strangers' bytes end the handshake, at the first wrong one") {
  Party b(1);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1"), std::string("\x16\x03\x01\x02", 4), std::string(64, '\xff')}) {
    Handshake acceptor = Handshake::acceptor(b.host, b.identity);
    give(acceptor, bytes, 1);
    CHECK(acceptor.state() == State::kFailed);
    CHECK_FALSE(acceptor.verified());
    CHECK(acceptor.output_bytes() == 0);
  }
}

TEST_CASE("a recorded connector cannot be replayed, and each flipped bit is noticed") {
  Party a(0);
  Party b(1);
  Handshake connector = Handshake::connector(a.host, a.identity, 1, b.identity.incarnation);
  Handshake acceptor = Handshake::acceptor(b.host, b.identity);
  const std::string greeting = take(connector);
  give(acceptor, greeting);
  const std::string challenge = take(acceptor);
  give(connector, challenge);
  CHECK(connector.committed());
  const std::string proof = take(connector);

  Handshake fresh = Handshake::acceptor(b.host, b.identity);
  give(fresh, greeting);
  take(fresh);
  give(fresh, proof);
  CHECK(fresh.state() == State::kFailed);

  for (std::size_t bit = 0; bit < challenge.size() * 8; bit += 5) {
    Handshake honest = Handshake::connector(a.host, a.identity, 1, b.identity.incarnation);
    std::string changed = challenge;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    give(honest, changed);
    CHECK(honest.state() == State::kFailed);
  }
  for (std::size_t bit = 0; bit < proof.size() * 8; bit += 3) {
    Handshake victim = acceptor;
    std::string changed = proof;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    give(victim, changed);
    CHECK(victim.state() == State::kFailed);
  }
}

TEST_CASE("a stranger cannot use one member as the oracle for another: messages sent back are refused") {
  Party a(0);
  Party b(1);
  Handshake connector = Handshake::connector(a.host, a.identity, 1, b.identity.incarnation);
  const std::string greeting = take(connector);
  Handshake acceptor = Handshake::acceptor(a.host, a.identity);  // its own listener, asked through the stranger
  give(acceptor, greeting);
  give(connector, take(acceptor));
  CHECK(connector.state() == State::kFailed);
  CHECK_FALSE(connector.committed());
}

}  // namespace tutti::tcp
