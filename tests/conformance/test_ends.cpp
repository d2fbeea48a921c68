// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// Notices, orderly ends and cuts.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

bool knows_gone(Job& job, uint32_t rank, uint32_t peer) {
  const auto& gone = job.host(rank).gone;
  return std::any_of(gone.begin(), gone.end(), [&](const Host::Gone& one) { return one.peer == peer; });
}

tutti_status_t notify(Job& job, uint32_t from, uint32_t to, const std::string& text) {
  job.host(from).in_call = true;
  const tutti_status_t status = tp().notify(job[from], to, text.data(), text.size());
  job.host(from).in_call = false;
  return status;
}

void cut(Job& job, uint32_t rank, uint32_t peer) {
  job.host(rank).in_call = true;
  tp().cut(job[rank], peer);
  job.host(rank).in_call = false;
}

}  // namespace

TEST_CASE("a notice arrives before there is any connection and though nothing is posted", "[ends]") {
  Job job(3);
  REQUIRE(job.until([&] { return notify(job, 2, 0, "hello") == TUTTI_OK; }));
  REQUIRE(job.until([&] { return !job.host(0).notices.empty(); }));
  CHECK(job.host(0).notices.front() == std::make_pair(2u, std::string("hello")));
  CHECK(job.host(1).notices.empty());
}

TEST_CASE("notices of every length arrive, each once, however many", "[ends]") {
  Job job;
  constexpr uint32_t kCount = 500;
  const auto text = [](uint32_t i) { return std::to_string(i) + std::string(i % 40, 'x'); };
  uint32_t sent = 0;
  REQUIRE(job.until([&] {
    if (sent < kCount && notify(job, 0, 1, text(sent)) == TUTTI_OK) ++sent;
    return job.host(1).notices.size() == kCount;
  }));
  job.progress_times(100);
  REQUIRE(job.host(1).notices.size() == kCount);
  std::vector<std::string> got;
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < kCount; ++i) {
    got.push_back(job.host(1).notices[i].second);
    expected.push_back(text(i));
  }
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  CHECK(got == expected);
  CHECK(notify(job, 0, 1, std::string(TUTTI_TP_NOTICE_MAX_BYTES + 1, 'x')) == TUTTI_ERR_ARGUMENT);
  CHECK(notify(job, 0, 2, "x") < 0);
  REQUIRE(job.until([&] { return notify(job, 1, 0, std::string(TUTTI_TP_NOTICE_MAX_BYTES, 'y')) == TUTTI_OK; }));
  REQUIRE(job.until([&] { return !job.host(0).notices.empty(); }));
  CHECK(job.host(0).notices.front().second == std::string(TUTTI_TP_NOTICE_MAX_BYTES, 'y'));
}

TEST_CASE("a rank that is not driven gets notices without end, and the notifier is held back", "[ends]") {
  Job job;
  REQUIRE(job.connect(0, 1));
  job.leave_alone(1);
  uint32_t accepted = 0;
  job.until([&] {
    while (accepted < 1'000'000 && notify(job, 0, 1, "are you there?") == TUTTI_OK) ++accepted;
    return accepted == 1'000'000;
  }, 1);
  CHECK(accepted > 0);
  CHECK(accepted < 1'000'000);
  REQUIRE(job.until([&] {
    job.progress(1);
    return job.host(1).notices.size() == accepted;
  }));
}

