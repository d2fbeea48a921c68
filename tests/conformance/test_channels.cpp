// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// What holds for channels however their messages are carried.

#include <catch2/catch.hpp>

#include <algorithm>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

Bytes numbered(uint32_t number, size_t bytes) {
  Bytes data = pattern(std::max<size_t>(bytes, 4), number);
  for (int i = 0; i < 4; ++i) data[static_cast<size_t>(i)] = static_cast<uint8_t>(number >> (8 * i));
  return data;
}

/// Pushes numbered messages through all lanes at once, each as fast as it goes.
bool run(Job& job, std::vector<std::unique_ptr<Lane>>& lanes, uint32_t count, size_t bytes) {
  std::vector<uint32_t> sent(lanes.size());
  std::vector<uint32_t> received(lanes.size());
  bool right = true;
  return job.until([&] {
    bool all = true;
    for (size_t i = 0; i < lanes.size(); ++i) {
      while (sent[i] < count && lanes[i]->try_send(numbered(sent[i], bytes)) == TUTTI_OK) ++sent[i];
      Bytes got;
      while (received[i] < count && lanes[i]->try_receive(&got) == TUTTI_OK) {
        right = right && got == numbered(received[i], bytes);
        ++received[i];
      }
      all = all && received[i] == count;
    }
    return all || !right;
  }, 60) && right;
}

}  // namespace

TEST_CASE("messages arrive in order, unchanged", "[channels]") {
  Job job;
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    std::vector<std::unique_ptr<Lane>> lanes;
    lanes.push_back(std::make_unique<Lane>(job, 0, 1, 1, carrier));
    CHECK(run(job, lanes, 1000, 200));
  }
}

TEST_CASE("a channel may be used before there is any connection", "[channels]") {
  for (const bool sender_first : {true, false}) {
    Job job;
    for (const Carrier carrier : job.carriers()) {
      Lane lane(job, 0, 1, carrier == Carrier::slots ? 3 : 4, carrier);
      Bytes got;
      if (!sender_first) REQUIRE(lane.try_receive(&got) == TUTTI_TP_AGAIN);
      CHECK(lane.deliver(pattern(500, 8)));
    }
  }
}

TEST_CASE("what is sent before the receiver opens its end is received", "[channels]") {
  Job job;
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    REQUIRE(job.connect(0, 1));
    Lane lane(job, 0, 1, carrier == Carrier::slots ? 11 : 12, carrier);
    lane.close_receiver();
    lane.close_sender();
    lane.open_sender();
    for (uint32_t i = 0; i < TUTTI_TP_MIN_SLOTS; ++i) REQUIRE(lane.send(numbered(i, 60)));
    job.progress_times(100);
    lane.open_receiver();
    for (uint32_t i = 0; i < TUTTI_TP_MIN_SLOTS; ++i) {
      Bytes got;
      REQUIRE(lane.receive(&got));
      CHECK(got == numbered(i, 60));
    }
  }
}

TEST_CASE("a channel on which nobody receives holds up no other", "[channels]") {
  Job job;
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    Lane stuck(job, 0, 1, 21, carrier);
    // As much as it takes, up to more than any window.
    const Bytes big = pattern(static_cast<size_t>(std::min<uint64_t>(stuck.largest(), 60'000)), 5);
    uint32_t queued = 0;
    job.until([&] {
      while (queued < 200 && stuck.try_send(big) == TUTTI_OK) ++queued;
      return queued >= 200;
    }, 0.2);
    REQUIRE(queued >= TUTTI_TP_MIN_SLOTS);
    Lane free(job, 0, 1, 22, carrier);
    for (uint32_t i = 0; i < 200; ++i) REQUIRE(free.deliver(numbered(i, 1000)));
    Lane back(job, 1, 0, 21, carrier);
    for (uint32_t i = 0; i < 20; ++i) REQUIRE(back.deliver(numbered(i, 1000)));
    Bytes got;
    for (uint32_t i = 0; i < queued; ++i) {
      REQUIRE(stuck.receive(&got));
      REQUIRE(got == big);
    }
  }
}

TEST_CASE("the same id in both directions and to several peers means different channels", "[channels]") {
  Job job(3);
  for (const Carrier carrier : job.carriers()) {
    std::vector<std::unique_ptr<Lane>> lanes;
    for (uint32_t a = 0; a < 3; ++a) {
      for (uint32_t b = 0; b < 3; ++b) {
        if (a != b) lanes.push_back(std::make_unique<Lane>(job, a, b, 99, carrier));
      }
    }
    CHECK(run(job, lanes, 50, 300));
  }
}

TEST_CASE("many channels between two ranks", "[channels]") {
  Job job;
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (uint64_t i = 0; i < 300; ++i) {
      const auto from = static_cast<uint32_t>(i % 2);
      lanes.push_back(std::make_unique<Lane>(job, from, 1 - from, i * 0x100000001u, carrier));
    }
    CHECK(run(job, lanes, 5, 40));
  }
}

TEST_CASE("many senders press on one rank, and are held back", "[channels]") {
  Job job(9);
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (uint32_t rank = 1; rank < 9; ++rank) lanes.push_back(std::make_unique<Lane>(job, rank, 0, 1, carrier));
    CHECK(run(job, lanes, 300, 1024));
  }
}

