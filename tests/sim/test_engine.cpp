// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// What the engine owes to callers and peers whatever the moment: order, answers, and doubt about what it is told.
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "engine/notice.hpp"
#include "job.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

sim::Options options(uint32_t size, uint32_t caps) {
  sim::Options result;
  result.size = size;
  result.caps = [caps](uint32_t, uint32_t) { return caps; };
  return result;
}

/// Lets a test act in the middle of the engine's work.
class ActingClock final : public Clock {
 public:
  explicit ActingClock(const sim::World& world) : world_(world) {}
  uint64_t now_ns() const noexcept override {
    if (action) std::exchange(action, nullptr)();
    return world_.now_ns();
  }
  mutable std::function<void()> action;

 private:
  const sim::World& world_;
};

/// As a peer of the job might send it.
void send_notice(SimJob& job, uint32_t from, uint32_t to, const Notice& notice) {
  SimRank& rank = *job.ranks[from];
  const tutti_tp_table_t* table = rank.fabric.transports()[0].table;
  tutti_status_t status = TUTTI_TP_AGAIN;
  job.drive([&] {
    status = table->notify(rank.endpoint, to, &notice, sizeof notice);
    return status != TUTTI_TP_AGAIN;
  });
  REQUIRE(status == TUTTI_OK);
  job.drive([] { return false; }, kSecondNs / 10);
}

Notice failure(uint64_t group, tutti_status_t code, uint32_t culprit) {
  Notice notice;
  notice.kind = Notice::failed;
  notice.id = group << 16;
  notice.code = code;
  notice.culprit = culprit;
  return notice;
}

}  // namespace

TEST_CASE("calls keep their order when one was handed over while another thread drove") {
  SimJob job(1, options(2, TUTTI_TP_CAP_MESSAGES));
  ActingClock clock(job.world);
  job.ranks[0]->renew_engine(clock);
  SimComm comm(job, 1, {0, 1});
  const int first = 1;
  const int second = 2;
  MessageOperation sends[2];
  clock.action = [&] {  // the driver has looked at what was submitted for the last time, and still drives
    std::thread([&] { comm.send(0, &first, sizeof first, 1, 7, sends[0]); }).join();
  };
  comm.engine(0).progress_and_arm();
  REQUIRE_FALSE(clock.action);
  comm.send(0, &second, sizeof second, 1, 7, sends[1]);
  int got[2] = {};
  MessageOperation receives[2];
  for (int i = 0; i < 2; ++i) comm.recv(1, &got[i], sizeof got[i], 0, 7, receives[i]);
  REQUIRE(job.drive([&] { return receives[0].done() && receives[1].done() && sends[0].done() && sends[1].done(); }));
  CHECK(got[0] == 1);
  CHECK(got[1] == 2);
}

TEST_CASE("a communicator that goes takes along what was handed over and not yet looked at") {
  SimJob job(1, options(2, TUTTI_TP_CAP_MESSAGES));
  ActingClock clock(job.world);
  job.ranks[0]->renew_engine(clock);
  SimComm comm(job, 1, {0, 1});
  const int value = 1;
  MessageOperation send;
  clock.action = [&] { std::thread([&] { comm.send(0, &value, sizeof value, 1, 7, send); }).join(); };
  comm.engine(0).progress_and_arm();
  REQUIRE_FALSE(send.done());
  comm.leave(0);
  CHECK(send.done());
}

