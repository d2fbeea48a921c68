// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "harness.hpp"
#include "sim_world.hpp"

namespace tutti::conformance {

Subject subject;

namespace {

sim::World* current = nullptr;  // of the job that was made last

class TestWorld final : public World {
 public:
  TestWorld(uint64_t seed, sim::Options options) : world_(seed, std::move(options)) { current = &world_; }
  void* pointer() override { return &world_; }
  void step() override { world_.step(); }
  uint64_t now_ns() override { return world_.now_ns(); }

 private:
  sim::World world_;
};

void use(uint64_t seed, sim::Options options = {}) {
  subject.table = tutti_sim_transport_entry(TUTTI_TP_ABI_VERSION);
  subject.make_world = [seed, options](uint32_t ranks) mutable {
    options.size = ranks;
    return std::make_unique<TestWorld>(seed, options);
  };
}

Bytes number(uint32_t value) {
  Bytes data(4);
  std::memcpy(data.data(), &value, 4);
  return data;
}

uint32_t number(const Bytes& data) {
  uint32_t value = 0;
  std::memcpy(&value, data.data(), 4);
  return value;
}

/// All ranks pass messages round a ring. Ranks are driven only when something happened to them. Returns the digest.
uint64_t ring(uint64_t seed, uint32_t ranks, Carrier carrier, sim::Options options = {}) {
  use(seed, options);
  Job job(ranks);
  std::vector<std::unique_ptr<Lane>> lanes;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    lanes.push_back(std::make_unique<Lane>(job, rank, (rank + 1) % ranks, 1, carrier));
  }
  std::vector<uint32_t> hops(ranks);
  std::vector<bool> owes(ranks, true);
  uint32_t finished = 0;
  const auto drive = [&](uint32_t rank) {
    job.progress(rank);
    Bytes got;
    Lane& in = *lanes[(rank + ranks - 1) % ranks];
    for (bool moved = true; moved;) {
      moved = false;
      if (owes[rank] && lanes[rank]->try_send(number(hops[rank])) == TUTTI_OK) owes[rank] = false, moved = true;
      if (hops[rank] < 5 && !owes[rank] && in.try_receive(&got) == TUTTI_OK) {
        REQUIRE(number(got) == hops[rank]);
        moved = true;
        if (++hops[rank] == 5) ++finished;
        else owes[rank] = true;
      }
    }
  };
  for (uint32_t rank = 0; rank < ranks; ++rank) drive(rank);
  while (finished < ranks) {
    REQUIRE(current->step());
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      if (current->take_awake(rank)) drive(rank);
    }
  }
  return current->digest();
}

}  // namespace

TEST_CASE("the same seed gives the same run, another seed another", "[sim]") {
  for (const Carrier carrier : {Carrier::messages, Carrier::slots}) {
    const uint64_t first = ring(7, 8, carrier);
    CHECK(ring(7, 8, carrier) == first);
    CHECK(ring(8, 8, carrier) != first);
    sim::Options options;
    options.again_percent = 60;
    CHECK(ring(7, 8, carrier, options) == ring(7, 8, carrier, options));
  }
}

TEST_CASE("hundreds of ranks run in one thread, driven only when they are woken", "[sim]") {
  ring(1, 300, Carrier::messages);
  ring(1, 300, Carrier::slots);
}

