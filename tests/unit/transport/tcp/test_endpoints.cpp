// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "job.hpp"

namespace tutti::test {
namespace {

const tutti_tp_table_t& tp() { return Job::tp(); }

bool done(const tutti_tp_op_t& op) { return op.done != 0; }

}  // namespace

TEST_CASE("messages of all lengths arrive in order over IPv4 and IPv6", "[tcp]") {
  for (const char* bind : {"127.0.0.1", "::1", "127.0.0.1,::1"}) {
    Job::Options options;
    options.bind = bind;
    options.settings["tcp_window_bytes"] = "16384";
    Job job(options);
    Pipe pipe(job, 0, 1, 42);
    const std::vector<size_t> lengths = {0, 1, 8, 31, 32, 33, 4096, 16383, 16384, 16385, 3 * 16384 + 7, 1 << 20, 0, 5};
    for (const bool receive_first : {true, false}) {
      std::vector<std::vector<uint8_t>> in(lengths.size());
      std::vector<std::vector<uint8_t>> out;
      std::vector<tutti_tp_op_t> sends(lengths.size());
      std::vector<tutti_tp_op_t> receives(lengths.size());
      const auto receive_all = [&] {
        for (size_t i = 0; i < lengths.size(); ++i) {
          in[i].resize(lengths[i] + 1);
          REQUIRE(tp().post_recv(pipe.receiver, in[i].data(), in[i].size(), &receives[i]) == TUTTI_OK);
        }
      };
      if (receive_first) receive_all();
      for (size_t i = 0; i < lengths.size(); ++i) {
        out.push_back(pattern(lengths[i], static_cast<uint32_t>(i)));
        REQUIRE(tp().post_send(pipe.sender, out[i].data(), out[i].size(), 0, &sends[i]) == TUTTI_OK);
      }
      if (!receive_first) {
        for (int i = 0; i < 200; ++i) job.progress();
        receive_all();
      }
      REQUIRE(job.until([&] { return done(receives.back()) && done(sends.back()); }));
      for (size_t i = 0; i < lengths.size(); ++i) {
        CHECK((receives[i].status == TUTTI_OK && sends[i].status == TUTTI_OK));
        REQUIRE(receives[i].bytes == lengths[i]);
        in[i].resize(lengths[i]);
        REQUIRE(in[i] == out[i]);
      }
    }
    CHECK(job.counter(0, "connections") == 1);
    CHECK(job.counter(1, "connections") == 1);
  }
}

TEST_CASE("a channel that nobody receives on holds up no other, and its memory stays within the window", "[tcp]") {
  Job job(Job::with("tcp_window_bytes", "65536"));
  Pipe blocked(job, 0, 1, 1);
  Pipe open(job, 0, 1, 2);
  const std::vector<uint8_t> big = pattern(8 << 20, 1);
  tutti_tp_op_t stuck{};
  REQUIRE(tp().post_send(blocked.sender, big.data(), big.size(), 0, &stuck) == TUTTI_OK);
  std::vector<uint8_t> in(1000);
  for (uint32_t i = 0; i < 500; ++i) {
    const std::vector<uint8_t> out = pattern(1000, i);
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
    REQUIRE(tp().post_send(open.sender, out.data(), out.size(), 0, &send) == TUTTI_OK);
    REQUIRE(tp().post_recv(open.receiver, in.data(), in.size(), &receive) == TUTTI_OK);
    REQUIRE(job.until([&] { return done(receive) && done(send); }));
    REQUIRE(in == out);
  }
  CHECK_FALSE(done(stuck));
  CHECK(job.counter(1, "memory_bytes") < 65536 * 2 + 64 * 1024);
  std::vector<uint8_t> late(big.size());
  tutti_tp_op_t receive{};
  REQUIRE(tp().post_recv(blocked.receiver, late.data(), late.size(), &receive) == TUTTI_OK);
  REQUIRE(job.until([&] { return done(receive) && done(stuck); }));
  CHECK(late == big);
}

TEST_CASE("many channels both ways at once", "[tcp]") {
  Job job;
  constexpr uint32_t kChannels = 40;
  constexpr size_t kBytes = 700'000;
  struct Lane {
    Lane(Job& job, uint32_t from, uint32_t id) : pipe(job, from, 1 - from, id), out(pattern(kBytes, id)), in(kBytes) {}
    Pipe pipe;
    std::vector<uint8_t> out;
    std::vector<uint8_t> in;
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
  };
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint32_t i = 0; i < kChannels; ++i) lanes.push_back(std::make_unique<Lane>(job, i % 2, i));
  for (auto& lane : lanes) REQUIRE(tp().post_send(lane->pipe.sender, lane->out.data(), kBytes, 0, &lane->send) == TUTTI_OK);
  for (auto lane = lanes.rbegin(); lane != lanes.rend(); ++lane) {
    REQUIRE(tp().post_recv((*lane)->pipe.receiver, (*lane)->in.data(), kBytes, &(*lane)->receive) == TUTTI_OK);
  }
  for (auto& lane : lanes) {
    REQUIRE(job.until([&] { return done(lane->send) && done(lane->receive); }));
    REQUIRE(lane->in == lane->out);
  }
}

