// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// reserve, commit, peek and release. A transport without slots is asked once whether it says so.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

struct Ends {
  explicit Ends(Job& on) : job(on) {
    job.host(0).in_call = job.host(1).in_call = true;
    link = job.link(0, 1);
    offered = (link.caps & TUTTI_TP_CAP_SLOTS) != 0;
    const tutti_status_t expected = offered ? TUTTI_OK : TUTTI_ERR_UNSUPPORTED;
    REQUIRE(tp().channel_open(job[0], 1, 1, TUTTI_TP_SEND, 1, &sender) == expected);
    REQUIRE(tp().channel_open(job[1], 0, 1, TUTTI_TP_RECV, 1, &receiver) == expected);
  }
  void* reserve(uint64_t bytes) {
    void* slot = nullptr;
    REQUIRE(again([&] { return tp().slot_reserve(sender, bytes, &slot); }) == TUTTI_OK);
    return slot;
  }
  const uint8_t* peek(uint64_t* bytes) {
    const void* slot = nullptr;
    REQUIRE(again([&] { return tp().slot_peek(receiver, &slot, bytes, &mark); }) == TUTTI_OK);
    return static_cast<const uint8_t*>(slot);
  }
  tutti_status_t again(const std::function<tutti_status_t()>& call) {
    tutti_status_t status = TUTTI_TP_AGAIN;
    job.until([&] { return (status = call()) != TUTTI_TP_AGAIN; });
    return status;
  }
  void put(const Bytes& data) {
    void* slot = reserve(data.size());
    if (!data.empty()) std::memcpy(slot, data.data(), data.size());
    REQUIRE(tp().slot_commit(sender, data.size(), mark_of(data)) == TUTTI_OK);
  }
  void take(const Bytes& expected) {
    uint64_t bytes = 0;
    const uint8_t* data = peek(&bytes);
    REQUIRE(bytes == expected.size());
    CHECK(mark == mark_of(expected));
    REQUIRE(std::equal(expected.begin(), expected.end(), data));
    REQUIRE(tp().slot_release(receiver) == TUTTI_OK);
  }
  Job& job;
  tutti_tp_link_t link{};
  bool offered = false;
  tutti_tp_channel_t* sender = nullptr;
  tutti_tp_channel_t* receiver = nullptr;
  uint32_t mark = 0;  ///< of the message last looked at
};

}  // namespace

TEST_CASE("slots of all lengths up to the largest", "[slots]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const uint64_t largest = std::min<uint64_t>(ends.link.slot_bytes, 1 << 20);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{7}, uint64_t{47}, uint64_t{48}, uint64_t{49}, uint64_t{63},
                               uint64_t{64}, uint64_t{65}, largest / 2, largest - 1, largest, uint64_t{0}, uint64_t{3}}) {
    INFO(bytes);
    const Bytes data = pattern(bytes, static_cast<uint32_t>(bytes));
    ends.put(data);
    ends.take(data);
  }
}

TEST_CASE("at least the promised number of full slots fits before reserve says AGAIN, and it does say so", "[slots]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const auto bytes = static_cast<size_t>(std::min<uint64_t>(ends.link.slot_bytes, 1 << 20));
  for (int round = 0; round < 20; ++round) {
    uint32_t fits = 0;
    job.until([&] {
      void* slot = nullptr;
      while (fits < 5000 && tp().slot_reserve(ends.sender, bytes, &slot) == TUTTI_OK) {
        const Bytes data = pattern(bytes, fits);
        std::memcpy(slot, data.data(), bytes);
        REQUIRE(tp().slot_commit(ends.sender, bytes, mark_of(data)) == TUTTI_OK);
        ++fits;
      }
      return false;
    }, 0.01);
    REQUIRE(job.until([&] { return fits >= TUTTI_TP_MIN_SLOTS; }));
    CHECK(fits < 5000);
    void* slot = nullptr;
    CHECK(tp().slot_reserve(ends.sender, bytes, &slot) == TUTTI_TP_AGAIN);
    for (uint32_t i = 0; i < fits; ++i) ends.take(pattern(bytes, i));
  }
}

TEST_CASE("reserve gives the same slot until it is committed, and fewer bytes may be committed", "[slots]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const uint64_t reserved = std::min<uint64_t>(ends.link.slot_bytes, 1000);
  auto* slot = static_cast<uint8_t*>(ends.reserve(reserved));
  CHECK(reinterpret_cast<uintptr_t>(slot) % 64 == 0);
  std::memset(slot, 0x11, reserved);
  for (int i = 0; i < 5; ++i) {
    job.progress();
    CHECK(ends.reserve(reserved) == slot);
  }
  CHECK(slot[reserved - 1] == 0x11);
  const void* nothing = nullptr;
  uint64_t bytes = 0;
  job.progress_times(50);
  CHECK(tp().slot_peek(ends.receiver, &nothing, &bytes, &ends.mark) == TUTTI_TP_AGAIN);
  REQUIRE(tp().slot_commit(ends.sender, 10, mark_of(Bytes(10, 0x11))) == TUTTI_OK);
  ends.take(Bytes(10, 0x11));
}

