// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// Channels, notices and ends; ranks in one process, which share plain memory.
#include <poll.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "ranks.hpp"

using namespace tutti::test;

namespace {

const tutti_tp_table_t& tp() { return Rank::tp(); }

bool readable(Rank& rank) {
  pollfd waits{tp().fd(rank.endpoint()), POLLIN, 0};
  return ::poll(&waits, 1, 0) == 1;
}

tutti_status_t peek(tutti_tp_channel_t* channel) {
  const void* slot = nullptr;
  uint64_t bytes = 0;
  uint32_t mark = 0;
  return tp().slot_peek(channel, &slot, &bytes, &mark);
}

tutti_status_t reserve(tutti_tp_channel_t* channel, uint64_t bytes) {
  void* slot = nullptr;
  return tp().slot_reserve(channel, bytes, &slot);
}

}  // namespace

TEST_CASE("channel: messages keep their order through many turns of the ring") {
  Job job;
  auto* out = job[0].channel(1, 5, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 5, TUTTI_TP_RECV);
  uint32_t received = 0;
  for (uint32_t sent = 0; sent < 1000; ++sent) {
    REQUIRE(job[0].send(out, pattern(sent % 3000, sent)));
    while (received + sent % 7 < sent) {
      REQUIRE(job[1].receive(in) == pattern(received % 3000, received));
      ++received;
    }
  }
  for (; received < 1000; ++received) REQUIRE(job[1].receive(in) == pattern(received % 3000, received));
  CHECK(peek(in) == TUTTI_TP_AGAIN);
}

TEST_CASE("channel: a full ring answers AGAIN, one release makes room for one message") {
  Options options;
  options.settings["shm_slots"] = "4";
  Job job(options);
  auto* out = job[0].channel(1, 5, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 5, TUTTI_TP_RECV);
  for (int i = 0; i < 4; ++i) REQUIRE(job[0].send(out, "x"));
  CHECK(reserve(out, 1) == TUTTI_TP_AGAIN);
  CHECK(job[1].receive(in) == "x");
  CHECK(job[0].send(out, "y"));
  CHECK(reserve(out, 1) == TUTTI_TP_AGAIN);
  // Another channel is not held up by it.
  CHECK(job[0].send(job[0].channel(1, 6, TUTTI_TP_SEND), "z"));
  CHECK(job[1].receive(job[1].channel(0, 6, TUTTI_TP_RECV)) == "z");
}

TEST_CASE("channel: slots are aligned, stay the same until used, and are refused beyond their size") {
  Options options;
  options.settings["shm_slot_bytes"] = "1000";
  Job job(options);
  auto* out = job[0].channel(1, 5, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 5, TUTTI_TP_RECV);
  tutti_tp_link_t link{};
  link.struct_size = sizeof link;
  REQUIRE(tp().link(job[0].endpoint(), 1, &link) == TUTTI_OK);
  CHECK(link.slot_bytes == 1024);
  CHECK(link.caps == TUTTI_TP_CAP_SLOTS);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{48}, uint64_t{49}, uint64_t{1024}}) {
    void* slot = nullptr;
    void* again = nullptr;
    REQUIRE(tp().slot_reserve(out, bytes, &slot) == TUTTI_OK);
    REQUIRE(tp().slot_reserve(out, bytes, &again) == TUTTI_OK);
    CHECK(slot == again);
    CHECK(reinterpret_cast<uintptr_t>(slot) % 64 == 0);
    CHECK(tp().slot_commit(out, bytes + 1, 0) == TUTTI_ERR_ARGUMENT);
    const uint32_t sent_mark = ~static_cast<uint32_t>(bytes);
    REQUIRE(tp().slot_commit(out, bytes, sent_mark) == TUTTI_OK);
    const void* seen = nullptr;
    const void* seen_again = nullptr;
    uint64_t length = 99;
    uint32_t mark = 0;
    REQUIRE(tp().slot_peek(in, &seen, &length, &mark) == TUTTI_OK);
    CHECK(mark == sent_mark);
    REQUIRE(tp().slot_peek(in, &seen_again, &length, &mark) == TUTTI_OK);
    CHECK(mark == sent_mark);
    CHECK(seen == seen_again);
    CHECK(reinterpret_cast<uintptr_t>(seen) % 64 == 0);
    CHECK(length == bytes);
    REQUIRE(tp().slot_release(in) == TUTTI_OK);
    CHECK(tp().slot_release(in) == TUTTI_ERR_ARGUMENT);
  }
  CHECK(reserve(out, 1025) == TUTTI_ERR_ARGUMENT);
  CHECK(tp().slot_commit(out, 0, 0) == TUTTI_ERR_ARGUMENT);
  CHECK(reserve(in, 1) == TUTTI_ERR_ARGUMENT);
  CHECK(peek(out) == TUTTI_ERR_ARGUMENT);
}