TEST_CASE("an id is used again after both ends closed it, whatever was left in it", "[channels]") {
  Job job;
  REQUIRE(job.connect(0, 1));
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    for (uint32_t round = 0; round < 40; ++round) {
      INFO(round);
      Lane lane(job, 0, 1, 5, carrier);
      for (uint32_t i = 0; i < round % 3; ++i) REQUIRE(lane.try_send(numbered(900 + i, 700)) != TUTTI_ERR_INTERNAL);
      job.progress_times(static_cast<int>(round % 5));
      if (round % 4 == 3) {
        Bytes got;
        const tutti_status_t status = lane.try_receive(&got);
        REQUIRE((status == TUTTI_OK || status == TUTTI_TP_AGAIN));
      }
      if (round % 2 == 0) lane.close_receiver();
      lane.close_sender();
      job.progress_times(static_cast<int>(round % 4));
      lane.close_receiver();
      lane.open_sender();
      lane.open_receiver();
      for (uint32_t i = 0; i < 3; ++i) REQUIRE(lane.deliver(numbered(round + i, 100)));
    }
    CHECK(job.host(0).gone.empty());
    CHECK(job.host(1).gone.empty());
  }
}

TEST_CASE("an id that is open is not opened twice", "[channels]") {
  Job job;
  for (const Carrier carrier : job.carriers()) {
    Lane lane(job, 0, 1, 6, carrier);
    const int slots = carrier == Carrier::slots ? 1 : 0;
    tutti_tp_channel_t* again = nullptr;
    job.host(0).in_call = job.host(1).in_call = true;
    CHECK(tp().channel_open(job[0], 1, 6, TUTTI_TP_SEND, slots, &again) < 0);
    CHECK(tp().channel_open(job[1], 0, 6, TUTTI_TP_RECV, slots, &again) < 0);
    CHECK(again == nullptr);
    job.host(0).in_call = job.host(1).in_call = false;
    CHECK(lane.deliver(pattern(10, 1)));
  }
}

TEST_CASE("a closed sending channel still delivers what it accepted", "[channels]") {
  Job job;
  REQUIRE(job.connect(0, 1));
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    Lane lane(job, 0, 1, 31, carrier);
    REQUIRE(lane.send(numbered(1, 500)));
    if (carrier == Carrier::slots || job.until([&] { return lane.pending() == 0; }, 0.2)) {
      lane.close_sender();
      Bytes got;
      REQUIRE(lane.receive(&got));
      CHECK(got == numbered(1, 500));
    } else {  // it buffers nothing: a send that no receive awaits is not accepted yet, and ends with the channel
      Bytes got;
      REQUIRE(lane.receive(&got));
      REQUIRE(job.until([&] { return lane.pending() == 0; }));
    }
  }
}

TEST_CASE("once a channel is in use the data path allocates nothing", "[channels]") {
  Job job;
  for (const Carrier carrier : job.carriers()) {
    INFO(name(carrier));
    Lane there(job, 0, 1, 1, carrier);
    Lane back(job, 1, 0, 1, carrier);
    const auto largest = static_cast<size_t>(std::min<uint64_t>(there.largest(), 60'000));
    const auto exchange = [&](size_t bytes, bool wait) {
      const Bytes out = pattern(bytes, 3);
      REQUIRE(there.send(out));
      if (wait) job.progress_times(20);
      Bytes got;
      REQUIRE(there.receive(&got));
      REQUIRE(got == out);
      REQUIRE(back.deliver(Bytes(8)));
    };
    for (int i = 0; i < 40; ++i) exchange(largest, i % 2 == 0);
    const uint64_t before = job.host(0).allocations + job.host(1).allocations;
    for (size_t i = 0; i < 200; ++i) exchange(i * 977 % largest, i % 3 == 0);
    CHECK(job.host(0).allocations + job.host(1).allocations == before);
  }
}

TEST_CASE("a transport that counts, counts right", "[channels]") {
  Job job;
  for (const Carrier carrier : job.carriers()) {
    Lane lane(job, 0, 1, 1, carrier);
    for (int i = 0; i < 10; ++i) REQUIRE(lane.deliver(pattern(100, 1)));
  }
  if (tp().counter == nullptr) {
    CHECK(job.counter(0, "memory_bytes") == UINT64_MAX);
    return;
  }
  CHECK(job.counter(0, "memory_bytes") != UINT64_MAX);
  CHECK(job.counter(0, "memory_bytes") > 0);
  const char* name = nullptr;
  uint64_t value = 0;
  uint32_t count = 0;
  while (tp().counter(job[0], count, &name, &value) == TUTTI_OK) {
    CHECK(std::string(name).size() > 0);
    REQUIRE(++count < 1000);
  }
  CHECK(tp().counter(job[0], count + 1, &name, &value) == TUTTI_ERR_ARGUMENT);
  CHECK(tp().counter(job[0], UINT32_MAX, &name, &value) == TUTTI_ERR_ARGUMENT);
}

}  // namespace tutti::conformance