TEST_CASE("a short receive buffer is never overrun", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 3);
  const std::vector<uint8_t> out = pattern(500'000, 9);
  std::vector<uint8_t> in(1100, 0xee);
  tutti_tp_op_t sends[2] = {};
  tutti_tp_op_t receives[2] = {};
  for (tutti_tp_op_t& op : sends) REQUIRE(tp().post_send(pipe.sender, out.data(), out.size(), 0, &op) == TUTTI_OK);
  REQUIRE(tp().post_recv(pipe.receiver, in.data(), 1000, &receives[0]) == TUTTI_OK);
  REQUIRE(tp().post_recv(pipe.receiver, nullptr, 0, &receives[1]) == TUTTI_OK);
  REQUIRE(job.until([&] { return done(receives[1]) && done(sends[1]); }));
  CHECK(receives[0].status == TUTTI_ERR_TRUNCATED);
  CHECK(receives[0].bytes == out.size());
  CHECK(std::equal(in.begin(), in.begin() + 1000, out.begin()));
  CHECK(in[1000] == 0xee);
  CHECK(receives[1].status == TUTTI_ERR_TRUNCATED);
}

TEST_CASE("data and the end of a channel may come before the channel is opened here", "[tcp]") {
  Job job;
  tutti_tp_channel_t* sender = job.channel(0, 1, 77, TUTTI_TP_SEND);
  tutti_tp_op_t send{};
  REQUIRE(tp().post_send(sender, "early", 5, 0, &send) == TUTTI_OK);
  REQUIRE(job.until([&] { return done(send); }));
  tp().channel_close(sender);
  for (int i = 0; i < 100; ++i) job.progress();
  tutti_tp_channel_t* receiver = job.channel(1, 0, 77, TUTTI_TP_RECV);
  char in[5];
  tutti_tp_op_t receive{};
  REQUIRE(tp().post_recv(receiver, in, sizeof in, &receive) == TUTTI_OK);
  REQUIRE(job.until([&] { return done(receive); }));
  CHECK(std::memcmp(in, "early", 5) == 0);
  tp().channel_close(receiver);
}

TEST_CASE("channels are closed in the middle of messages and their ids used again", "[tcp]") {
  Job job(Job::with("tcp_window_bytes", "65536"));
  REQUIRE(job.connected(0, 1));
  for (uint32_t round = 0; round < 30; ++round) {
    Pipe pipe(job, 0, 1, 5);
    std::vector<uint8_t> out = pattern(3 << 20, round);
    std::vector<uint8_t> in(out.size());
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
    REQUIRE(tp().post_send(pipe.sender, out.data(), out.size(), 0, &send) == TUTTI_OK);
    if (round % 3 != 0) REQUIRE(tp().post_recv(pipe.receiver, in.data(), in.size(), &receive) == TUTTI_OK);
    for (uint32_t i = 0; i < round % 5; ++i) job.progress();
    tp().channel_close(round % 2 == 0 ? pipe.sender : pipe.receiver);
    for (uint32_t i = 0; i < round % 4; ++i) job.progress();
    tp().channel_close(round % 2 == 0 ? pipe.receiver : pipe.sender);
    CHECK(done(send));
    CHECK((round % 3 == 0 || done(receive)));
    std::fill(out.begin(), out.end(), uint8_t{0xdd});  // nobody may read it any more

    Pipe next(job, 0, 1, 5);
    const std::vector<uint8_t> small = pattern(100, round + 1000);
    std::vector<uint8_t> got(100);
    send = receive = tutti_tp_op_t{};
    REQUIRE(tp().post_recv(next.receiver, got.data(), got.size(), &receive) == TUTTI_OK);
    REQUIRE(tp().post_send(next.sender, small.data(), small.size(), 0, &send) == TUTTI_OK);
    REQUIRE(job.until([&] { return done(receive) && done(send); }));
    REQUIRE(receive.status == TUTTI_OK);
    REQUIRE(got == small);
    tp().channel_close(next.sender);
    tp().channel_close(next.receiver);
  }
  CHECK(job.host(0).gone.empty());
  CHECK(job.host(1).gone.empty());
}

