// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// From open to links, with and without trouble.
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <thread>

#include "gathering.hpp"
#include "ranks.hpp"

using namespace tutti::test;
namespace shm = tutti::shm;

namespace {

const tutti_tp_table_t& tp() { return Rank::tp(); }

shm::Token job_token() {
  shm::Token job{};
  job[0] = 1;
  return job;
}

shm::Address decode(const std::string& text) {
  shm::Address address;
  std::memcpy(&address, text.data(), sizeof address);
  return address;
}

tutti_status_t open_with(const std::string& setting, const std::string& value, std::string& line) {
  HostDouble host;
  host.settings[setting] = value;
  tutti_tp_open_t arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.size = 1;
  arguments.host_identity = "here";
  arguments.bind_addresses = "";
  arguments.host = &host.table;
  tutti_tp_endpoint_t* endpoint = nullptr;
  const tutti_status_t status = tp().open(&arguments, &endpoint);
  if (status == TUTTI_OK) tp().close(endpoint);
  line = host.log.empty() ? "" : host.log[0];
  return status;
}

}  // namespace

TEST_CASE("set-up: the table keeps the ABI") {
  CHECK(tp().struct_size == sizeof(tutti_tp_table_t));
  CHECK(tp().abi_version == TUTTI_TP_ABI_VERSION);
  CHECK(tp().caps == TUTTI_TP_CAP_SLOTS);
  CHECK(std::string(tp().name) == "shm");
}

TEST_CASE("set-up: bad settings are refused with a line that names them") {
  std::string line;
  CHECK(open_with("shm_slots", "3", line) == TUTTI_ERR_CONFIG);
  CHECK(line.find("shm_slots") != std::string::npos);
  CHECK(open_with("shm_slots", "2", line) == TUTTI_ERR_CONFIG);
  CHECK(open_with("shm_slots", "2048", line) == TUTTI_ERR_CONFIG);
  CHECK(open_with("shm_slot_bytes", "0", line) == TUTTI_ERR_CONFIG);
  CHECK(open_with("shm_slot_bytes", "many", line) == TUTTI_ERR_CONFIG);
  CHECK(line.find("many") != std::string::npos);
  CHECK(open_with("shm_slot_bytes", "18446744073709551615", line) == TUTTI_ERR_CONFIG);
  CHECK(open_with("shm_arena_bytes", "-1", line) == TUTTI_ERR_CONFIG);
  CHECK(open_with("shm_slots", "16", line) == TUTTI_OK);
  CHECK(line.empty());
}

TEST_CASE("set-up: addresses are checked") {
  Rank rank(0, {});
  char small[4];
  size_t bytes = 0;
  CHECK(tp().address(rank.endpoint(), small, sizeof small, &bytes) == TUTTI_ERR_ARGUMENT);
  CHECK(tp().set_peer(rank.endpoint(), 1, "short", 5) == TUTTI_ERR_PROTOCOL);
  CHECK(tp().set_peer(rank.endpoint(), 2, rank.address().data(), rank.address().size()) == TUTTI_ERR_RANK);
  // Another machine's, whatever is in it.
  const std::string foreign(rank.address().size(), '\x5a');
  REQUIRE(tp().set_peer(rank.endpoint(), 1, foreign.data(), foreign.size()) == TUTTI_OK);
  CHECK(rank.link(1) == TUTTI_TP_AGAIN);
  REQUIRE(rank.start() == TUTTI_OK);
  CHECK(rank.link(1) == TUTTI_ERR_UNSUPPORTED);
  CHECK(rank.link(2) == TUTTI_ERR_RANK);
  tutti_tp_channel_t* channel = nullptr;
  CHECK(tp().channel_open(rank.endpoint(), 1, 1, TUTTI_TP_SEND, 1, &channel) == TUTTI_ERR_UNSUPPORTED);
  CHECK(tp().channel_open(rank.endpoint(), 1, 1, TUTTI_TP_SEND, 0, &channel) == TUTTI_ERR_UNSUPPORTED);
  CHECK(tp().notify(rank.endpoint(), 1, "x", 1) == TUTTI_ERR_UNSUPPORTED);
}

TEST_CASE("set-up: ranks of one process link whatever order they start in") {
  Options options;
  options.ranks = 4;
  Job job(options, false);
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (uint32_t peer = 0; peer < 4; ++peer) job[rank].introduce(peer, job[peer].address());
  }
  for (const uint32_t early : {3u, 1u, 2u}) CHECK(job[early].start() == TUTTI_TP_AGAIN);
  CHECK(job[0].start() == TUTTI_OK);
  for (const uint32_t rank : {2u, 3u, 1u}) {
    CHECK(job[rank].start() == TUTTI_OK);
    CHECK(job[rank].start() == TUTTI_OK);
    for (uint32_t peer = 0; peer < 4; ++peer) CHECK(job[rank].link(peer) == (peer == rank ? TUTTI_ERR_UNSUPPORTED : TUTTI_OK));
  }
}