TEST_CASE("channel: either end may be opened first, and either closed first") {
  Job job;
  for (uint64_t id = 0; id < 8; ++id) {
    const bool sender_first = (id & 1) != 0;
    tutti_tp_channel_t* in = sender_first ? nullptr : job[1].channel(0, id, TUTTI_TP_RECV);
    if (!sender_first) CHECK(peek(in) == TUTTI_TP_AGAIN);
    auto* out = job[0].channel(1, id, TUTTI_TP_SEND);
    REQUIRE(job[0].send(out, "hello"));
    if (sender_first) in = job[1].channel(0, id, TUTTI_TP_RECV);
    if ((id & 2) != 0) {
      tp().channel_close(out);  // still delivers
      CHECK(job[1].receive(in) == "hello");
      tp().channel_close(in);
    } else {
      CHECK(job[1].receive(in) == "hello");
      tp().channel_close(in);
      tp().channel_close(out);
    }
  }
  job.progress();
  CHECK(job[0].counter("channels") == 0);
  CHECK(job[0].counter("channels_closing") == 0);
}

TEST_CASE("channel: an id is used again, whoever was faster") {
  Job job;
  SECTION("the receiver closes before the sender has opened") {
    auto* in = job[1].channel(0, 9, TUTTI_TP_RECV);
    tp().channel_close(in);
    auto* in_again = job[1].channel(0, 9, TUTTI_TP_RECV);
    tp().channel_close(in_again);
    in = job[1].channel(0, 9, TUTTI_TP_RECV);
    for (const char* use : {"first", "second", "third"}) {
      auto* out = job[0].channel(1, 9, TUTTI_TP_SEND);
      REQUIRE(job[0].send(out, use));
      tp().channel_close(out);
    }
    CHECK(job[1].receive(in) == "third");
    tp().channel_close(in);
  }
  SECTION("the sender is two uses ahead") {
    for (const char* use : {"first", "second"}) {
      auto* out = job[0].channel(1, 9, TUTTI_TP_SEND);
      REQUIRE(job[0].send(out, use));
      tp().channel_close(out);
    }
    for (const char* use : {"first", "second"}) {
      auto* in = job[1].channel(0, 9, TUTTI_TP_RECV);
      CHECK(job[1].receive(in) == use);
      tp().channel_close(in);
    }
  }
  SECTION("the receiver closes and goes away for good; the sender opens later") {
    tp().channel_close(job[1].channel(0, 9, TUTTI_TP_RECV));
    auto* out = job[0].channel(1, 9, TUTTI_TP_SEND);
    for (int i = 0; i < 8; ++i) REQUIRE(job[0].send(out, "nobody reads this"));
    tp().channel_close(out);
  }
  REQUIRE(job.until([&] { return job[0].counter("channels_closing") + job[1].counter("channels_closing") == 0; }));
}

TEST_CASE("channel: a sender is not held up by a receiver that closed") {
  Job job;
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
  REQUIRE(job[0].send(out, "one"));
  CHECK(job[1].receive(in) == "one");
  tp().channel_close(in);
  for (int i = 0; i < 50; ++i) REQUIRE(job[0].send(out, "dropped"));
  tp().channel_close(out);
  CHECK(job[0].counter("channels_closing") == 0);
}

TEST_CASE("channel: memory does not grow over a thousand uses") {
  Job job;
  uint64_t held = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    auto* out = job[0].channel(1, i, TUTTI_TP_SEND);
    auto* in = job[1].channel(0, i, TUTTI_TP_RECV);
    for (uint32_t m = 0; m < 8; ++m) REQUIRE(job[0].send(out, pattern(5000, m)));
    for (uint32_t m = 0; m < 8; ++m) REQUIRE(job[1].receive(in) == pattern(5000, m));
    tp().channel_close(out);
    tp().channel_close(in);
    job.progress();
    if (i == 10) held = job[0].counter("memory_bytes");
  }
  CHECK(job[0].counter("memory_bytes") <= held + 4096);
}

TEST_CASE("channel: once warm, messages allocate nothing and ring no bell of one who polls") {
  Job job;
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
  const auto round_trip = [&](size_t bytes) {
    const std::string message = pattern(bytes, 1);
    return job[0].send(out, message) && job[1].receive(in) == message;
  };
  for (int i = 0; i < 16; ++i) REQUIRE(round_trip(65536));
  const uint64_t before = job[0].host().allocations + job[1].host().allocations;
  const uint64_t memory = job[0].counter("memory_bytes");
  for (size_t i = 0; i < 1000; ++i) REQUIRE(round_trip(i * 61));
  CHECK(job[0].host().allocations + job[1].host().allocations == before);
  CHECK(job[0].counter("memory_bytes") == memory);
  CHECK(job[0].counter("bells_rung") + job[1].counter("bells_rung") == 0);
  CHECK(job[0].counter("messages_sent") == 1016);
}

