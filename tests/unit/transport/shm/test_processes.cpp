// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes.
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "ranks.hpp"

using namespace tutti::test;

namespace {

std::vector<std::string> all_fine(uint32_t ranks) { return std::vector<std::string>(ranks); }

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::string wrong(const char* what, const std::string& got) { return std::string(what) + ": " + got.substr(0, 100); }

}  // namespace

TEST_CASE("processes: every size from nothing to a full slot arrives as sent") {
  Options options;
  options.settings["shm_slot_bytes"] = "2048";
  const auto results = run_processes(options, [](Rank& rank, Board&) -> std::string {
    if (rank.link(1 - rank.rank()) != TUTTI_OK) return "no link";
    auto* out = rank.channel(1 - rank.rank(), 7, TUTTI_TP_SEND);
    auto* in = rank.channel(1 - rank.rank(), 7, TUTTI_TP_RECV);
    for (uint32_t bytes = 0; bytes <= 2048; ++bytes) {
      if (!rank.send(out, pattern(bytes, bytes + rank.rank()))) return "send";
      if (const std::string got = rank.receive(in); got != pattern(bytes, bytes + 1 - rank.rank())) return wrong("content", got);
    }
    Rank::tp().channel_close(out);
    Rank::tp().channel_close(in);
    return "";
  });
  CHECK(results == all_fine(2));
}

TEST_CASE("processes: four ranks, all pairs, with sleepers; many senders to one") {
  Options options;
  options.ranks = 4;
  const auto results = run_processes(options, [](Rank& rank, Board&) -> std::string {
    if (rank.rank() != 0) {
      auto* out = rank.channel(0, 1, TUTTI_TP_SEND);
      for (uint32_t i = 0; i < 3000; ++i) {
        if (!rank.send(out, pattern(1024, i * 4 + rank.rank()), true)) return "send";
      }
      auto* in = rank.channel(0, 2, TUTTI_TP_RECV);
      return rank.receive(in, true) == "done" ? "" : "no answer";
    }
    tutti_tp_channel_t* in[4] = {};
    for (uint32_t peer = 1; peer < 4; ++peer) in[peer] = rank.channel(peer, 1, TUTTI_TP_RECV);
    for (uint32_t i = 0; i < 3000; ++i) {
      for (uint32_t peer = 1; peer < 4; ++peer) {
        if (const std::string got = rank.receive(in[peer], true); got != pattern(1024, i * 4 + peer))
          return wrong("content", got);
      }
    }
    for (uint32_t peer = 1; peer < 4; ++peer) rank.send(rank.channel(peer, 2, TUTTI_TP_SEND), "done");
    return "";
  });
  CHECK(results == all_fine(4));
}

TEST_CASE("processes: no wake-up is lost when both sides sleep at once") {
  const auto results = run_processes({}, [](Rank& rank, Board&) -> std::string {
    auto* out = rank.channel(1 - rank.rank(), 1, TUTTI_TP_SEND);
    auto* in = rank.channel(1 - rank.rank(), 1, TUTTI_TP_RECV);
    for (uint64_t i = 0; i < 20000; ++i) {
      const std::string mine(reinterpret_cast<const char*>(&i), sizeof i);
      if (rank.rank() == 0 && !rank.send(out, mine, true)) return "send";
      if (rank.receive(in, true) != mine) return "receive " + std::to_string(i);
      if (rank.rank() == 1 && !rank.send(out, mine, true)) return "send";
    }
    return "";
  });
  CHECK(results == all_fine(2));
}

TEST_CASE("processes: a sender that waits for a slot is woken") {
  Options options;
  options.settings["shm_slots"] = "4";
  const auto results = run_processes(options, [](Rank& rank, Board&) -> std::string {
    auto* channel = rank.channel(1 - rank.rank(), 1, rank.rank() == 0 ? TUTTI_TP_SEND : TUTTI_TP_RECV);
    for (uint32_t i = 0; i < 20000; ++i) {
      const std::string message = pattern(i % 100, i);
      if (rank.rank() == 0 && !rank.send(channel, message, true)) return "send";
      if (rank.rank() == 1 && rank.receive(channel, true) != message) return "receive " + std::to_string(i);
    }
    return "";
  });
  CHECK(results == all_fine(2));
}

TEST_CASE("processes: kill -9 is seen at once by a peer that sleeps") {
  Options options;
  options.ranks = 3;
  // Each in turn, the leader of the set-up too.
  const uint32_t victim = GENERATE(0u, 1u, 2u);
  const auto results = run_processes(options, [victim](Rank& rank, Board& board) -> std::string {
    if (rank.rank() == victim) {
      if (!board.wait(0, 2)) return "the others do not come";
      board.flags[1].store(now_ns());
      ::raise(SIGKILL);
    }
    auto* in = rank.channel(victim, 1, TUTTI_TP_RECV);
    bool announced = false;
    const bool seen = rank.sleep_until([&] {
      if (!announced) board.flags[0].fetch_add(1);
      announced = true;
      return !rank.host().gone.empty();
    });
    const uint64_t took_ns = now_ns() - board.flags[1].load();
    if (!seen) return "not seen";
    if (rank.host().gone.size() != 1 || rank.host().gone[0].peer != victim) return "wrong peer";
    if (rank.host().gone[0].cause != TUTTI_TP_GONE_FAILED) return "wrong cause";
    if (took_ns > 100'000'000) return "after " + std::to_string(took_ns / 1000) + " us";
    if (const std::string got = rank.receive(in); got != "error -301") return wrong("receive", got);
    const uint32_t other = 3 - victim - rank.rank();
    // The survivors' link is unharmed.
    if (!rank.send(rank.channel(other, 2, TUTTI_TP_SEND), "still here", true)) return "send";
    return rank.receive(rank.channel(other, 2, TUTTI_TP_RECV), true) == "still here" ? "" : "the survivors lost their link";
  });
  for (uint32_t rank = 0; rank < 3; ++rank) CHECK(results[rank] == (rank == victim ? "signal 9" : ""));
}

