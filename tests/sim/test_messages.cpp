// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <numeric>

#include "job.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

sim::Options options(uint32_t size, uint32_t caps) {
  sim::Options result;
  result.size = size;
  result.again_percent = 10;
  result.caps = [caps](uint32_t, uint32_t) { return caps; };
  return result;
}

std::vector<uint8_t> pattern(size_t bytes, uint8_t seed) {
  std::vector<uint8_t> result(bytes);
  for (size_t i = 0; i < bytes; ++i) result[i] = static_cast<uint8_t>(i * 31 + seed);
  return result;
}

}  // namespace

TEST_CASE("messages of all lengths, matched by tag in any order, never overtake within a tag") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  SimJob job(1, options(2, caps));
  SimComm comm(job, 1, {0, 1});
  const std::vector<size_t> lengths = {0, 1, 8, 1007, 1008, 1009, 4096, 50000};
  std::deque<MessageOperation> sends;
  std::deque<MessageOperation> receives;
  std::vector<std::vector<uint8_t>> sent;
  std::vector<std::vector<uint8_t>> got;
  for (size_t i = 0; i < lengths.size() * 2; ++i) {
    sent.push_back(pattern(lengths[i / 2], static_cast<uint8_t>(i)));
    got.emplace_back(lengths[i / 2] + 3);
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    sends.emplace_back();
    comm.send(0, sent[i].data(), sent[i].size(), 1, static_cast<int32_t>(i / 2), sends.back());
  }
  for (size_t i = 0; i < sent.size(); ++i) receives.emplace_back();
  // Receives are posted backwards by tag, forwards within one.
  for (size_t tag = lengths.size(); tag-- > 0;)
    for (const size_t i : {tag * 2, tag * 2 + 1})
      comm.recv(1, got[i].data(), got[i].size(), 0, static_cast<int32_t>(tag), receives[i]);
  REQUIRE(job.drive([&] {
    return std::all_of(receives.begin(), receives.end(), [](auto& o) { return o.done(); }) &&
           std::all_of(sends.begin(), sends.end(), [](auto& o) { return o.done(); });
  }));
  for (size_t i = 0; i < sent.size(); ++i) {
    REQUIRE(receives[i].result().ok());
    CHECK(receives[i].received_bytes() == sent[i].size());
    got[i].resize(sent[i].size());
    CHECK(got[i] == sent[i]);
  }
}

TEST_CASE("a receive that is cancelled at any moment gets its message, or ends without and leaves it to the next") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  const size_t length = GENERATE(as<size_t>(), 100, 30000);
  const std::vector<uint8_t> sent = pattern(length, 9);
  const std::vector<uint8_t> untouched(length, 0xee);
  int cancelled = 0;
  int matched_before_it_was_done = 0;
  for (int moment = 0;; ++moment) {
    INFO("after " << moment << " steps");
    // What the communicator ends outlives it.
    std::vector<uint8_t> first = untouched;
    std::vector<uint8_t> second = untouched;
    MessageOperation send;
    MessageOperation receive;
    MessageOperation next;
    SimJob job(3, options(2, caps));
    SimComm comm(job, 1, {0, 1});
    comm.recv(1, first.data(), length, kAnySource, 5, receive);
    comm.send(0, sent.data(), length, 1, 5, send);
    int steps = moment;
    job.drive([&] { return receive.done() || steps-- == 0; });
    const bool was_done = receive.done();
    comm.engine(1).cancel(receive);
    REQUIRE(job.drive([&] { return receive.done(); }));
    if (receive.result().ok()) {
      CHECK(first == sent);
      if (was_done) break;
      ++matched_before_it_was_done;
      continue;
    }
    REQUIRE(receive.result().code() == TUTTI_ERR_CANCELLED);
    CHECK(first == untouched);
    ++cancelled;
    comm.recv(1, second.data(), length, 0, 5, next);
    REQUIRE(job.drive([&] { return next.done() && send.done(); }));
    CHECK(next.result().ok());
    CHECK(second == sent);
  }
  CHECK(cancelled > 0);
  if (length > 1008) CHECK(matched_before_it_was_done > 0);
}

TEST_CASE("a message longer than the buffer is truncated, with an error, and harms nobody else") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  SimJob job(2, options(2, caps));
  SimComm comm(job, 1, {0, 1});
  for (const size_t length : {size_t{100}, size_t{30000}}) {
    const std::vector<uint8_t> sent = pattern(length, 9);
    std::vector<uint8_t> short_buffer(length / 2 + 1, 0xee);
    short_buffer.back() = 0x77;
    std::vector<uint8_t> second(length);
    MessageOperation send_one;
    MessageOperation send_two;
    MessageOperation recv_one;
    MessageOperation recv_two;
    comm.send(0, sent.data(), length, 1, 5, send_one);
    comm.send(0, sent.data(), length, 1, 5, send_two);
    comm.recv(1, short_buffer.data(), length / 2, 0, 5, recv_one);
    comm.recv(1, second.data(), length, 0, 5, recv_two);
    REQUIRE(job.drive([&] { return recv_one.done() && recv_two.done() && send_two.done(); }));
    CHECK(recv_one.result().code() == TUTTI_ERR_TRUNCATED);
    CHECK(std::equal(short_buffer.begin(), short_buffer.begin() + static_cast<std::ptrdiff_t>(length / 2), sent.begin()));
    CHECK(short_buffer.back() == 0x77);
    CHECK(recv_two.result().ok());
    CHECK(second == sent);
  }
}

