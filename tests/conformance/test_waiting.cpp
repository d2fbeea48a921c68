// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// arm, poll, disarm; and threads: one at a time on an endpoint, any number on different ones.

#include <catch2/catch.hpp>

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

bool readable(Job& job, uint32_t rank, int timeout_ms) {
  pollfd one = {tp().fd(job[rank]), POLLIN, 0};
  return ::poll(&one, 1, timeout_ms) == 1;
}

/// Runs the endpoint until it has nothing more to do, armed. False: it never comes to rest.
bool settle_armed(Job& job, uint32_t rank) {
  job.host(rank).in_call = true;
  for (int i = 0; i < 10'000; ++i) {
    tp().arm(job[rank]);
    const bool quiet = tp().progress(job[rank]) == 0;
    if (quiet && !readable(job, rank, 0)) {
      job.host(rank).in_call = false;
      return true;
    }
    tp().disarm(job[rank]);
    tp().progress(job[rank]);
  }
  job.host(rank).in_call = false;
  return false;
}

/// What has to wake a sleeping rank: each returns once it was done by rank 0.
struct Event {
  const char* name;
  std::function<void(Job&, Lane&)> cause;
};

/// Repeats `attempt` of the rank until it is not AGAIN: a few times at once, then asleep. Returns what went wrong.
std::string sleep_until(Job& job, uint32_t rank, uint32_t spins, const std::function<tutti_status_t()>& attempt) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  tutti_status_t status = attempt();
  for (; spins > 0 && status == TUTTI_TP_AGAIN; --spins) {
    job.progress(rank);
    status = attempt();
  }
  while (status == TUTTI_TP_AGAIN) {
    const auto finished = [&] { return (status = attempt()) != TUTTI_TP_AGAIN; };
    const bool woken = job.sleep(rank, finished, 5000);
    if (status == TUTTI_TP_AGAIN) status = attempt();
    if (!woken && status != TUTTI_TP_AGAIN) return "a wake-up was lost";
    if (!woken || std::chrono::steady_clock::now() > end) return "nothing came";
  }
  return status == TUTTI_OK ? "" : "failed with " + std::to_string(status);
}

/// One rank of a ping-pong in its own thread. The number of looks before it sleeps changes, so that messages meet the other
/// side in every state of falling asleep.
std::string play(Job& job, uint32_t rank, Lane& out, Lane& in, uint32_t rounds) {
  for (uint32_t round = 0; round < rounds; ++round) {
    const Bytes data = pattern(8, round);
    for (const bool sends : {rank == 0, rank != 0}) {
      Bytes got = data;
      const uint32_t spins = round * 37 % 23;
      const std::string wrong =
          sleep_until(job, rank, spins, [&] { return sends ? out.try_send(data) : in.try_receive(&got); });
      if (!wrong.empty()) return (sends ? "send " : "receive ") + std::to_string(round) + ": " + wrong;
      if (got != data) return "wrong message in round " + std::to_string(round);
    }
  }
  return {};
}

}  // namespace

TEST_CASE("an armed descriptor sleeps while nothing happens, and wakes for whatever does", "[waiting]") {
  if ((tp().caps & TUTTI_TP_CAP_MUST_POLL) != 0) {
    Job job;
    CHECK(tp().fd(job[0]) == -1);
    return;
  }
  const std::vector<Event> events = {
      {"a message", [](Job& job, Lane& lane) { REQUIRE(job.until([&] { return lane.try_send(pattern(8, 1)) == TUTTI_OK; })); }},
      {"a notice",
       [](Job& job, Lane&) {
         job.host(0).in_call = true;
         REQUIRE(job.until([&] { return tp().notify(job[0], 1, "n", 1) == TUTTI_OK; }));
         job.host(0).in_call = false;
       }},
      {"an orderly end", [](Job& job, Lane&) { job.close(0); }},
      {"a cut",
       [](Job& job, Lane&) {
         job.host(0).in_call = true;
         tp().cut(job[0], 1);
         job.host(0).in_call = false;
       }},
  };
  for (const Carrier carrier : Job().carriers()) {
    for (const Event& event : events) {
      INFO(name(carrier) << ": " << event.name);
      Job job;
      Lane lane(job, 0, 1, 1, carrier);
      REQUIRE(lane.deliver(pattern(8, 0)));
      job.progress_times(50);
      Bytes got;
      REQUIRE(lane.try_receive(&got) == TUTTI_TP_AGAIN);
      REQUIRE(settle_armed(job, 1));
      CHECK_FALSE(readable(job, 1, 20));
      job.leave_alone(1);
      event.cause(job, lane);
      REQUIRE(job.until([&] { return readable(job, 1, 0); }, 5));
      job.host(1).in_call = true;
      tp().disarm(job[1]);
      job.host(1).in_call = false;
      tutti_status_t status = TUTTI_TP_AGAIN;
      REQUIRE(job.until([&] {
        job.progress(1);
        status = lane.try_receive(&got);
        return status != TUTTI_TP_AGAIN || !job.host(1).notices.empty() || !job.host(1).gone.empty();
      }, 5));
    }
  }
}