TEST_CASE("notices arrive without any channel, and connect if need be", "[tcp]") {
  Job job;
  for (int i = 0; i < 10; ++i) {
    const std::string text = "notice " + std::to_string(i);
    REQUIRE(tp().notify(job[1], 0, text.data(), text.size()) == TUTTI_OK);
  }
  CHECK(tp().notify(job[1], 0, nullptr, TUTTI_TP_NOTICE_MAX_BYTES + 1) == TUTTI_ERR_ARGUMENT);
  REQUIRE(job.until([&] { return job.host(0).notices.size() == 10; }));
  CHECK(job.host(0).notices[9].second == "notice 9");
  CHECK(job.host(0).notices[0].first == 1);
}

TEST_CASE("a cut ends everything here at once and is a failure there", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 1);
  std::vector<uint8_t> big(64 << 20);
  tutti_tp_op_t send{};
  tutti_tp_op_t receive{};
  REQUIRE(tp().post_recv(pipe.receiver, big.data(), big.size(), &receive) == TUTTI_OK);
  REQUIRE(tp().post_send(pipe.sender, big.data(), big.size(), 0, &send) == TUTTI_OK);
  REQUIRE(job.connected(0, 1));
  tp().cut(job[0], 1);
  CHECK(send.status == TUTTI_ERR_PEER_FAILED);
  CHECK(tp().post_send(pipe.sender, big.data(), 1, 0, &send) == TUTTI_ERR_PEER_FAILED);
  CHECK(tp().connect(job[0], 1) == TUTTI_ERR_PEER_FAILED);
  REQUIRE(job.until([&] { return !job.host(1).gone.empty(); }));
  CHECK(job.host(1).gone[0].cause == TUTTI_TP_GONE_FAILED);
  CHECK(receive.status == TUTTI_ERR_PEER_FAILED);
  CHECK(job.host(0).gone.empty());
}

TEST_CASE("what was sent before an orderly end is delivered after it", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 1);
  REQUIRE(job.connected(0, 1));
  const std::vector<uint8_t> out = pattern(100'000, 3);
  tutti_tp_op_t send{};
  REQUIRE(tp().post_send(pipe.sender, out.data(), out.size(), 0, &send) == TUTTI_OK);
  REQUIRE(done(send));
  // Rank 1 has bytes under way to rank 0, which is not going to read them: they must not turn the end into a reset.
  Pipe back(job, 1, 0, 2);
  tutti_tp_op_t unread{};
  REQUIRE(tp().post_send(back.sender, out.data(), out.size(), 0, &unread) == TUTTI_OK);
  job.close(0);
  REQUIRE(job.until([&] { return !job.host(1).gone.empty(); }));
  CHECK(job.host(1).gone[0].cause == TUTTI_TP_GONE_LEFT);
  std::vector<uint8_t> in(out.size());
  tutti_tp_op_t receive{};
  REQUIRE(tp().post_recv(pipe.receiver, in.data(), in.size(), &receive) == TUTTI_OK);
  CHECK(done(receive));
  CHECK(in == out);
  CHECK(tp().post_recv(pipe.receiver, in.data(), in.size(), &receive) == TUTTI_ERR_PEER_FAILED);
  CHECK(job.host(1).gone.size() == 1);
}

