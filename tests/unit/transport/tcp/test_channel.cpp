// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cstring>

#include "channel.hpp"
#include "job.hpp"

namespace tutti::tcp {
namespace {

constexpr std::uint64_t kWindow = 8192;
constexpr std::uint32_t kMark = 0xc0000000;

struct Op {
  tutti_tp_op_t op{};
  std::vector<std::uint8_t> memory;
};

/// An inbound channel, spoken to as its link would.
struct Bench {
  Bench() : host(&double_.table), inbound(host, kWindow) { inbound.open(); }

  const char* frame(std::uint64_t length, std::uint64_t value, bool first = true, std::uint32_t stream = 1) {
    FrameHeader header;
    header.flags = first ? kFlagFirst : std::uint8_t{0};
    header.length = static_cast<std::uint32_t>(length);
    header.value = value;
    header.stream = stream;
    if (first) header.mark = static_cast<std::uint32_t>(value) + kMark;
    if (const char* wrong = inbound.begin_frame(header); wrong != nullptr) return wrong;
    for (std::uint64_t left = length; left > 0;) {
      const Target target = inbound.target();
      const std::uint64_t part = std::min<std::uint64_t>({target.bytes, left, 100});
      if (target.data != nullptr) {
        for (std::uint64_t i = 0; i < part; ++i) target.data[i] = next++;
      }
      inbound.advance(part);
      left -= part;
    }
    inbound.end_frame();
    return nullptr;
  }
  void post(Op& op, std::size_t capacity) {
    op.memory.assign(capacity, 0);
    op.op = tutti_tp_op_t{};
    op.op.plugin[1] = op.memory.data();
    op.op.plugin[2] = reinterpret_cast<void*>(capacity);
    inbound.post(&op.op);
  }