TEST_CASE("notices: arrive, in order, from all, and are refused beyond their size") {
  Options options;
  options.ranks = 3;
  Job job(options);
  const std::string longest(TUTTI_TP_NOTICE_MAX_BYTES, 'n');
  CHECK(tp().notify(job[0].endpoint(), 1, longest.data(), longest.size() + 1) == TUTTI_ERR_ARGUMENT);
  CHECK(tp().notify(job[0].endpoint(), 1, longest.data(), longest.size()) == TUTTI_OK);
  CHECK(tp().notify(job[0].endpoint(), 1, nullptr, 0) == TUTTI_OK);
  CHECK(tp().notify(job[2].endpoint(), 1, "c", 1) == TUTTI_OK);
  tp().arm(job[1].endpoint());
  CHECK(readable(job[1]));
  tp().disarm(job[1].endpoint());
  job.progress();
  REQUIRE(job[1].host().notices.size() == 3);
  CHECK(job[1].host().notices[0] == std::make_pair(0u, longest));
  CHECK(job[1].host().notices[1] == std::make_pair(0u, std::string{}));
  CHECK(job[1].host().notices[2] == std::make_pair(2u, std::string{"c"}));
  CHECK(!readable(job[1]));
}

TEST_CASE("notices: AGAIN when nobody takes them, then room again") {
  Job job;
  uint32_t sent = 0;
  while (tp().notify(job[0].endpoint(), 1, &sent, sizeof sent) == TUTTI_OK) {
    REQUIRE(++sent < 1000);
  }
  CHECK(sent >= 2);
  job.progress();
  CHECK(job[1].host().notices.size() == sent);
  CHECK(tp().notify(job[0].endpoint(), 1, &sent, sizeof sent) == TUTTI_OK);
}

TEST_CASE("waiting: the descriptor is readable only when something happened after arm") {
  Job job;
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
  job.progress();
  REQUIRE(job[0].send(out, "disarmed"));
  CHECK(!readable(job[1]));
  CHECK(job[0].counter("bells_rung") == 0);
  CHECK(job[1].receive(in) == "disarmed");
  tp().arm(job[1].endpoint());
  CHECK(peek(in) == TUTTI_TP_AGAIN);
  CHECK(!readable(job[1]));
  REQUIRE(job[0].send(out, "one"));
  REQUIRE(job[0].send(out, "two"));
  CHECK(job[0].counter("bells_rung") == 1);
  CHECK(readable(job[1]));
  tp().disarm(job[1].endpoint());
  job[1].progress();
  CHECK(!readable(job[1]));
  CHECK(job[1].receive(in) == "one");
}

TEST_CASE("waiting: two threads that sleep at once lose no wake-up") {
  Job job;
  std::string failure;
  const auto play = [&](uint32_t self) {
    Rank& rank = job[self];
    auto* out = rank.channel(1 - self, 1, TUTTI_TP_SEND);
    auto* in = rank.channel(1 - self, 1, TUTTI_TP_RECV);
    for (uint32_t i = 0; i < 5000; ++i) {
      if (self == 0 && !rank.send(out, pattern(i % 70, i), true)) return std::string{"send"};
      if (rank.receive(in, true) != pattern(i % 70, i)) return "receive " + std::to_string(i);
      if (self == 1 && !rank.send(out, pattern(i % 70, i), true)) return std::string{"send"};
    }
    return std::string{};
  };
  std::thread other([&] { failure = play(1); });
  const std::string mine = play(0);
  other.join();
  CHECK(mine.empty());
  CHECK(failure.empty());
}

TEST_CASE("waiting: a sender in one thread outruns a receiver in another") {
  Job job;
  std::string failure;
  std::thread receiver([&] {
    auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
    for (uint32_t i = 0; i < 20000 && failure.empty(); ++i) {
      if (job[1].receive(in, true) != pattern(i % 200, i)) failure = "message " + std::to_string(i);
    }
    tp().channel_close(in);
  });
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  bool all = true;
  for (uint32_t i = 0; i < 20000; ++i) all = job[0].send(out, pattern(i % 200, i), true) && all;
  receiver.join();
  CHECK(all);
  CHECK(failure.empty());
}

