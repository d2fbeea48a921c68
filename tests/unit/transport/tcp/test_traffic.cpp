// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <deque>
#include <random>

#include "job.hpp"

namespace tutti::test {
namespace {

const tutti_tp_table_t& tp() { return Job::tp(); }

/// One channel with messages under way, sent and received at random moments.
struct Stream {
  struct Message {
    std::vector<uint8_t> out;
    std::vector<uint8_t> in;
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
  };
  Stream(Job& job, uint32_t from, uint32_t to, uint64_t id) : pipe(job, from, to, id) {}

  Message& at(size_t index) {
    while (messages.size() <= index) messages.emplace_back();
    return messages[index];
  }
  void send(size_t bytes, uint32_t seed) {
    Message& message = at(sent++);
    message.out = pattern(bytes, seed);
    REQUIRE(tp().post_send(pipe.sender, message.out.data(), bytes, 0, &message.send) == TUTTI_OK);
  }
  void receive(size_t capacity) {
    Message& message = at(received++);
    message.in.resize(capacity);
    REQUIRE(tp().post_recv(pipe.receiver, message.in.data(), capacity, &message.receive) == TUTTI_OK);
  }
  void check() {
    for (Message& message : messages) {
      REQUIRE((message.send.done && message.receive.done));
      REQUIRE(message.receive.bytes == message.out.size());
      const size_t common = std::min(message.in.size(), message.out.size());
      REQUIRE(message.receive.status == (common < message.out.size() ? TUTTI_ERR_TRUNCATED : TUTTI_OK));
      REQUIRE(std::equal(message.out.begin(), message.out.begin() + static_cast<std::ptrdiff_t>(common), message.in.begin()));
    }
  }

  Pipe pipe;
  std::deque<Message> messages;
  size_t sent = 0;
  size_t received = 0;
};

}  // namespace

TEST_CASE("random traffic through tiny sockets and windows arrives whole, in order, on every channel", "[tcp]") {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    Job::Options options;
    options.ranks = 3;
    options.settings["tcp_window_bytes"] = seed % 3 == 0 ? "4096" : "50000";
    options.settings["tcp_socket_buffer_bytes"] = seed % 2 == 0 ? "4608" : "0";
    Job job(options);
    std::deque<Stream> streams;
    for (uint32_t i = 0; i < 12; ++i) streams.emplace_back(job, i % 3, (i + 1 + i / 6) % 3, i);
    constexpr size_t kMessages = 40;
    const auto length = [&] { return below(4) == 0 ? below(200'000) : below(3) == 0 ? 0 : below(2000); };
    const auto all_done = [&] {
      for (Stream& stream : streams) {
        if (stream.sent < kMessages || stream.received < kMessages) return false;
        for (const Stream::Message& message : stream.messages) {
          if (!message.send.done || !message.receive.done) return false;
        }
      }
      return true;
    };
    REQUIRE(job.until(
        [&] {
          Stream& stream = streams[below(12)];
          if (stream.sent < kMessages && below(2) == 0) stream.send(length(), below(1u << 30));
          if (stream.received < kMessages && below(2) == 0) stream.receive(below(5) == 0 ? length() : 200'000);
          tp().progress(job[below(3)]);
          return below(8) == 0 && all_done();
        },
        60));
    for (Stream& stream : streams) stream.check();
    for (uint32_t rank = 0; rank < 3; ++rank) CHECK(job.host(rank).gone.empty());
  }
}

}  // namespace tutti::test
