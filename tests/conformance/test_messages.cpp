// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// post_send and post_recv. A transport without messages is asked once whether it says so.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

/// Both ends of a channel of messages; nullptr where the link has no such carrier, and then that is checked.
struct Ends {
  explicit Ends(Job& on) : job(on) {
    job.host(0).in_call = job.host(1).in_call = true;
    offered = (job.link(0, 1).caps & TUTTI_TP_CAP_MESSAGES) != 0;
    const tutti_status_t expected = offered ? TUTTI_OK : TUTTI_ERR_UNSUPPORTED;
    REQUIRE(tp().channel_open(job[0], 1, 1, TUTTI_TP_SEND, 0, &sender) == expected);
    REQUIRE(tp().channel_open(job[1], 0, 1, TUTTI_TP_RECV, 0, &receiver) == expected);
  }
  void post_send(const void* data, uint64_t bytes, tutti_tp_op_t& op) {
    REQUIRE(again([&] { return tp().post_send(sender, data, bytes, 0, &op); }) == TUTTI_OK);
  }
  void post_recv(void* data, uint64_t bytes, tutti_tp_op_t& op) {
    REQUIRE(again([&] { return tp().post_recv(receiver, data, bytes, &op); }) == TUTTI_OK);
  }
  tutti_status_t again(const std::function<tutti_status_t()>& post) {
    tutti_status_t status = TUTTI_TP_AGAIN;
    job.until([&] { return (status = post()) != TUTTI_TP_AGAIN; });
    return status;
  }
  bool done(const tutti_tp_op_t& op) {
    return job.until([&] { return op.done != 0; });
  }
  Job& job;
  bool offered = false;
  tutti_tp_channel_t* sender = nullptr;
  tutti_tp_channel_t* receiver = nullptr;
};

}  // namespace

TEST_CASE("messages of all lengths, received before and after they are sent", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const std::vector<size_t> lengths = {0, 1, 7, 8, 63, 64, 65, 4095, 4096, 65536, 262144, 262145, 3'000'001, 0, 2};
  for (const bool receive_first : {true, false}) {
    INFO(receive_first);
    std::vector<Bytes> in(lengths.size());
    std::vector<Bytes> out;
    std::vector<tutti_tp_op_t> sends(lengths.size());
    std::vector<tutti_tp_op_t> receives(lengths.size());
    const auto receive_all = [&] {
      for (size_t i = 0; i < lengths.size(); ++i) {
        in[i].assign(lengths[i] + 9, 0xee);
        ends.post_recv(in[i].data(), in[i].size() - 1, receives[i]);
      }
    };
    for (size_t i = 0; i < lengths.size(); ++i) out.push_back(pattern(lengths[i], static_cast<uint32_t>(i)));
    if (receive_first) receive_all();
    for (size_t i = 0; i < lengths.size(); ++i) ends.post_send(out[i].data(), lengths[i], sends[i]);
    if (!receive_first) {
      job.progress_times(200);
      receive_all();
    }
    for (size_t i = 0; i < lengths.size(); ++i) {
      INFO(lengths[i]);
      REQUIRE(ends.done(receives[i]));
      REQUIRE(ends.done(sends[i]));
      CHECK(receives[i].status == TUTTI_OK);
      CHECK(sends[i].status == TUTTI_OK);
      REQUIRE(receives[i].bytes == lengths[i]);
      REQUIRE(std::equal(out[i].begin(), out[i].end(), in[i].begin()));
      CHECK(std::all_of(in[i].end() - 1, in[i].end(), [](uint8_t byte) { return byte == 0xee; }));
    }
  }
}

TEST_CASE("the n-th send meets the n-th receive, however they are interleaved", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  constexpr uint32_t kCount = 400;
  std::vector<tutti_tp_op_t> sends(kCount);
  std::vector<tutti_tp_op_t> receives(kCount);
  std::vector<uint32_t> out(kCount);
  std::vector<uint32_t> in(kCount, UINT32_MAX);
  uint32_t sent = 0;
  uint32_t received = 0;
  for (uint32_t step = 0; sent < kCount || received < kCount; ++step) {
    const bool send = received == kCount || (sent < kCount && (step * 2654435761u >> 28) < 8);
    if (send) {
      out[sent] = sent;
      ends.post_send(&out[sent], 4, sends[sent]);
      ++sent;
    } else {
      ends.post_recv(&in[received], 4, receives[received]);
      ++received;
    }
    if (step % 7 == 0) job.progress();
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    REQUIRE(ends.done(receives[i]));
    REQUIRE(in[i] == i);
    REQUIRE(ends.done(sends[i]));
  }
}