TEST_CASE("news of a failure from who is no member of the communicator counts for nothing") {
  SimJob job(1, options(3, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, {0, 1});
  send_notice(job, 2, 0, failure(1, TUTTI_ERR_ABORTED, 2));
  CHECK_FALSE(comm.group(0).failed());
  send_notice(job, 1, 0, failure(1, TUTTI_ERR_ABORTED, 4'000'000'000));
  REQUIRE(comm.group(0).failed());
  CHECK(comm.group(0).failure().message().find("4000000000") == std::string_view::npos);
}

TEST_CASE("news about communicators that are gone does not crowd out news about one that is yet to come") {
  SimJob job(1, options(2, TUTTI_TP_CAP_MESSAGES));
  for (uint64_t id = 100; id < 170; ++id) {
    SimComm gone(job, id, {0, 1});
    gone.engine(0).abort(gone.group(0));
    REQUIRE(job.drive([&] { return gone.group(1).failed(); }));
  }
  for (uint64_t id = 200; id < 300; ++id) send_notice(job, 1, 0, failure(id, TUTTI_ERR_ABORTED, 1));
  send_notice(job, 1, 0, failure(7, TUTTI_ERR_ABORTED, 1));
  SimComm comm(job, 7, {0, 1});
  CHECK(comm.group(0).failed());
  CHECK(comm.group(0).failure().code() == TUTTI_ERR_ABORTED);
}

TEST_CASE("who has not heard of a failure asks, and is told") {
  const bool destroyed = GENERATE(false, true);
  SimJob job(1, options(2, TUTTI_TP_CAP_MESSAGES));
  const SimClock clock(job.world);
  SimComm comm(job, 1, {0, 1});
  int value = 0;
  MessageOperation late;
  job.ranks[1]->dead = true;  // not driven: what it is told goes to an engine that is thrown away
  comm.recv(0, &value, sizeof value, 1, 1, late, job.after(kSecondNs / 100));
  REQUIRE(job.drive([&] { return late.done(); }));
  job.drive([] { return false; }, kSecondNs / 100);
  job.ranks[1]->fabric.progress(true);
  job.ranks[1]->renew_engine(clock);
  comm.engine(1).add(comm.group(1));
  job.ranks[1]->dead = false;
  if (destroyed) comm.leave(0);
  MessageOperation waiting;
  comm.recv(1, &value, sizeof value, 0, 1, waiting);
  REQUIRE(job.drive([&] { return waiting.done(); }, 10 * kSecondNs));
  CHECK(waiting.result().code() == TUTTI_ERR_TIMEOUT);
}

TEST_CASE("who never made a communicator that others have is missed there, not waited for") {
  SimJob job(1, options(2, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, {0, 1});
  comm.leave(1);
  const SimClock clock(job.world);
  job.ranks[1]->renew_engine(clock);
  job.ranks[1]->engine->never_made(uint64_t{1} << 16, {0, 1});
  int value = 0;
  MessageOperation waiting;
  comm.recv(0, &value, sizeof value, 1, 1, waiting);
  REQUIRE(job.drive([&] { return waiting.done(); }, 10 * kSecondNs));
  CHECK(waiting.result().code() == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("who ends everything after a failure first sees to it that the others hear of it") {
  SimJob job(1, options(2, TUTTI_TP_CAP_MESSAGES));
  const ActingClock clock(job.world);
  job.ranks[0]->renew_engine(clock);
  SimComm comm(job, 1, {0, 1});
  // Rank 1 takes nothing for a while, until nothing more goes out to it.
  SimRank& rank = *job.ranks[0];
  const Notice of_nobody;
  while (rank.fabric.notify(1, &of_nobody, sizeof of_nobody) == TUTTI_OK) job.world.step();
  rank.engine->abort(comm.group(0));
  uint32_t looks = 0;
  const std::function<void()> meanwhile = [&] {
    if (++looks > 3) job.ranks[1]->fabric.progress(true);
    while (job.world.step()) {
    }
    clock.action = meanwhile;
  };
  clock.action = meanwhile;
  rank.engine->send_last_notices(job.after(10 * kSecondNs));
  clock.action = nullptr;
  CHECK(looks > 3);
  job.leave(0);
  REQUIRE(job.drive([&] { return comm.group(1).failed(); }, kSecondNs));
  CHECK(comm.group(1).failure().code() == TUTTI_ERR_ABORTED);
}

TEST_CASE("news that nobody takes keeps nobody for longer than it may") {
  SimJob job(1, options(2, TUTTI_TP_CAP_MESSAGES));
  const ActingClock clock(job.world);
  job.ranks[0]->renew_engine(clock);
  SimComm comm(job, 1, {0, 1});
  SimRank& rank = *job.ranks[0];
  const Notice of_nobody;
  while (rank.fabric.notify(1, &of_nobody, sizeof of_nobody) == TUTTI_OK) job.world.step();
  rank.engine->abort(comm.group(0));
  const uint64_t limit = job.world.now_ns() + kSecondNs;
  job.world.call_at(limit, [] {});
  const std::function<void()> meanwhile = [&] {
    job.world.step();
    clock.action = meanwhile;
  };
  clock.action = meanwhile;
  rank.engine->send_last_notices({limit});
  clock.action = nullptr;
  CHECK(job.world.now_ns() >= limit);
}