TEST_CASE("clock and random numbers are those of the world", "[sim]") {
  sim::World one(5, {});
  sim::World other(5, {});
  const SimClock clock(one);
  SimRandom random(one);
  SimRandom same(other);
  std::byte a[13];
  std::byte b[13];
  random.fill(a);
  same.fill(b);
  CHECK(std::equal(a, a + 13, b));
  random.fill(b);
  CHECK_FALSE(std::equal(a, a + 13, b));
  std::vector<uint64_t> times;
  one.call_at(3'000'000'000, [&] { times.push_back(clock.now_ns()); });
  one.call_at(500, [&] {
    times.push_back(clock.now_ns());
    one.call_at(700, [&] { times.push_back(clock.now_ns()); });
  });
  CHECK(one.next_ns() == 500);
  while (one.step()) {
  }
  CHECK(times == std::vector<uint64_t>{500, 700, 3'000'000'000});
  CHECK(one.next_ns() == UINT64_MAX);
}

TEST_CASE("when all wait for each other, the world stands still", "[sim]") {
  use(1);
  Job job;
  Lane there(job, 0, 1, 1, Carrier::messages);
  Lane back(job, 1, 0, 1, Carrier::messages);
  Bytes got;
  uint32_t steps = 0;
  do {
    job.progress(0);
    job.progress(1);
    REQUIRE(there.try_receive(&got) == TUTTI_TP_AGAIN);
    REQUIRE(back.try_receive(&got) == TUTTI_TP_AGAIN);
    REQUIRE(++steps < 100);
  } while (current->step());
}

TEST_CASE("messages of different channels overtake each other, or not, as chosen", "[sim]") {
  for (const bool reorder : {true, false}) {
    sim::Options options;
    options.reorder = reorder;
    options.bandwidth_mbps = 0;
    use(3, options);
    Job job;
    REQUIRE(job.connect(0, 1));
    std::vector<std::unique_ptr<Lane>> lanes;
    for (uint32_t i = 0; i < 50; ++i) lanes.push_back(std::make_unique<Lane>(job, 0, 1, i, Carrier::messages));
    for (uint32_t i = 0; i < 50; ++i) REQUIRE(lanes[i]->try_send(number(i)) == TUTTI_OK);
    std::vector<uint32_t> order;
    Bytes got;
    while (order.size() < 50) {
      REQUIRE(current->step());
      job.progress(0);
      job.progress(1);
      for (auto& lane : lanes) {
        if (lane->try_receive(&got) == TUTTI_OK) order.push_back(number(got));
      }
    }
    CHECK(std::is_sorted(order.begin(), order.end()) == !reorder);
  }
}

TEST_CASE("with no window a send ends when it was received; with one, at once while there is room", "[sim]") {
  for (const uint64_t window : {0u, 1000u}) {
    sim::Options options;
    options.window_bytes = window;
    use(3, options);
    Job job;
    REQUIRE(job.connect(0, 1));
    Lane lane(job, 0, 1, 1, Carrier::messages);
    REQUIRE(lane.try_send(Bytes(400)) == TUTTI_OK);
    CHECK(lane.pending() == (window == 0 ? 1 : 0));
    REQUIRE(lane.try_send(Bytes(400)) == TUTTI_OK);
    REQUIRE(lane.try_send(Bytes(400)) == TUTTI_OK);
    CHECK(lane.pending() == (window == 0 ? 3 : 1));
    job.progress_times(100);
    CHECK(lane.pending() == (window == 0 ? 3 : 1));
    Bytes got;
    REQUIRE(lane.receive(&got));
    REQUIRE(job.until([&] { return lane.pending() == (window == 0 ? 2 : 0); }));
  }
}

TEST_CASE("links have the caps that the pair was given", "[sim]") {
  sim::Options options;
  options.caps = [](uint32_t lower, uint32_t higher) -> uint32_t {
    if (lower == 0 && higher == 1) return TUTTI_TP_CAP_SLOTS;
    return higher == 3 ? 0 : TUTTI_TP_CAP_MESSAGES;
  };
  options.slot_bytes = 128;
  use(1, options);
  Job job(4);
  CHECK(job.link(1, 0).caps == TUTTI_TP_CAP_SLOTS);
  CHECK(job.link(0, 1).slot_bytes == 128);
  CHECK(job.link(2, 1).caps == TUTTI_TP_CAP_MESSAGES);
  CHECK(job.link(2, 1).slot_bytes == UINT64_MAX);
  tutti_tp_link_t link{};
  CHECK(tp().link(job[0], 3, &link) == TUTTI_ERR_UNSUPPORTED);
}

TEST_CASE("a crash is a failure for the peers, and its memory is left alone", "[sim]") {
  use(1);
  Job job(3);
  REQUIRE(job.connect(0, 1));
  tutti_tp_channel_t* sender = job.channel(0, 1, 1, TUTTI_TP_SEND, Carrier::messages);
  tutti_tp_channel_t* receiver = job.channel(1, 0, 1, TUTTI_TP_RECV, Carrier::messages);
  Lane other(job, 1, 2, 1, Carrier::messages);
  tutti_tp_op_t send{};
  tutti_tp_op_t receive{};
  auto out = std::make_unique<Bytes>(1000, uint8_t{7});
  REQUIRE(tp().post_send(sender, out->data(), out->size(), 0, &send) == TUTTI_OK);
  while (current->step()) {
  }
  current->crash(0);
  out.reset();
  Bytes in(1000);
  REQUIRE(tp().post_recv(receiver, in.data(), in.size(), &receive) == TUTTI_OK);
  REQUIRE(job.until([&] { return !job.host(1).gone.empty(); }));
  CHECK(job.host(1).gone[0].cause == TUTTI_TP_GONE_FAILED);
  CHECK(receive.status == TUTTI_ERR_PEER_FAILED);
  CHECK(send.done == 0);
  CHECK(in == Bytes(1000));
  CHECK(tp().post_send(sender, nullptr, 0, 0, &send) == TUTTI_ERR_ABORTED);
  CHECK(other.deliver(number(1)));
  CHECK(current->crashed(0));
  CHECK_FALSE(current->crashed(1));
  job.close(0);
  CHECK(send.done == 0);
}

TEST_CASE("a partition holds everything back, and what heals in time is as if nothing had been", "[sim]") {
  sim::Options options;
  options.slots = 4;
  use(1, options);
  Job job(3);
  for (const Carrier carrier : {Carrier::messages, Carrier::slots}) {
    Lane across(job, 0, 2, 1, carrier);
    Lane within(job, 0, 1, 1, carrier);
    REQUIRE(across.deliver(number(1)));
    current->partition({2});
    REQUIRE(across.try_send(number(2)) == TUTTI_OK);
    REQUIRE(across.try_send(number(3)) == TUTTI_OK);
    REQUIRE(within.deliver(number(4)));
    Bytes got;
    for (int i = 0; i < 30; ++i) {
      job.progress_times(1);
      if (current->next_ns() > current->now_ns() + 1'000'000'000) break;  // only the silence is left to be noticed
      REQUIRE(across.try_receive(&got) == TUTTI_TP_AGAIN);
    }
    current->heal();
    REQUIRE(across.receive(&got));
    CHECK(number(got) == 2);
    REQUIRE(across.receive(&got));
    CHECK(number(got) == 3);
  }
  for (uint32_t rank = 0; rank < 3; ++rank) CHECK(job.host(rank).gone.empty());
}

TEST_CASE("links across a partition that lasts break on both sides", "[sim]") {
  use(1);
  Job job(Job::Options{3, {{"heartbeat_timeout", "5000000000"}}, true});
  REQUIRE(job.connect(0, 2));
  REQUIRE(job.connect(0, 1));
  current->partition({2});
  const uint64_t begin = current->now_ns();
  REQUIRE(job.until([&] { return !job.host(0).gone.empty() && !job.host(2).gone.empty(); }));
  CHECK(current->now_ns() - begin == 5'000'000'000);
  CHECK(job.host(0).gone[0].peer == 2);
  CHECK(job.host(2).gone[0].cause == TUTTI_TP_GONE_FAILED);
  CHECK(job.host(1).gone.empty());
  CHECK(tp().connect(job[0], 1) == TUTTI_OK);
}

TEST_CASE("who cannot be reached is reported after connect_timeout of virtual time", "[sim]") {
  use(1);
  Job job(Job::Options{2, {{"connect_timeout", "3000000000"}}, true});
  current->partition({1});
  Lane lane(job, 0, 1, 1, Carrier::messages);
  REQUIRE(lane.try_send(number(1)) == TUTTI_OK);
  REQUIRE(job.until([&] { return !job.host(0).gone.empty(); }));
  CHECK(job.host(0).gone[0].cause == TUTTI_TP_GONE_UNREACHABLE);
  CHECK(current->now_ns() >= 3'000'000'000);
  CHECK(current->now_ns() < 3'100'000'000);
}

TEST_CASE("who has left before a connection is unreachable at once", "[sim]") {
  use(1);
  Job job;
  job.close(1);
  CHECK(tp().connect(job[0], 1) == TUTTI_TP_AGAIN);
  REQUIRE(job.until([&] { return !job.host(0).gone.empty(); }));
  CHECK(job.host(0).gone[0].cause == TUTTI_TP_GONE_UNREACHABLE);
  CHECK(current->now_ns() < 1'000'000);
}

}  // namespace tutti::conformance
