// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

struct Opened {
  explicit Opened(uint32_t rank, uint32_t size) : world(subject.make_world ? subject.make_world(size) : nullptr), host(world.get()) {
    arguments.struct_size = sizeof arguments;
    arguments.rank = rank;
    arguments.size = size;
    fill_job_id(arguments.job_id);
    arguments.host_identity = "one machine";
    arguments.bind_addresses = "127.0.0.1";
    arguments.host = &host.table;
    arguments.world = world == nullptr ? nullptr : world->pointer();
    host.in_call = true;
  }
  tutti_status_t open() { return tp().open(&arguments, &endpoint); }
  std::unique_ptr<World> world;
  Host host;
  tutti_tp_open_t arguments{};
  tutti_tp_endpoint_t* endpoint = nullptr;
};

}  // namespace

TEST_CASE("the table says who it is and how it waits", "[setup]") {
  CHECK(std::string(tp().name).size() > 0);
  CHECK(std::string(tp().description).size() > 0);
  Job job;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const int fd = tp().fd(job[rank]);
    if ((tp().caps & TUTTI_TP_CAP_MUST_POLL) != 0) {
      CHECK(fd == -1);
      CHECK(tp().poll_interval_ns > 0);
    } else {
      CHECK(fd >= 0);
    }
  }
}

TEST_CASE("an endpoint is opened and closed, with nothing between, and leaves nothing", "[setup]") {
  for (int round = 0; round < 20; ++round) {
    Opened one(0, 1);
    REQUIRE(one.open() == TUTTI_OK);
    tp().close(one.endpoint);
    REQUIRE(one.host.live_blocks() == 0);
    REQUIRE(one.host.faults.empty());
  }
}

TEST_CASE("a rank outside the job is refused, and *endpoint left as it was", "[setup]") {
  Opened one(2, 2);
  auto* untouched = reinterpret_cast<tutti_tp_endpoint_t*>(&one);
  one.endpoint = untouched;
  CHECK(one.open() < 0);
  CHECK(one.endpoint == untouched);
  CHECK(one.host.live_blocks() == 0);
}

TEST_CASE("a job of one rank starts", "[setup]") {
  Job job(1);
  job.progress_times(10);
  job.close(0);
  CHECK(job.host(0).live_blocks() == 0);
}

TEST_CASE("an address fits its limit and tells when the buffer is too small", "[setup]") {
  Job job(Job::Options{2, {}, false});
  const std::string address = job.address(0);
  CHECK(address.size() > 0);
  CHECK(address.size() <= TUTTI_TP_ADDRESS_MAX_BYTES);
  CHECK(address == job.address(0));
  char small[1] = {'?'};
  size_t bytes = 77;
  CHECK(tp().address(job[0], small, 0, &bytes) < 0);
  CHECK(bytes == 77);
  CHECK(small[0] == '?');
}

TEST_CASE("malformed addresses are refused, and good ones still taken afterwards", "[setup]") {
  Job job(Job::Options{2, {}, false});
  const std::string good = job.address(1);
  job.host(0).in_call = true;
  CHECK(tp().set_peer(job[0], 1, good.data(), 0) < 0);
  CHECK(tp().set_peer(job[0], 1, good.data(), good.size() - 1) < 0);
  CHECK(tp().set_peer(job[0], 2, good.data(), good.size()) < 0);
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const Bytes noise = pattern(1 + seed * 10, seed);
    CHECK(tp().set_peer(job[0], 1, noise.data(), noise.size()) < 0);
  }
  job.host(0).in_call = false;
  job.introduce();
  REQUIRE(job.connect(0, 1));
  for (const Carrier carrier : job.carriers()) {
    Lane lane(job, 0, 1, 1, carrier);
    CHECK(lane.deliver(pattern(100, 1)));
  }
}