TEST_CASE("ends: leaving in order keeps what was sent") {
  Job job;
  auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  auto* back = job[1].channel(0, 2, TUTTI_TP_SEND);
  for (uint32_t i = 0; i < 3; ++i) REQUIRE(job[0].send(out, pattern(i * 100, i)));
  REQUIRE(tp().notify(job[0].endpoint(), 1, "bye", 3) == TUTTI_OK);
  tp().arm(job[1].endpoint());
  job[0].close();
  CHECK(readable(job[1]));
  tp().disarm(job[1].endpoint());
  job[1].progress();
  REQUIRE(job[1].host().gone.size() == 1);
  CHECK(job[1].host().gone[0].peer == 0);
  CHECK(job[1].host().gone[0].cause == TUTTI_TP_GONE_LEFT);
  REQUIRE(job[1].host().notices.size() == 1);
  for (uint32_t i = 0; i < 3; ++i) CHECK(job[1].receive(in) == pattern(i * 100, i));
  CHECK(peek(in) == TUTTI_ERR_PEER_FAILED);
  CHECK(reserve(back, 1) == TUTTI_ERR_PEER_FAILED);
  CHECK(tp().connect(job[1].endpoint(), 0) == TUTTI_ERR_PEER_FAILED);
  CHECK(tp().notify(job[1].endpoint(), 0, "x", 1) == TUTTI_ERR_PEER_FAILED);
  job.progress();
  CHECK(job[1].host().gone.size() == 1);
  tp().channel_close(in);
  tp().channel_close(back);
}

TEST_CASE("ends: a channel opened after the sender left still has its messages") {
  Job job;
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  REQUIRE(job[0].send(out, "early"));
  tp().channel_close(out);
  job[0].close();
  job[1].progress();
  CHECK(job[1].receive(job[1].channel(0, 1, TUTTI_TP_RECV)) == "early");
}

TEST_CASE("ends: a cut link is cut on both sides, and no other link with it") {
  Options options;
  options.ranks = 3;
  Job job(options);
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
  REQUIRE(job[0].send(out, "lost"));
  tp().cut(job[0].endpoint(), 1);
  CHECK(reserve(out, 1) == TUTTI_ERR_PEER_FAILED);
  job.progress();
  CHECK(peek(in) == TUTTI_ERR_PEER_FAILED);
  REQUIRE(job[1].host().gone.size() == 1);
  CHECK(job[1].host().gone[0].peer == 0);
  CHECK(job[1].host().gone[0].cause == TUTTI_TP_GONE_FAILED);
  CHECK(job[0].host().gone.empty());
  REQUIRE(job[0].send(job[0].channel(2, 1, TUTTI_TP_SEND), "fine"));
  CHECK(job[2].receive(job[2].channel(0, 1, TUTTI_TP_RECV)) == "fine");
  tutti_tp_channel_t* refused = nullptr;
  CHECK(tp().channel_open(job[0].endpoint(), 1, 2, TUTTI_TP_SEND, 1, &refused) == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("ends: a hundred jobs leave no descriptor and no memory") {
  Options options;
  options.ranks = 3;
  { Job warm_up(options); }
  const size_t before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    Job job(options);
    REQUIRE(job[0].send(job[0].channel(1, 1, TUTTI_TP_SEND), "x"));
    REQUIRE(tp().notify(job[0].endpoint(), 2, "x", 1) == TUTTI_OK);
    auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
    REQUIRE(job[1].receive(in) == "x");
    for (uint32_t rank = 0; rank < 3; ++rank) {
      // Each may be the first to close.
      Rank& closing = job[(rank + static_cast<uint32_t>(i)) % 3];
      closing.close();
      REQUIRE(closing.host().live_bytes == 0);
    }
  }
  CHECK(open_descriptors() == before);
}

TEST_CASE("waiting: progress clears the descriptor of a host that stays armed, and the next event rings again") {
  Job job;
  auto* out = job[0].channel(1, 1, TUTTI_TP_SEND);
  auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
  job.progress();
  tp().arm(job[1].endpoint());
  for (int round = 0; round < 5; ++round) {
    REQUIRE(job[0].send(out, "x"));
    REQUIRE(readable(job[1]));
    CHECK(job[1].progress() > 0);
    CHECK(!readable(job[1]));
    CHECK(job[1].progress() == 0);
    CHECK(job[1].receive(in) == "x");
  }
  CHECK(job[0].counter("bells_rung") == 5);
  REQUIRE(tp().notify(job[0].endpoint(), 1, "n", 1) == TUTTI_OK);
  CHECK(readable(job[1]));
  CHECK(job[1].progress() > 0);
  CHECK(!readable(job[1]));
  CHECK(job[1].host().notices.size() == 1);
}