TEST_CASE("a message can be looked at until it is released, whatever comes behind it", "[slots]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const auto size = static_cast<size_t>(std::min<uint64_t>(ends.link.slot_bytes, 2048));
  ends.put(pattern(size, 1));
  uint64_t bytes = 0;
  const uint8_t* first = ends.peek(&bytes);
  CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
  uint32_t more = 0;
  job.until([&] {
    void* slot = nullptr;
    while (more < 100 && tp().slot_reserve(ends.sender, size, &slot) == TUTTI_OK) {
      std::memset(slot, 0x77, size);
      REQUIRE(tp().slot_commit(ends.sender, size, mark_of(Bytes(size, 0x77))) == TUTTI_OK);
      ++more;
    }
    return false;
  }, 0.02);
  const Bytes expected = pattern(size, 1);
  for (int i = 0; i < 5; ++i) {
    job.progress();
    uint64_t again = 0;
    CHECK(ends.peek(&again) == first);
    CHECK(again == size);
    CHECK(std::equal(expected.begin(), expected.end(), first));
  }
  REQUIRE(tp().slot_release(ends.receiver) == TUTTI_OK);
  for (uint32_t i = 0; i < more; ++i) ends.take(Bytes(size, 0x77));
}

TEST_CASE("messages of very different lengths follow each other", "[slots]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const uint64_t largest = std::min<uint64_t>(ends.link.slot_bytes, 300'000);
  uint32_t sent = 0;
  uint32_t received = 0;
  const auto length = [&](uint32_t i) { return static_cast<size_t>((i * 2654435761u) % (i % 3 == 0 ? largest + 1 : 65)); };
  REQUIRE(job.until([&] {
    void* slot = nullptr;
    while (sent < 500 && tp().slot_reserve(ends.sender, length(sent), &slot) == TUTTI_OK) {
      const Bytes data = pattern(length(sent), sent);
      if (!data.empty()) std::memcpy(slot, data.data(), data.size());
      REQUIRE(tp().slot_commit(ends.sender, data.size(), mark_of(data)) == TUTTI_OK);
      ++sent;
    }
    const void* data = nullptr;
    uint64_t bytes = 0;
    if (tp().slot_peek(ends.receiver, &data, &bytes, &ends.mark) == TUTTI_OK) {
      const Bytes expected = pattern(length(received), received);
      REQUIRE(bytes == expected.size());
      REQUIRE(ends.mark == mark_of(expected));
      REQUIRE(std::equal(expected.begin(), expected.end(), static_cast<const uint8_t*>(data)));
      REQUIRE(tp().slot_release(ends.receiver) == TUTTI_OK);
      ++received;
    }
    return received == 500;
  }));
}

TEST_CASE("too long a message, and calls out of turn, are refused", "[slots]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  void* slot = nullptr;
  const void* data = nullptr;
  uint64_t bytes = 0;
  REQUIRE(job.connect(0, 1));
  if (ends.link.slot_bytes < UINT64_MAX) CHECK(tp().slot_reserve(ends.sender, ends.link.slot_bytes + 1, &slot) < 0);
  CHECK(tp().slot_reserve(ends.sender, UINT64_MAX, &slot) < 0);
  CHECK(tp().slot_commit(ends.sender, 0, 0) < 0);
  CHECK(tp().slot_release(ends.receiver) < 0);
  CHECK(tp().slot_reserve(ends.receiver, 1, &slot) < 0);
  CHECK(tp().slot_peek(ends.sender, &data, &bytes, &ends.mark) < 0);
  ends.reserve(8);
  CHECK(tp().slot_commit(ends.sender, ends.link.slot_bytes, 0) < 0);
  Bytes eight(8, 0x42);
  ends.put(eight);
  ends.take(eight);
}

TEST_CASE("a channel is closed while slots are reserved, under way and looked at", "[slots]") {
  Job job;
  Ends ends(job);
  if (!ends.offered) return;
  const auto size = static_cast<size_t>(std::min<uint64_t>(ends.link.slot_bytes, 4000));
  for (int round = 0; round < 30; ++round) {
    ends.put(pattern(size, 1));
    uint64_t bytes = 0;
    if (round % 3 != 0) ends.peek(&bytes);
    if (round % 2 == 0) ends.reserve(size);
    tp().channel_close(round % 4 < 2 ? ends.sender : ends.receiver);
    job.progress_times(round % 5);
    tp().channel_close(round % 4 < 2 ? ends.receiver : ends.sender);
    REQUIRE(tp().channel_open(job[0], 1, 1, TUTTI_TP_SEND, 1, &ends.sender) == TUTTI_OK);
    REQUIRE(tp().channel_open(job[1], 0, 1, TUTTI_TP_RECV, 1, &ends.receiver) == TUTTI_OK);
    ends.put(pattern(30, 2));
    ends.take(pattern(30, 2));
  }
  CHECK(job.host(0).gone.empty());
  CHECK(job.host(1).gone.empty());
}

}  // namespace tutti::conformance
