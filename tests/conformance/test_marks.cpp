// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// A mark comes with the message that it was sent with, whatever the message and whatever else is under way. (The marks of
// all lanes of the other tests are checked too.)

#include <catch2/catch.hpp>

#include <algorithm>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

constexpr uint32_t kMarks[] = {0, 1, UINT32_MAX, 0x80000000, 0x7fffffff, 0x0000ffff, 0xffff0000, 0x12345678};

uint32_t mark_number(uint32_t lane, uint32_t number) {
  return number < std::size(kMarks) ? kMarks[number] : (number * 2654435761u) ^ (lane * 0x9e3779b9u);
}

size_t length_of(const Lane& lane, uint32_t number) {
  const size_t largest = static_cast<size_t>(lane.largest());
  const size_t lengths[] = {0, 8, 48, 49, 4096, largest, 0, 1};
  return std::min(largest, lengths[number % std::size(lengths)]);
}

}  // namespace

TEST_CASE("a mark arrives with its message, on interleaved channels, for messages of all lengths", "[marks]") {
  constexpr uint32_t kMessages = 80;
  Job job;
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (uint32_t i = 0; i < 3; ++i) lanes.push_back(std::make_unique<Lane>(job, i % 2, 1 - i % 2, 10 + i, carrier));
    std::vector<uint32_t> sent(lanes.size());
    std::vector<uint32_t> received(lanes.size());
    REQUIRE(job.until([&] {
      bool all = true;
      for (uint32_t i = 0; i < lanes.size(); ++i) {
        Lane& lane = *lanes[i];
        const auto data = [&](uint32_t number) { return pattern(length_of(lane, number), number + 100 * i); };
        while (sent[i] < kMessages && lane.try_send(data(sent[i]), mark_number(i, sent[i])) == TUTTI_OK) ++sent[i];
        Bytes got;
        uint32_t mark = 0;
        while (received[i] < kMessages && lane.try_receive(&got, &mark) == TUTTI_OK) {
          REQUIRE(mark == mark_number(i, received[i]));
          REQUIRE(got == data(received[i]));
          ++received[i];
        }
        all = all && received[i] == kMessages;
      }
      return all;
    }, 60));
  }
}

TEST_CASE("a mark arrives although nobody receives yet, and with a message that was cut off", "[marks]") {
  Job job;
  const std::vector<Carrier> carriers = job.carriers();
  if (std::find(carriers.begin(), carriers.end(), Carrier::messages) == carriers.end()) return;
  Lane lane(job, 0, 1, 1, Carrier::messages);
  job.host(0).in_call = job.host(1).in_call = true;
  for (const size_t bytes : {size_t{100}, size_t{300'000}}) {
    for (const bool receive_first : {true, false}) {
      INFO(bytes << " " << receive_first);
      const Bytes out = pattern(bytes, 5);
      Bytes in(10);
      tutti_tp_op_t send{};
      tutti_tp_op_t receive{};
      const auto post_send = [&] {
        return tp().post_send(lane.sender(), out.data(), out.size(), 0xfeedbeef, &send) == TUTTI_OK;
      };
      const auto post_recv = [&] { return tp().post_recv(lane.receiver(), in.data(), in.size(), &receive) == TUTTI_OK; };
      if (receive_first) REQUIRE(job.until(post_recv));
      REQUIRE(job.until(post_send));
      if (!receive_first) {
        job.progress_times(100);
        REQUIRE(job.until(post_recv));
      }
      REQUIRE(job.until([&] { return receive.done != 0 && send.done != 0; }));
      CHECK(receive.status == TUTTI_ERR_TRUNCATED);
      CHECK(receive.bytes == bytes);
      CHECK(receive.mark == 0xfeedbeef);
    }
  }
}

}  // namespace tutti::conformance