TEST_CASE("who leaves is told as one who left, after what it sent has arrived", "[ends]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job(3);
    Lane lane(job, 0, 1, 1, carrier);
    Lane other(job, 2, 1, 1, carrier);
    REQUIRE(lane.deliver(pattern(10, 0)));
    REQUIRE(lane.send(pattern(900, 1)));
    const bool buffered = carrier == Carrier::slots || job.until([&] { return lane.pending() == 0; }, 0.2);
    job.close(0);
    Bytes got;
    if (buffered) {
      REQUIRE(lane.receive(&got));
      CHECK(got == pattern(900, 1));
    }
    REQUIRE(job.until([&] { return knows_gone(job, 1, 0); }));
    CHECK(job.host(1).gone[0].cause == TUTTI_TP_GONE_LEFT);
    CHECK_FALSE(job.host(1).gone[0].text.empty());
    tutti_status_t after = TUTTI_TP_AGAIN;
    if (!buffered && (after = lane.try_receive(&got)) == TUTTI_OK) {  // accepted at close
      CHECK(got == pattern(900, 1));
    }
    REQUIRE(job.until([&] { return (after = lane.try_receive(&got)) != TUTTI_TP_AGAIN; }));
    CHECK(after == TUTTI_ERR_PEER_FAILED);
    REQUIRE(other.deliver(pattern(100, 2)));
    job.progress_times(300);
    CHECK(job.host(1).gone.size() == 1);
  }
}

TEST_CASE("what was received late is still there after the sender left", "[ends]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job;
    Lane lane(job, 0, 1, 1, carrier);
    REQUIRE(job.connect(0, 1));
    uint32_t sent = 0;
    for (; sent < TUTTI_TP_MIN_SLOTS; ++sent) REQUIRE(lane.send(pattern(500, sent)));
    if (carrier == Carrier::messages) job.until([&] { return lane.pending() == 0; }, 0.2);
    job.close(0);
    REQUIRE(job.until([&] { return knows_gone(job, 1, 0); }));
    CHECK(job.host(1).gone[0].cause == TUTTI_TP_GONE_LEFT);
    for (uint32_t i = 0; i < sent; ++i) {
      Bytes got;
      REQUIRE(lane.receive(&got));
      CHECK(got == pattern(500, i));
    }
  }
}

TEST_CASE("posts to one who left end with the peer's failure", "[ends]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job;
    Lane there(job, 0, 1, 1, carrier);
    Lane back(job, 1, 0, 1, carrier);
    REQUIRE(there.deliver(pattern(10, 0)));
    Bytes got;
    REQUIRE(back.try_receive(&got) == TUTTI_TP_AGAIN);
    job.close(1);
    REQUIRE(job.until([&] { return knows_gone(job, 0, 1); }));
    CHECK(back.try_receive(&got) == TUTTI_ERR_PEER_FAILED);
    CHECK(there.try_send(pattern(10, 0)) == TUTTI_ERR_PEER_FAILED);
    CHECK(notify(job, 0, 1, "x") == TUTTI_ERR_PEER_FAILED);
    job.host(0).in_call = true;
    CHECK(tp().connect(job[0], 1) < 0);
  }
}

TEST_CASE("all leave at once, with traffic under way, and nothing is left behind", "[ends]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    for (int round = 0; round < 5; ++round) {
      Job job(4);
      std::vector<std::unique_ptr<Lane>> lanes;
      for (uint32_t a = 0; a < 4; ++a) {
        for (uint32_t b = 0; b < 4; ++b) {
          if (a != b) lanes.push_back(std::make_unique<Lane>(job, a, b, 1, carrier));
        }
      }
      for (auto& lane : lanes) REQUIRE(lane->deliver(pattern(100, 1)));
      for (auto& lane : lanes) REQUIRE(lane->try_send(pattern(100, 1)) >= 0);
      job.progress_times(round);
      for (uint32_t rank = 0; rank < 4; ++rank) job.close(rank);
      for (uint32_t rank = 0; rank < 4; ++rank) {
        CHECK(job.host(rank).live_blocks() == 0);
        CHECK(job.host(rank).faults.empty());
        for (const Host::Gone& gone : job.host(rank).gone) CHECK(gone.cause == TUTTI_TP_GONE_LEFT);
      }
    }
  }
}