TEST_CASE("a receive shorter than its message gets the beginning and the length, and nothing is overrun", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const Bytes out = pattern(400'000, 9);
  for (const size_t capacity : {size_t{0}, size_t{1}, size_t{1000}, size_t{399'999}}) {
    for (const bool receive_first : {true, false}) {
      INFO(capacity << " " << receive_first);
      Bytes in(capacity + 64, 0xee);
      tutti_tp_op_t send{};
      tutti_tp_op_t receive{};
      if (receive_first) ends.post_recv(capacity == 0 ? nullptr : in.data(), capacity, receive);
      ends.post_send(out.data(), out.size(), send);
      if (!receive_first) {
        job.progress_times(50);
        ends.post_recv(capacity == 0 ? nullptr : in.data(), capacity, receive);
      }
      REQUIRE(ends.done(receive));
      REQUIRE(ends.done(send));
      CHECK(receive.status == TUTTI_ERR_TRUNCATED);
      CHECK(receive.bytes == out.size());
      CHECK(send.status == TUTTI_OK);
      CHECK(std::equal(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(capacity), out.begin()));
      CHECK(std::count(in.begin() + static_cast<std::ptrdiff_t>(capacity), in.end(), 0xee) == 64);
    }
  }
  tutti_tp_op_t send{};
  tutti_tp_op_t receive{};
  char in[4];
  ends.post_send("next", 4, send);
  ends.post_recv(in, 4, receive);
  REQUIRE(ends.done(receive));
  CHECK(receive.status == TUTTI_OK);
  CHECK(std::memcmp(in, "next", 4) == 0);
  REQUIRE(ends.done(send));
}

TEST_CASE("messages of no bytes count as messages", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  tutti_tp_op_t sends[6] = {};
  tutti_tp_op_t receives[6] = {};
  char in[4] = "???";
  for (int i = 0; i < 6; ++i) ends.post_send(i == 3 ? "abc" : nullptr, i == 3 ? 3 : 0, sends[i]);
  for (int i = 0; i < 6; ++i) ends.post_recv(i == 3 ? in : nullptr, i == 3 ? 4 : 0, receives[i]);
  for (int i = 0; i < 6; ++i) {
    REQUIRE(ends.done(receives[i]));
    REQUIRE(ends.done(sends[i]));
    CHECK(receives[i].status == TUTTI_OK);
    CHECK(receives[i].bytes == (i == 3 ? 3 : 0));
  }
  CHECK(std::string(in) == "abc");
}

TEST_CASE("memory of any alignment", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const Bytes source = pattern(10'000, 4);
  for (size_t shift = 0; shift < 9; ++shift) {
    Bytes in(10'100, 0xee);
    const size_t bytes = 9'001 + shift;
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
    ends.post_recv(in.data() + 8 - shift, bytes, receive);
    ends.post_send(source.data() + shift, bytes, send);
    REQUIRE(ends.done(receive));
    REQUIRE(ends.done(send));
    REQUIRE(std::memcmp(in.data() + 8 - shift, source.data() + shift, bytes) == 0);
    CHECK(std::count(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(8 - shift), 0xee) == static_cast<long>(8 - shift));
    CHECK(in[8 - shift + bytes] == 0xee);
  }
}

TEST_CASE("a large message crosses in both directions at once", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  tutti_tp_channel_t* back_sender = job.channel(1, 0, 1, TUTTI_TP_SEND, Carrier::messages);
  tutti_tp_channel_t* back_receiver = job.channel(0, 1, 1, TUTTI_TP_RECV, Carrier::messages);
  const size_t bytes = 24 << 20;
  const Bytes out = pattern(bytes, 1);
  const Bytes back_out = pattern(bytes, 2);
  Bytes in(bytes);
  Bytes back_in(bytes);
  tutti_tp_op_t ops[4] = {};
  ends.post_send(out.data(), bytes, ops[0]);
  REQUIRE(ends.again([&] { return tp().post_send(back_sender, back_out.data(), bytes, 0, &ops[1]); }) == TUTTI_OK);
  ends.post_recv(in.data(), bytes, ops[2]);
  REQUIRE(ends.again([&] { return tp().post_recv(back_receiver, back_in.data(), bytes, &ops[3]); }) == TUTTI_OK);
  for (tutti_tp_op_t& op : ops) {
    REQUIRE(ends.done(op));
    CHECK(op.status == TUTTI_OK);
  }
  CHECK(in == out);
  CHECK(back_in == back_out);
}

TEST_CASE("hundreds of messages may be posted at once", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  constexpr size_t kCount = 2000;
  constexpr size_t kBytes = 777;
  const Bytes out = pattern(kCount * kBytes, 6);
  Bytes in(out.size());
  std::vector<tutti_tp_op_t> sends(kCount);
  std::vector<tutti_tp_op_t> receives(kCount);
  for (size_t i = 0; i < kCount; ++i) ends.post_send(out.data() + i * kBytes, kBytes, sends[i]);
  for (size_t i = 0; i < kCount; ++i) ends.post_recv(in.data() + i * kBytes, kBytes, receives[i]);
  for (size_t i = 0; i < kCount; ++i) {
    REQUIRE(ends.done(receives[i]));
    REQUIRE(ends.done(sends[i]));
  }
  CHECK(in == out);
}

TEST_CASE("what nobody receives is held back or buffered within bounds", "[messages]") {
  Job job(Job::Options{2, {{"tcp_window_bytes", "65536"}}, true});
  Ends ends(job);
  if (!ends.offered) return;
  const Bytes big = pattern(32 << 20, 1);
  tutti_tp_op_t send{};
  ends.post_send(big.data(), big.size(), send);
  job.progress_times(2000);
  CHECK(send.done == 0);
  const uint64_t memory_bytes = job.counter(1, "memory_bytes");
  CHECK((memory_bytes == UINT64_MAX || memory_bytes < 8u << 20));
  Bytes in(big.size());
  tutti_tp_op_t receive{};
  ends.post_recv(in.data(), in.size(), receive);
  REQUIRE(ends.done(receive));
  REQUIRE(ends.done(send));
  CHECK(in == big);
}

TEST_CASE("closing a channel ends what is posted on it, and its memory is left alone from then on", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  Bytes out = pattern(16 << 20, 1);
  Bytes in(out.size());
  tutti_tp_op_t sends[2] = {};
  tutti_tp_op_t receives[3] = {};
  for (tutti_tp_op_t& op : receives) ends.post_recv(in.data(), in.size(), op);
  for (tutti_tp_op_t& op : sends) ends.post_send(out.data(), out.size(), op);
  job.progress_times(3);
  tp().channel_close(ends.receiver);
  for (const tutti_tp_op_t& op : receives) {
    REQUIRE(op.done == 1);
    CHECK((op.status == TUTTI_ERR_ABORTED || op.status == TUTTI_OK));
  }
  CHECK(receives[2].status == TUTTI_ERR_ABORTED);
  const Bytes kept = in;
  tp().channel_close(ends.sender);
  for (const tutti_tp_op_t& op : sends) CHECK(op.done == 1);
  std::fill(out.begin(), out.end(), uint8_t{0xdd});
  job.progress_times(200);
  CHECK(in == kept);
  CHECK(job.host(0).gone.empty());
  CHECK(job.host(1).gone.empty());
}

TEST_CASE("the wrong end and the wrong carrier are refused", "[messages]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  tutti_tp_op_t op{};
  char byte = 0;
  CHECK(tp().post_send(ends.receiver, &byte, 1, 0, &op) == TUTTI_ERR_ARGUMENT);
  CHECK(tp().post_recv(ends.sender, &byte, 1, &op) == TUTTI_ERR_ARGUMENT);
  if ((job.link(0, 1).caps & TUTTI_TP_CAP_SLOTS) == 0) return;
  void* slot = nullptr;
  uint64_t bytes = 0;
  uint32_t mark = 0;
  const void* data = nullptr;
  CHECK(tp().slot_reserve(ends.sender, 1, &slot) == TUTTI_ERR_ARGUMENT);
  CHECK(tp().slot_peek(ends.receiver, &data, &bytes, &mark) == TUTTI_ERR_ARGUMENT);
}

}  // namespace tutti::conformance