TEST_CASE("set-up: nodes are told apart by the whole identity") {
  Options dot_a;
  dot_a.identity = "n1.a";
  Options dot_b;
  dot_b.identity = "n1.b";
  Rank a(0, dot_a);
  Rank b(1, dot_b);
  for (Rank* rank : {&a, &b}) {
    rank->introduce(0, a.address());
    rank->introduce(1, b.address());
    CHECK(rank->start() == TUTTI_OK);
  }
  CHECK(a.link(1) == TUTTI_ERR_UNSUPPORTED);
  CHECK(b.link(0) == TUTTI_ERR_UNSUPPORTED);
}

TEST_CASE("set-up: a rank of this process that closed before is no trap") {
  Options options;
  options.ranks = 3;
  std::string address;
  {
    Rank first(0, options);
    address = first.address();
  }
  Rank second(1, options);
  second.introduce(0, address);
  second.introduce(1, second.address());
  REQUIRE(second.start() == TUTTI_OK);
  CHECK(second.link(0) == TUTTI_ERR_UNSUPPORTED);
  // One that closes while it is waited for.
  auto head = std::make_unique<Rank>(0, options);
  Rank waiting(2, options);
  waiting.introduce(0, head->address());
  CHECK(waiting.start() == TUTTI_TP_AGAIN);
  head.reset();
  CHECK(waiting.start() == TUTTI_OK);
  CHECK(waiting.link(0) == TUTTI_ERR_UNSUPPORTED);
}