TEST_CASE("a rank may send to itself") {
  SimJob job(3, options(2, TUTTI_TP_CAP_SLOTS));
  SimComm comm(job, 1, {0, 1});
  const std::vector<uint8_t> sent = pattern(5000, 1);
  std::vector<uint8_t> got(5000);
  MessageOperation send_one;
  MessageOperation recv_one;
  comm.recv(0, got.data(), got.size(), 0, 1, recv_one);
  comm.send(0, sent.data(), sent.size(), 0, 1, send_one);
  REQUIRE(job.drive([&] { return send_one.done() && recv_one.done(); }));
  CHECK(got == sent);
}

TEST_CASE("a sender that nobody receives from is held back and fails at its deadline") {
  SimJob job(4, options(2, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, {0, 1});
  const std::vector<uint8_t> big = pattern(1 << 20, 1);
  MessageOperation operation;
  comm.send(0, big.data(), big.size(), 1, 1, operation, job.after(1'000'000'000));
  REQUIRE(job.drive([&] { return operation.done(); }));
  CHECK(operation.result().code() == TUTTI_ERR_TIMEOUT);
}

TEST_CASE("a receive from a rank that has destroyed the communicator fails, after all that it sent was taken") {
  SimJob job(5, options(2, TUTTI_TP_CAP_SLOTS));
  SimComm comm(job, 1, {0, 1});
  const std::vector<uint8_t> sent = pattern(64, 1);
  std::vector<uint8_t> got(64);
  MessageOperation send_one;
  comm.send(1, sent.data(), sent.size(), 0, 1, send_one);
  REQUIRE(job.drive([&] { return send_one.done(); }));
  comm.leave(1);
  MessageOperation recv_one;
  comm.recv(0, got.data(), got.size(), 1, 1, recv_one);
  REQUIRE(job.drive([&] { return recv_one.done(); }));
  CHECK(recv_one.result().ok());
  CHECK(got == sent);
  MessageOperation recv_two;
  comm.recv(0, got.data(), got.size(), 1, 1, recv_two);
  REQUIRE(job.drive([&] { return recv_two.done(); }));
  CHECK(recv_two.result().code() == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("a message that its sender leaves unfinished is not waited for") {
  SimJob job(6, options(2, TUTTI_TP_CAP_SLOTS));
  SimComm comm(job, 1, {0, 1});
  const std::vector<uint8_t> sent = pattern(1 << 20, 1);
  std::vector<uint8_t> got(sent.size());
  MessageOperation send_one;
  MessageOperation recv_one;
  comm.send(1, sent.data(), sent.size(), 0, 1, send_one);
  comm.recv(0, got.data(), got.size(), 1, 1, recv_one);
  // Into the middle of the body, which takes hundreds of slots.
  uint64_t steps = 12;
  job.drive([&] { return steps-- == 0; });
  REQUIRE_FALSE(send_one.done());
  comm.leave(1);
  CHECK(send_one.result().code() == TUTTI_ERR_ABORTED);
  REQUIRE(job.drive([&] { return recv_one.done(); }, 10'000'000'000));
  CHECK(recv_one.result().code() == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("a large message to oneself does no harm to those from others") {
  SimJob job(7, options(2, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, {0, 1});
  const std::vector<uint8_t> large = pattern(PointToPoint::kUnexpectedLimitBytes + 1, 1);
  std::vector<uint8_t> got_large(large.size());
  const std::vector<uint8_t> small = pattern(8, 2);
  std::vector<uint8_t> got_small(8);
  MessageOperation to_self;
  MessageOperation from_self;
  MessageOperation to_other;
  MessageOperation from_other;
  comm.recv(1, got_small.data(), got_small.size(), 0, 3, from_other);
  comm.send(1, large.data(), large.size(), 1, 3, to_self);
  comm.send(0, small.data(), small.size(), 1, 3, to_other);
  REQUIRE(job.drive([&] { return from_other.done(); }));
  CHECK(from_other.result().ok());
  CHECK(got_small == small);
  comm.recv(1, got_large.data(), got_large.size(), 1, 3, from_self);
  REQUIRE(job.drive([&] { return to_self.done() && from_self.done() && to_other.done(); }));
  CHECK(to_self.result().ok());
  CHECK(got_large == large);
}

TEST_CASE("a large message to oneself that nobody receives ends at its deadline") {
  SimJob job(7, options(2, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, {0, 1});
  const std::vector<uint8_t> large(PointToPoint::kUnexpectedLimitBytes + 1);
  MessageOperation to_self;
  comm.send(1, large.data(), large.size(), 1, 3, to_self, job.after(1'000'000'000));
  REQUIRE(job.drive([&] { return to_self.done(); }));
  CHECK(to_self.result().code() == TUTTI_ERR_TIMEOUT);
}

TEST_CASE("messages go through slots of any size") {
  sim::Options small_slots = options(2, TUTTI_TP_CAP_SLOTS);
  small_slots.slot_bytes = 64;
  SimJob job(9, small_slots);
  SimComm comm(job, 1, {0, 1});
  for (const size_t length : {0u, 1u, 48u, 49u, 64u, 1008u, 5000u}) {
    const std::vector<uint8_t> sent = pattern(length, 3);
    std::vector<uint8_t> got(length);
    MessageOperation send;
    MessageOperation receive;
    comm.send(0, sent.data(), length, 1, 1, send);
    comm.recv(1, got.data(), length, 0, 1, receive);
    REQUIRE(job.drive([&] { return send.done() && receive.done(); }));
    CHECK(receive.result().ok());
    CHECK(got == sent);
  }
}