  test::HostDouble double_;
  Host host;
  Inbound inbound;
  std::uint8_t next = 0;
};

}  // namespace

TEST_CASE("posted and buffered messages come in order, truncated where the buffer is short") {
  Bench bench;
  Op early;
  bench.post(early, 10);
  REQUIRE(bench.frame(10, 10) == nullptr);
  CHECK(early.op.done == 1);
  CHECK(early.memory[9] == 9);
  CHECK(early.op.mark == 10 + kMark);
  REQUIRE(bench.frame(20, 20) == nullptr);
  REQUIRE(bench.frame(0, 0) == nullptr);
  REQUIRE(bench.frame(5, 5) == nullptr);
  Op late[3];
  bench.post(late[0], 8);
  CHECK(late[0].op.status == TUTTI_ERR_TRUNCATED);
  CHECK(late[0].op.bytes == 20);
  CHECK(late[0].op.mark == 20 + kMark);
  CHECK(late[0].memory[7] == 17);
  bench.post(late[1], 0);
  CHECK((late[1].op.done == 1 && late[1].op.status == TUTTI_OK && late[1].op.bytes == 0));
  bench.post(late[2], 100);
  CHECK((late[2].op.bytes == 5 && late[2].memory[0] == 30));
  CHECK(late[2].op.mark == 5 + kMark);
}

TEST_CASE("a receive posted in the middle of a message takes what came and the rest") {
  Bench bench;
  REQUIRE(bench.frame(1000, 3000) == nullptr);
  Op op;
  bench.post(op, 3000);
  CHECK(op.op.done == 0);
  CHECK(bench.inbound.credit_due() == kMessageCharge + 3000);
  REQUIRE(bench.frame(1500, 1000, false) == nullptr);
  REQUIRE(bench.frame(500, 2500, false) == nullptr);
  CHECK(op.op.done == 1);
  CHECK(op.op.mark == 3000 + kMark);
  for (std::size_t i = 0; i < 3000; ++i) REQUIRE(op.memory[i] == static_cast<std::uint8_t>(i));
}

TEST_CASE("what nobody receives is bounded by the window, empty messages too") {
  Bench bench;
  const std::uint64_t payload = kWindow - kMessageCharge;
  REQUIRE(bench.frame(payload, payload) == nullptr);
  CHECK(bench.frame(0, 0) != nullptr);
  CHECK(bench.inbound.credit_due() == 0);
  CHECK(bench.host.memory_bytes() < 3 * kWindow);
  Bench empty;
  for (std::uint64_t i = 0; i < kWindow / kMessageCharge; ++i) REQUIRE(empty.frame(0, 0) == nullptr);
  CHECK(empty.frame(0, 0) != nullptr);
}

TEST_CASE("credit comes back when bytes are consumed, in batches, and at once when the sender must wait for it") {
  Bench bench;
  Op ops[64];
  std::uint64_t returned = 0;
  for (Op& op : ops) {
    bench.post(op, 1000);
    REQUIRE(bench.frame(1000, 1000) == nullptr);
    const std::uint64_t due = bench.inbound.credit_due();
    CHECK((due == 0 || due >= kWindow / 2));
    if (due > 0) returned += bench.inbound.take_credit();
  }
  CHECK(returned > 63 * 1000 - kWindow / 2);
  Op big;
  bench.post(big, 1 << 20);
  REQUIRE(bench.frame(100, 1 << 20) == nullptr);
  CHECK(bench.inbound.credit_due() >= 1 << 20);
}

TEST_CASE("frames that contradict each other are violations") {
  CHECK(Bench().frame(10, 0, false) != nullptr);  // continuation of nothing
  Bench within;
  REQUIRE(within.frame(10, 20) == nullptr);
  CHECK(within.frame(10, 10) != nullptr);
  Bench offset;
  REQUIRE(offset.frame(10, 20) == nullptr);
  CHECK(offset.frame(10, 9, false) != nullptr);
  Bench beyond;
  REQUIRE(beyond.frame(10, 20) == nullptr);
  CHECK(beyond.frame(11, 10, false) != nullptr);
  Bench streams;
  REQUIRE(streams.frame(10, 10) == nullptr);
  CHECK(streams.frame(10, 10, true, 2) != nullptr);
  Bench half;
  REQUIRE(half.frame(10, 20) == nullptr);
  CHECK(half.inbound.end(false) != nullptr);
}

TEST_CASE("a channel closed here drops the rest of that use, and the next use starts clean") {
  Bench bench;
  REQUIRE(bench.frame(1000, 3000) == nullptr);
  Op waiting;
  bench.post(waiting, 3000);
  bench.inbound.close();
  CHECK(waiting.op.status == TUTTI_ERR_ABORTED);
  CHECK(bench.host.memory_bytes() == 0);
  CHECK_FALSE(bench.inbound.idle());
  bench.inbound.open();  // the id is used again while the earlier use is still on its way
  Op op;
  bench.post(op, 10);
  REQUIRE(bench.frame(2000, 1000, false) == nullptr);
  REQUIRE(bench.frame(10, 10) == nullptr);
  CHECK(op.op.done == 0);
  CHECK(bench.inbound.end(false) == nullptr);
  REQUIRE(bench.frame(10, 10, true, 2) == nullptr);
  CHECK((op.op.done == 1 && op.op.status == TUTTI_OK));
  bench.inbound.close();
  CHECK(bench.inbound.end(false) == nullptr);
  CHECK(bench.inbound.idle());
}

TEST_CASE("an outbound channel sends as far as its credit goes") {
  Outbound out(3, kWindow);
  tutti_tp_op_t op{};
  std::vector<std::uint8_t> data(3 * kWindow);
  op.plugin[1] = data.data();
  op.bytes = data.size();
  op.mark = kMark;
  out.post(&op);
  REQUIRE(out.sendable());
  Outbound::Piece piece = out.next();
  CHECK(piece.header.flags == kFlagFirst);
  CHECK(piece.header.length == kWindow - kMessageCharge);
  CHECK(piece.header.mark == kMark);
  CHECK_FALSE(out.sendable());
  CHECK(out.add_credit(2, 1 << 20));  // of an earlier use
  CHECK_FALSE(out.sendable());
  CHECK(out.add_credit(3, 1 << 20));
  piece = out.next();
  CHECK(piece.header.value == kWindow - kMessageCharge);
  CHECK(piece.header.mark == 0);
  CHECK(piece.last);
  CHECK(out.empty());
  CHECK_FALSE(out.add_credit(3, ~std::uint64_t{0}));
}

}  // namespace tutti::tcp