TEST_CASE("set-up: threads meet and part while others do") {
  Options options;
  options.ranks = 4;
  for (int round = 0; round < 30; ++round) {
    Job job(options, false);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      for (uint32_t peer = 0; peer < 4; ++peer) job[rank].introduce(peer, job[peer].address());
    }
    std::vector<std::thread> threads;
    std::atomic<int> fine{0};
    for (uint32_t number = 0; number < 4; ++number) {
      threads.emplace_back([&, number] {
        Rank& rank = job[number];
        if (!rank.until([&] { return rank.start() == TUTTI_OK; })) return;
        if (!rank.send(rank.channel((number + 1) % 4, 1, TUTTI_TP_SEND), "x")) return;
        if (rank.receive(rank.channel((number + 3) % 4, 1, TUTTI_TP_RECV), true) == "x") ++fine;
        rank.close();
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(fine == 4);
  }
}

TEST_CASE("set-up: a rank that never comes is left out on both sides, the others link") {
  Options options;
  options.ranks = 4;
  options.settings["connect_timeout"] = "300000000";
  const auto results = run_processes(
      options,
      [&](Rank& rank, Board& board) -> std::string {
        if (rank.rank() == 2) {
          // Introduces itself, and starts only when the others have given up on it.
          publish(rank, board);
          if (!board.wait(0, 3)) return "the others do not start";
          for (uint32_t peer = 0; peer < 4; ++peer) {
            rank.introduce(peer, std::string(board.addresses[peer], board.address_bytes[peer]));
          }
          if (!rank.until([&] { return rank.start() == TUTTI_OK; })) return "start does not end";
          for (uint32_t peer = 0; peer < 4; ++peer) {
            if (rank.link(peer) != TUTTI_ERR_UNSUPPORTED) return "a link to " + std::to_string(peer);
          }
          return "";
        }
        if (const std::string failure = meet(rank, board, options); !failure.empty()) return failure;
        board.flags[0].fetch_add(1);
        if (rank.link(2) != TUTTI_ERR_UNSUPPORTED) return "a link to the absent";
        const uint32_t peer = rank.rank() == 0 ? 1 : rank.rank() == 1 ? 3 : 0;
        const uint32_t from = rank.rank() == 0 ? 3 : rank.rank() == 1 ? 0 : 1;
        if (!rank.send(rank.channel(peer, 1, TUTTI_TP_SEND), "x")) return "send";
        return rank.receive(rank.channel(from, 1, TUTTI_TP_RECV)) == "x" ? "" : "receive";
      },
      false);
  CHECK(results == std::vector<std::string>(4));
}

TEST_CASE("set-up: one that died is not waited for; without its leader nobody links") {
  Options options;
  options.ranks = 3;
  const uint32_t dead = GENERATE(0u, 2u);
  const auto results = run_processes(
      options,
      [&](Rank& rank, Board& board) -> std::string {
        if (rank.rank() == dead) {
          publish(rank, board);
          ::_exit(0);
        }
        if (const std::string failure = meet(rank, board, options); !failure.empty()) return failure;
        if (rank.link(dead) != TUTTI_ERR_UNSUPPORTED) return "a link to the dead";
        const uint32_t other = 3 - dead - rank.rank();
        const tutti_status_t expected = dead == 0 ? TUTTI_ERR_UNSUPPORTED : TUTTI_OK;
        return rank.link(other) == expected ? "" : "link: " + std::to_string(rank.link(other));
      },
      false);
  CHECK(results == std::vector<std::string>(3));
}

TEST_CASE("set-up: who does not know the secret takes no part") {
  Options options;
  options.ranks = 3;
  options.settings["connect_timeout"] = "300000000";
  const auto results = run_processes(
      options,
      [&](Rank& rank, Board& board) -> std::string {
        // The node key needs the secret too: this one has got hold of that, but not of the secret.
        if (rank.rank() == 2) rank.host().secret = "a guess";
        if (const std::string failure = meet(rank, board, options); !failure.empty()) return failure;
        if (rank.rank() == 2) return rank.link(0) == TUTTI_ERR_UNSUPPORTED ? "" : "linked";
        if (rank.link(2) != TUTTI_ERR_UNSUPPORTED) return "linked";
        return rank.link(1 - rank.rank()) == TUTTI_OK ? "" : "the others do not link";
      },
      false);
  CHECK(results == std::vector<std::string>(3));
}

TEST_CASE("set-up: strangers on the socket disturb nobody") {
  Options options;
  const auto results = run_processes(
      options,
      [&](Rank& rank, Board& board) -> std::string {
        std::vector<shm::Fd> strangers;
        const shm::Token leader = decode(rank.address()).incarnation;
        if (rank.rank() == 0) {
          // Before, and in the queue in front of, the real guest.
          for (int i = 0; i < 80; ++i) {
            shm::Fd socket;
            if (!shm::connect_to(job_token(), leader, socket).ok()) break;
            shm::Wire wire{std::move(socket)};
            const std::string garbage = pattern(static_cast<size_t>(1 + i * 7), static_cast<uint32_t>(i));
            shm::Hello hello;
            if (i % 3 == 0) wire.post(garbage.data(), garbage.size());
            if (i % 3 == 1) wire.post(&hello, sizeof hello);
            if (i % 3 == 1) wire.post(garbage.data(), garbage.size(), {0, 1, 2});
            wire.flush();
            strangers.emplace_back(::dup(wire.fd()));
          }
          if (strangers.size() < 70) return "no strangers";
        }
        if (const std::string failure = meet(rank, board, options); !failure.empty()) return failure;
        if (rank.link(1 - rank.rank()) != TUTTI_OK) return "no link";
        if (rank.rank() == 0 && !rank.host().logged("does not belong to this job")) return "not logged";
        return "";
      },
      false);
  CHECK(results == std::vector<std::string>(2));
}

TEST_CASE("set-up: without memory for an arena nobody links, and nobody hangs") {
  Options options;
  options.ranks = 2;
  options.settings["shm_arena_bytes"] = "1000";
  const auto results = run_processes(options, [](Rank& rank, Board&) -> std::string {
    if (rank.link(1 - rank.rank()) != TUTTI_ERR_UNSUPPORTED) return "linked";
    return rank.host().log.empty() ? "nothing was said" : "";
  });
  CHECK(results == std::vector<std::string>(2));
}

TEST_CASE("set-up: processes keep few descriptors and give all back") {
  Options options;
  options.ranks = 4;
  const auto results = run_processes(
      options,
      [&](Rank& rank, Board& board) -> std::string {
        const size_t before = open_descriptors();  // epoll, desk, hall and listener are there already
        if (const std::string failure = meet(rank, board, options); !failure.empty()) return failure;
        // An eventfd for each rank, a pidfd for each other process, the arena.
        const size_t now = open_descriptors();
        if (now > before + 4 + 3 + 1) return std::to_string(now - before) + " descriptors more";
        rank.close();
        return open_descriptors() + 4 == before ? "" : "descriptors were left";
      },
      false);
  CHECK(results == std::vector<std::string>(4));
}

TEST_CASE("set-up: nothing appears in /dev/shm") {
  const auto count = [] {
    DIR* directory = ::opendir("/dev/shm");
    size_t entries = 0;
    while (directory != nullptr && ::readdir(directory) != nullptr) ++entries;
    if (directory != nullptr) ::closedir(directory);
    return entries;
  };
  const size_t before = count();
  const auto results = run_processes({}, [&](Rank& rank, Board&) -> std::string {
    rank.channel(1 - rank.rank(), 1, TUTTI_TP_SEND);
    return count() == before ? "" : "something did";
  });
  CHECK(results == std::vector<std::string>(2));
}

TEST_CASE("set-up: a socket that cannot be reached makes no link, on neither side, and nobody hangs") {
  Options options;
  options.settings["connect_timeout"] = "300000000";
  const auto results = run_processes(
      options,
      [&](Rank& rank, Board& board) -> std::string {
        // What a rank in another network namespace would see, if its node key did not tell already.
        if (rank.rank() == 1) {
          while (board.arrived.load() < 1) {
          }
          shm::Address unseen = decode(std::string(board.addresses[0], board.address_bytes[0]));
          unseen.incarnation[0] ^= 1;
          std::memcpy(board.addresses[0], &unseen, sizeof unseen);
        }
        if (const std::string failure = meet(rank, board, options); !failure.empty()) return failure;
        return rank.link(1 - rank.rank()) == TUTTI_ERR_UNSUPPORTED ? "" : "linked";
      },
      false);
  CHECK(results == std::vector<std::string>(2));
}

TEST_CASE("set-up: another namespace or user is another node") {
  enum Change { kNetwork, kUser, kUserLater };
  const int change = GENERATE(kNetwork, kUser, kUserLater);
  Options options;
  options.settings["connect_timeout"] = "300000000";
  const auto results = run_processes(
      options,
      [&](Rank& first, Board& board) -> std::string {
        if (first.rank() == 1) {
          const bool changed = change == kNetwork ? ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 : ::seteuid(65534) == 0;
          board.flags[0].store(changed ? 2 : 1);
        }
        // Opened anew, so that its address tells of the change; kUserLater: only the kernel does.
        Rank again(first.rank(), options);
        Rank& rank = change == kUserLater ? first : again;
        if (const std::string failure = meet(rank, board, options); !failure.empty()) return failure;
        // Where the change was not permitted, the two are still one node.
        const tutti_status_t expected = board.flags[0].load() == 2 ? TUTTI_ERR_UNSUPPORTED : TUTTI_OK;
        if (rank.link(1 - rank.rank()) != expected) return "link: " + std::to_string(rank.link(1 - rank.rank()));
        if (expected == TUTTI_ERR_UNSUPPORTED && change == kUserLater && rank.rank() == 0 &&
            !rank.host().logged("another user")) {
          return "the refusal was not logged";
        }
        return "";
      },
      false);
  CHECK(results == std::vector<std::string>(2));
}

TEST_CASE("set-up: death at any step of it makes nobody hang, and is told to whom it was linked") {
  Options options;
  options.ranks = 4;
  options.settings["connect_timeout"] = "2000000000";
  const uint32_t victim = GENERATE(0u, 2u);
  for (uint32_t steps = 0; steps < 8; ++steps) {
    const auto results = run_processes(
        options,
        [&](Rank& rank, Board& board) -> std::string {
          if (const std::string failure = exchange(rank, board, options); !failure.empty()) return failure;
          if (rank.rank() == victim) {
            for (uint32_t step = 0; step < steps; ++step) {
              rank.start();
              ::usleep(200);
            }
            ::raise(SIGKILL);
          }
          if (!rank.until([&] { return rank.start() == TUTTI_OK; })) return "start does not end";
          if (rank.link(victim) == TUTTI_OK && !rank.sleep_until([&] { return !rank.host().gone.empty(); })) return "not told";
          for (uint32_t peer = 0; peer < 4; ++peer) {
            if (rank.link(peer) == TUTTI_OK) board.flags[rank.rank()].fetch_or(1u << peer);
          }
          board.flags[8].fetch_add(1);
          if (!board.wait(8, 3)) return "the others hang";
          for (uint32_t peer = 0; peer < 4; ++peer) {
            if (peer == victim || peer == rank.rank()) continue;
            const bool mine = (board.flags[rank.rank()].load() >> peer & 1) != 0;
            const bool theirs = (board.flags[peer].load() >> rank.rank() & 1) != 0;
            // Without the leader a verdict can reach one and not the other; then the link must be reported as gone.
            if (mine && !theirs && !rank.sleep_until([&] { return rank.host().gone.size() > 1; })) return "one-sided link";
            if (mine != theirs && victim != 0) return "the ends do not agree";
          }
          return "";
        },
        false);
    for (uint32_t rank = 0; rank < 4; ++rank) CHECK(results[rank] == (rank == victim ? "signal 9" : ""));
  }
}