TEST_CASE("processes: a peer that only polls sees a death too") {
  const auto results = run_processes({}, [](Rank& rank, Board& board) -> std::string {
    if (rank.rank() == 1) {
      board.flags[0].store(now_ns());
      ::raise(SIGKILL);
    }
    if (!rank.until([&] { return !rank.host().gone.empty(); })) return "not seen";
    return rank.host().gone[0].cause == TUTTI_TP_GONE_FAILED ? "" : "wrong cause";
  });
  CHECK(results == std::vector<std::string>{"", "signal 9"});
}

TEST_CASE("processes: what was sent before leaving can be received after the process is gone") {
  const auto results = run_processes({}, [](Rank& rank, Board& board) -> std::string {
    if (rank.rank() == 1) {
      auto* out = rank.channel(0, 1, TUTTI_TP_SEND);
      for (uint32_t i = 0; i < 5; ++i) rank.send(out, pattern(i * 1000, i));
      const char notice[] = "bye";
      if (Rank::tp().notify(rank.endpoint(), 0, notice, 3) != TUTTI_OK) return "notify";
      rank.close();
      return "";
    }
    while (::kill(board.pids[1].load(), 0) == 0 && rank.host().gone.empty())
      rank.sleep_until([&] { return !rank.host().gone.empty(); });
    if (rank.host().gone.size() != 1 || rank.host().gone[0].cause != TUTTI_TP_GONE_LEFT) return "did not leave in order";
    if (rank.host().notices.size() != 1 || rank.host().notices[0].second != "bye") return "no notice";
    auto* in = rank.channel(1, 1, TUTTI_TP_RECV);
    for (uint32_t i = 0; i < 5; ++i) {
      if (const std::string got = rank.receive(in); got != pattern(i * 1000, i)) return wrong("content", got);
    }
    return rank.receive(in) == "error -301" ? "" : "more than was sent";
  });
  CHECK(results == all_fine(2));
}

TEST_CASE("processes: eight ranks start, meet and end together, again and again, without a word") {
  Options options;
  options.ranks = 8;
  for (int round = 0; round < 10; ++round) {
    const auto results = run_processes(options, [](Rank& rank, Board&) -> std::string {
      for (uint32_t peer = 0; peer < 8; ++peer) {
        if (peer != rank.rank() && rank.link(peer) != TUTTI_OK) return "no link to " + std::to_string(peer);
      }
      const uint32_t next = (rank.rank() + 1) % 8;
      const uint32_t previous = (rank.rank() + 7) % 8;
      if (!rank.send(rank.channel(next, 1, TUTTI_TP_SEND), "token", true)) return "send";
      if (rank.receive(rank.channel(previous, 1, TUTTI_TP_RECV), true) != "token") return "receive";
      rank.close();
      return rank.host().log.empty() ? "" : rank.host().log[0];
    });
    REQUIRE(results == all_fine(8));
  }
}

TEST_CASE("processes: two of them with three ranks each; one is killed") {
  Options options;
  options.ranks = 6;
  Options processes;
  const auto results = run_processes(
      processes,
      [&](Rank& number, Board& board) -> std::string {
        std::vector<std::unique_ptr<Rank>> mine;
        // Interleaved, and the first rank of a process does not start first.
        for (uint32_t i = 0; i < 3; ++i) mine.push_back(std::make_unique<Rank>(4 + number.rank() - 2 * i, options));
        for (auto& rank : mine) publish(*rank, board);
        for (auto& rank : mine) {
          if (const std::string failure = exchange(*rank, board, options); !failure.empty()) return failure;
        }
        bool started = false;
        const bool all = number.until([&] {
          started = true;
          for (auto& rank : mine) started = rank->start() == TUTTI_OK && started;
          return started;
        });
        if (!all) return "start does not end";
        for (auto& rank : mine) {
          for (uint32_t peer = 0; peer < 6; ++peer) {
            if (peer != rank->rank() && !rank->send(rank->channel(peer, 1, TUTTI_TP_SEND), "x", true)) return "send";
          }
        }
        for (auto& rank : mine) {
          for (uint32_t peer = 0; peer < 6; ++peer) {
            if (peer != rank->rank() && rank->receive(rank->channel(peer, 1, TUTTI_TP_RECV), true) != "x") return "receive";
          }
        }
        board.flags[0].fetch_add(1);
        if (!board.wait(0, 2)) return "the others hang";
        if (number.rank() == 0) ::raise(SIGKILL);
        for (auto& rank : mine) {
          if (!rank->sleep_until([&] { return rank->host().gone.size() == 3; })) return "not told";
          for (const HostDouble::Gone& gone : rank->host().gone) {
            if (gone.peer % 2 != 0 || gone.cause != TUTTI_TP_GONE_FAILED) return "wrong peer";
          }
        }
        if (!mine[0]->send(mine[0]->channel(1, 2, TUTTI_TP_SEND), "here")) return "send";
        return mine[2]->receive(mine[2]->channel(5, 2, TUTTI_TP_RECV), true) == "here" ? "" : "the rest lost their link";
      },
      false);
  CHECK(results == std::vector<std::string>{"signal 9", ""});
}