TEST_CASE("progress clears the descriptor, armed or not", "[waiting]") {
  if ((tp().caps & TUTTI_TP_CAP_MUST_POLL) != 0) {
    Job job;
    CHECK(tp().fd(job[0]) == -1);
    return;
  }
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job;
    Lane lane(job, 0, 1, 1, carrier);
    REQUIRE(lane.deliver(pattern(8, 0)));
    job.progress_times(50);
    REQUIRE(settle_armed(job, 1));
    job.leave_alone(1);
    for (int round = 0; round < 5; ++round) {
      Bytes got;
      REQUIRE(lane.try_receive(&got) == TUTTI_TP_AGAIN);
      REQUIRE(lane.try_send(pattern(8, 1)) == TUTTI_OK);
      REQUIRE(job.until([&] { return readable(job, 1, 0); }, 5));
      // The host never calls progress but while it is armed.
      uint32_t turns = 0;
      tutti_status_t received = TUTTI_TP_AGAIN;
      do {
        job.progress(1);
        if (received == TUTTI_TP_AGAIN) received = lane.try_receive(&got);
        job.host(1).in_call = true;
        tp().disarm(job[1]);
        tp().arm(job[1]);
        job.host(1).in_call = false;
        job.progress(1);
      } while (readable(job, 1, 0) && ++turns < 20);
      CHECK(turns < 20);
      CHECK(received == TUTTI_OK);
    }
  }
}

TEST_CASE("room that becomes free wakes a sender that was held back", "[waiting]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job(Job::Options{2, {{"tcp_window_bytes", "65536"}}, true});
    Lane lane(job, 0, 1, 1, carrier);
    const Bytes data = pattern(static_cast<size_t>(std::min<uint64_t>(lane.largest(), 60'000)), 1);
    REQUIRE(lane.deliver(data));
    uint32_t queued = 0;
    job.until([&] {
      while (queued < 300 && lane.try_send(data) == TUTTI_OK) ++queued;
      return queued == 300;
    }, 0.2);
    REQUIRE(queued > 0);
    const size_t pending = lane.pending();
    const bool held_back = carrier == Carrier::slots || pending > 0;
    REQUIRE(held_back);
    if (tp().fd(job[0]) >= 0) REQUIRE(settle_armed(job, 0));
    job.leave_alone(0);
    Bytes got;
    for (uint32_t i = 0; i < queued; ++i) {
      if (tp().fd(job[0]) >= 0 && readable(job, 0, 0)) break;
      // What the sender must do itself may be needed for more to come.
      REQUIRE(job.until([&] { return lane.try_receive(&got) == TUTTI_OK || (tp().fd(job[0]) >= 0 && readable(job, 0, 0)); }, 5));
    }
    if (tp().fd(job[0]) >= 0) CHECK(readable(job, 0, 5000));
    job.host(0).in_call = true;
    tp().disarm(job[0]);
    job.host(0).in_call = false;
    REQUIRE(job.until([&] {
      job.progress(0);
      lane.try_receive(&got);
      return carrier == Carrier::slots ? lane.try_send(data) == TUTTI_OK : lane.pending() < pending;
    }));
  }
}

TEST_CASE("no wake-up is lost between two threads that fall asleep all the time", "[waiting][threads]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job;
    Lane there(job, 0, 1, 1, carrier);
    Lane back(job, 1, 0, 1, carrier);
    REQUIRE(job.connect(0, 1));
    constexpr uint32_t kRounds = 2000;
    std::string results[2];
    const auto rank_thread = [&](uint32_t rank) {
      results[rank] = play(job, rank, rank == 0 ? there : back, rank == 0 ? back : there, kRounds);
    };
    std::thread other(rank_thread, 1);
    rank_thread(0);
    other.join();
    CHECK(results[0] == "");
    CHECK(results[1] == "");
  }
}

TEST_CASE("an endpoint is driven by different threads in turn", "[waiting][threads]") {
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job;
    Lane there(job, 0, 1, 1, carrier);
    Lane back(job, 1, 0, 1, carrier);
    bool right = true;
    for (uint32_t turn = 0; turn < 40; ++turn) {
      std::thread thread([&] {
        right = right && there.deliver(pattern(300, turn)) && back.deliver(pattern(200, turn));
      });
      thread.join();
    }
    CHECK(right);
  }
}

TEST_CASE("each rank in a thread of its own, all talking to all", "[waiting][threads]") {
  constexpr uint32_t kRanks = 4;
  constexpr uint32_t kMessages = 200;
  for (const Carrier carrier : Job().carriers()) {
    INFO(name(carrier));
    Job job(kRanks);
    std::vector<std::vector<std::unique_ptr<Lane>>> lanes(kRanks);
    for (uint32_t a = 0; a < kRanks; ++a) {
      for (uint32_t b = 0; b < kRanks; ++b) {
        lanes[a].push_back(a == b ? nullptr : std::make_unique<Lane>(job, a, b, 1, carrier));
      }
    }
    std::atomic<uint32_t> wrong{0};
    std::atomic<uint32_t> finished{0};
    const auto rank_thread = [&](uint32_t rank) {
      uint32_t sent[kRanks] = {};
      uint32_t received[kRanks] = {};
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      uint32_t left = 2 * (kRanks - 1) * kMessages;
      while (left > 0) {
        for (uint32_t peer = 0; peer < kRanks; ++peer) {
          if (peer == rank) continue;
          if (sent[peer] < kMessages && lanes[rank][peer]->try_send(pattern(100 + sent[peer], rank)) == TUTTI_OK) {
            ++sent[peer];
            --left;
          }
          Bytes got;
          if (received[peer] < kMessages && lanes[peer][rank]->try_receive(&got) == TUTTI_OK) {
            if (got != pattern(100 + received[peer], peer)) ++wrong;
            ++received[peer];
            --left;
          }
        }
        if (job.world() != nullptr) job.world()->step();
        job.progress(rank);
        if (std::chrono::steady_clock::now() > end) return;
      }
      ++finished;
      // The others may still need this rank's progress.
      while (finished < kRanks && std::chrono::steady_clock::now() < end) {
        if (job.world() != nullptr) job.world()->step();
        job.progress(rank);
        std::this_thread::yield();
      }
    };
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < kRanks; ++rank) threads.emplace_back(rank_thread, rank);
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(finished == kRanks);
  }
}

}  // namespace tutti::conformance