TEST_CASE("nothing follows a goodbye, whatever still comes in while other links take their time to end", "[tcp]") {
  Job::Options options = Job::with("tcp_window_bytes", "65536");
  options.ranks = 3;
  Job job(options);
  Pipe to_busy(job, 0, 2, 1);
  Pipe back(job, 1, 0, 2);
  REQUIRE(job.connected(0, 1));
  REQUIRE(job.connected(0, 2));
  // Rank 2 receives nothing, so that rank 0's end waits for it as long as it waits for anything.
  const std::vector<uint8_t> big = pattern(8 << 20, 1);
  tutti_tp_op_t stuck{};
  REQUIRE(tp().post_send(to_busy.sender, big.data(), big.size(), 0, &stuck) == TUTTI_OK);
  // What rank 1 sends is thrown away, and would earn it credit.
  tp().channel_close(back.receiver);
  tutti_tp_op_t unread{};
  REQUIRE(tp().post_send(back.sender, big.data(), 60'000, 0, &unread) == TUTTI_OK);
  job.close(0);
  REQUIRE(job.until([&] { return !job.host(1).gone.empty(); }));
  INFO(job.host(1).gone[0].text);
  CHECK(job.host(1).gone[0].cause == TUTTI_TP_GONE_LEFT);
}

TEST_CASE("a process that dies is noticed at once", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 1);
  const pid_t child = ::fork();
  if (child == 0) {  // rank 1 lives here
    job.disown(0);
    for (;;) job.progress();
  }
  tutti_tp_endpoint_t* other = job.disown(1);
  char in[8];
  tutti_tp_channel_t* from = job.channel(0, 1, 9, TUTTI_TP_RECV);
  tutti_tp_op_t receive{};
  REQUIRE(tp().post_recv(from, in, sizeof in, &receive) == TUTTI_OK);
  REQUIRE(job.until([&] { return tp().connect(job[0], 1) == TUTTI_OK; }));
  ::kill(child, SIGKILL);
  REQUIRE(job.until([&] { return !job.host(0).gone.empty(); }));
  CHECK(job.host(0).gone[0].cause == TUTTI_TP_GONE_FAILED);
  CHECK(receive.status == TUTTI_ERR_PEER_FAILED);
  ::waitpid(child, nullptr, 0);
  tp().close(other);
}

TEST_CASE("once channels are in use the data path allocates nothing", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 1);
  std::vector<uint8_t> data(300'000);
  const auto exchange = [&](size_t bytes, bool unexpected) {
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
    if (!unexpected) REQUIRE(tp().post_recv(pipe.receiver, data.data(), bytes, &receive) == TUTTI_OK);
    REQUIRE(tp().post_send(pipe.sender, data.data(), bytes, 0, &send) == TUTTI_OK);
    for (int i = 0; i < 50; ++i) job.progress();
    if (unexpected) REQUIRE(tp().post_recv(pipe.receiver, data.data(), bytes, &receive) == TUTTI_OK);
    REQUIRE(job.until([&] { return done(send) && done(receive); }));
  };
  exchange(300'000, true);
  exchange(300'000, false);
  const uint64_t before = job.host(0).allocations + job.host(1).allocations;
  for (size_t i = 0; i < 100; ++i) exchange(i * 2999, i % 2 == 0);
  CHECK(job.host(0).allocations + job.host(1).allocations == before);
}

TEST_CASE("a small message costs one system call on each side", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 1);
  REQUIRE(job.connected(0, 1));
  char in[8];
  for (int round = 0; round < 100; ++round) {
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
    REQUIRE(tp().post_recv(pipe.receiver, in, 8, &receive) == TUTTI_OK);
    const uint64_t before = job.counter(0, "system_calls");
    REQUIRE(tp().post_send(pipe.sender, "8 bytes", 8, 0, &send) == TUTTI_OK);
    CHECK(done(send));
    CHECK(job.counter(0, "system_calls") - before == 1);
    REQUIRE(job.until([&] { return done(receive); }));
  }
  // Rank 1 is driven only while it waits: a read that finds the message, now and then a look at all descriptors.
  CHECK(job.counter(1, "system_calls") < 100 * 3 + 100);
}

TEST_CASE("an armed descriptor becomes readable for data, notices and ends", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 1);
  REQUIRE(job.connected(0, 1));
  for (int i = 0; i < 50; ++i) job.progress();
  const auto readable = [&](int timeout_ms) {
    pollfd fd = {tp().fd(job[1]), POLLIN, 0};
    return ::poll(&fd, 1, timeout_ms) == 1;
  };
  const auto drive = [&] {
    for (int i = 0; i < 40; ++i) tp().progress(job[1]);
  };
  drive();
  tp().arm(job[1]);
  CHECK_FALSE(readable(0));
  tutti_tp_op_t send{};
  REQUIRE(tp().post_send(pipe.sender, "x", 1, 0, &send) == TUTTI_OK);
  CHECK(readable(5000));
  tp().disarm(job[1]);
  drive();
  tp().arm(job[1]);
  CHECK_FALSE(readable(0));
  REQUIRE(tp().notify(job[0], 1, "n", 1) == TUTTI_OK);
  CHECK(readable(5000));
  tp().progress(job[1]);
  CHECK(job.host(1).notices.size() == 1);
  tp().cut(job[0], 1);
  tp().arm(job[1]);
  CHECK(readable(5000));
  tp().progress(job[1]);
  CHECK(job.host(1).gone.size() == 1);
}

}  // namespace tutti::test