TEST_CASE("a cut ends everything here at once, and is a failure there", "[ends]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job(3);
    Lane there(job, 0, 1, 1, carrier);
    Lane back(job, 1, 0, 1, carrier);
    Lane other(job, 0, 2, 1, carrier);
    Lane third(job, 2, 1, 1, carrier);
    for (Lane* lane : {&there, &back, &other, &third}) REQUIRE(lane->deliver(pattern(10, 0)));
    Bytes got;
    REQUIRE(back.try_receive(&got) == TUTTI_TP_AGAIN);
    REQUIRE(there.try_receive(&got) == TUTTI_TP_AGAIN);
    cut(job, 0, 1);
    CHECK(there.try_send(pattern(10, 0)) == TUTTI_ERR_PEER_FAILED);
    CHECK(back.try_receive(&got) == TUTTI_ERR_PEER_FAILED);
    CHECK(notify(job, 0, 1, "x") == TUTTI_ERR_PEER_FAILED);
    REQUIRE(job.until([&] { return knows_gone(job, 1, 0); }));
    CHECK(job.host(1).gone[0].cause == TUTTI_TP_GONE_FAILED);
    CHECK(there.try_receive(&got) == TUTTI_ERR_PEER_FAILED);
    CHECK(back.try_send(pattern(10, 0)) == TUTTI_ERR_PEER_FAILED);
    cut(job, 0, 1);
    cut(job, 1, 0);
    CHECK(other.deliver(pattern(400, 3)));
    CHECK(third.deliver(pattern(400, 4)));
    job.progress_times(300);
    CHECK(job.host(0).gone.empty());
    CHECK(job.host(1).gone.size() == 1);
    CHECK(job.host(2).gone.empty());
  }
}

TEST_CASE("after a cut nothing touches the memory of what was posted", "[ends]") {
  for (const Carrier carrier : Job().carriers()) {
    if (carrier == Carrier::slots) continue;  // it posts no memory of the caller
    for (const bool sender_cuts : {true, false}) {
      INFO(sender_cuts);
      Job job;
      REQUIRE(job.connect(0, 1));
      tutti_tp_channel_t* sender = job.channel(0, 1, 1, TUTTI_TP_SEND, carrier);
      tutti_tp_channel_t* receiver = job.channel(1, 0, 1, TUTTI_TP_RECV, carrier);
      Bytes out = pattern(8 << 20, 1);
      Bytes in(out.size());
      tutti_tp_op_t send{};
      tutti_tp_op_t receive{};
      job.host(0).in_call = job.host(1).in_call = true;
      REQUIRE(job.until([&] { return tp().post_recv(receiver, in.data(), in.size(), &receive) == TUTTI_OK; }));
      REQUIRE(job.until([&] { return tp().post_send(sender, out.data(), out.size(), 0, &send) == TUTTI_OK; }));
      job.progress_times(2);
      cut(job, sender_cuts ? 0 : 1, sender_cuts ? 1 : 0);
      const tutti_tp_op_t& mine = sender_cuts ? send : receive;
      REQUIRE(mine.done == 1);
      const Bytes kept = in;
      if (sender_cuts) std::fill(out.begin(), out.end(), uint8_t{0xdd});
      REQUIRE(job.until([&] { return receive.done == 1 && send.done == 1; }));
      job.progress_times(100);
      if (!sender_cuts) CHECK(in == kept);
      if (receive.status == TUTTI_OK) CHECK(in == pattern(8 << 20, 1));
    }
  }
}

TEST_CASE("channels of a link that is gone can be closed, and what is gone is closed without a wait", "[ends]") {
  for (const Carrier carrier : Job().carriers()) {
    Job job;
    {
      Lane lane(job, 0, 1, 1, carrier);
      Lane back(job, 1, 0, 1, carrier);
      REQUIRE(lane.deliver(pattern(10, 0)));
      REQUIRE(lane.try_send(pattern(10, 0)) >= 0);
      cut(job, 1, 0);
      REQUIRE(job.until([&] { return knows_gone(job, 0, 1); }));
    }
    job.close(0);
    job.close(1);
    CHECK(job.host(0).live_blocks() == 0);
    CHECK(job.host(1).live_blocks() == 0);
    CHECK(job.host(0).faults.empty());
  }
}

}  // namespace tutti::conformance