TEST_CASE("both ends say the same of their link, and it is something that channels can use", "[setup]") {
  Job job(3);
  for (uint32_t a = 0; a < 3; ++a) {
    for (uint32_t b = 0; b < 3; ++b) {
      if (a == b) continue;
      const tutti_tp_link_t here = job.link(a, b);
      const tutti_tp_link_t there = job.link(b, a);
      CHECK(here.caps == there.caps);
      CHECK(here.slot_bytes == there.slot_bytes);
      const uint32_t carriers = TUTTI_TP_CAP_MESSAGES | TUTTI_TP_CAP_SLOTS;
      CHECK((here.caps & carriers) != 0);
      CHECK((here.caps & ~carriers) == 0);
      CHECK((here.caps & ~tp().caps) == 0);
      CHECK((here.slot_bytes == UINT64_MAX) == ((here.caps & TUTTI_TP_CAP_SLOTS) == 0));
      CHECK(here.slot_bytes > 0);
      CHECK(here.bandwidth_mbps > 0);
    }
  }
  tutti_tp_link_t link{};
  link.struct_size = sizeof link;
  job.host(0).in_call = true;
  CHECK(tp().link(job[0], 3, &link) < 0);
}

TEST_CASE("a rank whose address was never given cannot be reached, the others can", "[setup]") {
  Job job(Job::Options{3, {}, false});
  for (const uint32_t rank : {0u, 1u}) {
    for (const uint32_t peer : {0u, 1u}) {
      const std::string address = job.address(peer);
      job.host(rank).in_call = true;
      REQUIRE(tp().set_peer(job[rank], peer, address.data(), address.size()) == TUTTI_OK);
      job.host(rank).in_call = false;
    }
  }
  bool started[2] = {false, false};
  REQUIRE(job.until([&] {
    for (const uint32_t rank : {0u, 1u}) {
      job.host(rank).in_call = true;
      if (!started[rank]) started[rank] = tp().start(job[rank]) == TUTTI_OK;
      job.host(rank).in_call = false;
    }
    return started[0] && started[1];
  }));
  tutti_tp_link_t link{};
  link.struct_size = sizeof link;
  job.host(0).in_call = true;
  CHECK(tp().link(job[0], 2, &link) == TUTTI_ERR_UNSUPPORTED);
  job.host(0).in_call = false;
  CHECK(job.connect(0, 1));
}

TEST_CASE("a carrier that the link does not have is refused", "[setup]") {
  Job job;
  const uint32_t caps = job.link(0, 1).caps;
  job.host(0).in_call = true;
  for (const int slots : {0, 1}) {
    for (const int direction : {TUTTI_TP_SEND, TUTTI_TP_RECV}) {
      tutti_tp_channel_t* channel = nullptr;
      const tutti_status_t status = tp().channel_open(job[0], 1, 4, direction, slots, &channel);
      const bool offered = (caps & (slots != 0 ? TUTTI_TP_CAP_SLOTS : TUTTI_TP_CAP_MESSAGES)) != 0;
      CHECK(status == (offered ? TUTTI_OK : TUTTI_ERR_UNSUPPORTED));
      CHECK((channel != nullptr) == offered);
      if (channel != nullptr) tp().channel_close(channel);
    }
  }
  tutti_tp_channel_t* none = nullptr;
  CHECK(tp().channel_open(job[0], 2, 4, TUTTI_TP_SEND, (caps & TUTTI_TP_CAP_SLOTS) != 0, &none) < 0);
  CHECK(none == nullptr);
}

TEST_CASE("everything is given back: memory, and no callback outside of a call", "[setup]") {
  Job job(4);
  for (uint32_t a = 0; a < 4; ++a) {
    for (uint32_t b = 0; b < 4; ++b) {
      if (a == b) continue;
      for (const Carrier carrier : job.carriers(a, b)) {
        Lane lane(job, a, b, carrier == Carrier::slots ? 1 : 2, carrier);
        REQUIRE(lane.deliver(pattern(3000, a + b)));
      }
    }
  }
  for (uint32_t rank = 0; rank < 4; ++rank) job.close(rank);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    CHECK(job.host(rank).live_blocks() == 0);
    CHECK(job.host(rank).faults.empty());
  }
}

TEST_CASE("endpoints of several jobs live in one process without knowing of each other", "[setup]") {
  Job one;
  Job other;
  for (const Carrier carrier : one.carriers()) {
    Lane here(one, 0, 1, 7, carrier);
    Lane there(other, 0, 1, 7, carrier);
    REQUIRE(here.send(pattern(50, 1)));
    REQUIRE(there.send(pattern(50, 2)));
    Bytes got;
    REQUIRE(here.receive(&got));
    CHECK(got == pattern(50, 1));
    REQUIRE(there.receive(&got));
    CHECK(got == pattern(50, 2));
  }
  one.close(0);
  one.close(1);
  other.progress_times(100);
  CHECK(other.host(0).gone.empty());
}

}  // namespace tutti::conformance
