// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// Ranks in processes of their own. Not for transports that live within one process: run with [processes].

#include <catch2/catch.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <cstdlib>

#include "process_rank.hpp"

namespace tutti::conformance {
namespace {

/// Forked ranks, whose addresses this process hands round. Their bodies return "" or what went wrong.
class Processes {
 public:
  Processes(uint32_t ranks, const std::function<std::string(ProcessRank&)>& body) {
    uint8_t job_id[16];
    fill_job_id(job_id);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      int pair[2];
      REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        for (const int other : sockets_) ::close(other);
        ::close(pair[0]);
        ::alarm(60);
        ::_exit(ProcessRank::run(rank, ranks, job_id, pair[1], body));
      }
      ::close(pair[1]);
      sockets_.push_back(pair[0]);
      children_.push_back(child);
    }
    std::vector<std::string> addresses;
    for (const int socket : sockets_) addresses.push_back(hear(socket));
    for (const int socket : sockets_) {
      for (const std::string& address : addresses) say(socket, address);
    }
  }
  ~Processes() {
    for (uint32_t rank = 0; rank < children_.size(); ++rank) {
      if (children_[rank] > 0) kill(rank);
      ::close(sockets_[rank]);
    }
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void kill(uint32_t rank) {
    ::kill(children_[rank], SIGKILL);
    ::waitpid(children_[rank], nullptr, 0);
    children_[rank] = -1;
  }
  /// A word of the rank; "" when it ended or takes too long.
  std::string hear(uint32_t rank, int) { return hear(sockets_[rank]); }
  void tell(uint32_t rank, const std::string& word) { say(sockets_[rank], word); }
  /// What the rank found wrong.
  std::string end(uint32_t rank) {
    std::string verdict = hear(sockets_[rank]);
    int status = 0;
    ::waitpid(children_[rank], &status, 0);
    children_[rank] = -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) verdict += " (status " + std::to_string(status) + ")";
    return verdict;
  }

 private:
  static std::string hear(int socket) {
    char buffer[2048];
    pollfd one = {socket, POLLIN, 0};
    if (::poll(&one, 1, 60'000) != 1) return "silence";
    const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
    return got <= 0 ? "no word" : std::string(buffer, static_cast<size_t>(got));
  }
  static void say(int socket, const std::string& word) { ::send(socket, word.data(), word.size(), MSG_NOSIGNAL); }

  std::vector<int> sockets_;
  std::vector<pid_t> children_;
};

constexpr char kGood[] = "good";

}  // namespace

TEST_CASE("ranks in different processes exchange messages, notices and goodbyes", "[processes]") {
  const auto body = [](ProcessRank& rank) -> std::string {
    for (uint32_t peer = 0; peer < rank.size; ++peer) {
      if (peer == rank.rank) continue;
      const std::string wrong = rank.exchange_with(peer, 100);
      if (!wrong.empty()) return wrong;
    }
    if (!rank.until([&] { return rank.notify((rank.rank + 1) % rank.size, "round") == TUTTI_OK; })) return "cannot notify";
    if (!rank.until([&] { return !rank.host.notices.empty(); })) return "no notice";
    rank.say("ready");
    rank.hear();  // all are
    return kGood;
  };
  Processes processes(4, body);
  for (uint32_t rank = 0; rank < 4; ++rank) CHECK(processes.hear(rank, 0) == "ready");
  for (uint32_t rank = 0; rank < 4; ++rank) processes.tell(rank, "go");
  for (uint32_t rank = 0; rank < 4; ++rank) CHECK(processes.end(rank) == kGood);
}

TEST_CASE("a process that is killed is reported by all others within a second, asleep as they are", "[processes]") {
  const auto body = [](ProcessRank& rank) -> std::string {
    for (uint32_t peer = 0; peer < rank.size; ++peer) {
      if (peer == rank.rank) continue;
      const std::string wrong = rank.exchange_with(peer, 3);
      if (!wrong.empty()) return wrong;
    }
    rank.say("ready");
    if (!rank.sleep_until([&] { return !rank.host.gone.empty(); }, 20)) return "death was not noticed";
    if (rank.host.gone[0].peer != 2) return "the wrong rank: " + rank.host.gone[0].text;
    if (rank.host.gone[0].cause != TUTTI_TP_GONE_FAILED) return "the wrong cause: " + rank.host.gone[0].text;
    rank.say("noticed");
    rank.hear();
    // The others are still there.
    for (uint32_t peer = 0; peer < rank.size; ++peer) {
      if (peer == rank.rank || peer == 2) continue;
      const std::string wrong = rank.exchange_with(peer, 20);
      if (!wrong.empty()) return "afterwards: " + wrong;
    }
    if (rank.host.gone.size() != 1) return "told more than once";
    rank.say("done");
    rank.hear();
    return kGood;
  };
  Processes processes(4, body);
  for (uint32_t rank = 0; rank < 4; ++rank) REQUIRE(processes.hear(rank, 0) == "ready");
  const auto killed = std::chrono::steady_clock::now();
  processes.kill(2);
  const uint32_t survivors[] = {0, 1, 3};
  for (const uint32_t rank : survivors) CHECK(processes.hear(rank, 0) == "noticed");
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(1));
  for (const uint32_t rank : survivors) processes.tell(rank, "go on");
  for (const uint32_t rank : survivors) CHECK(processes.hear(rank, 0) == "done");
  for (const uint32_t rank : survivors) processes.tell(rank, "leave");
  for (const uint32_t rank : survivors) CHECK(processes.end(rank) == kGood);
}

TEST_CASE("a sleeping process uses no CPU and wakes at once", "[processes]") {
  const auto body = [](ProcessRank& rank) -> std::string {
    const std::string wrong = rank.exchange_with(1 - rank.rank, 10);
    if (!wrong.empty()) return wrong;
    if (rank.rank == 1) {
      rank.say("asleep");
      const std::clock_t before = std::clock();
      if (!rank.sleep_until([&] { return !rank.host.notices.empty(); }, 20)) return "it was not woken";
      const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
      if ((tp().caps & TUTTI_TP_CAP_MUST_POLL) == 0 && used > 0.1) return "it used " + std::to_string(used) + " s of CPU";
      rank.say("woken");
    } else {
      rank.hear();
      if (!rank.until([&] { return rank.notify(1, "wake up") == TUTTI_OK; })) return "cannot notify";
    }
    rank.hear();
    return kGood;
  };
  Processes processes(2, body);
  REQUIRE(processes.hear(1, 0) == "asleep");
  // The time that the sleeper is watched for.
  CHECK(::poll(nullptr, 0, 700) == 0);
  processes.tell(0, "wake it");
  CHECK(processes.hear(1, 0) == "woken");
  for (const uint32_t rank : {0u, 1u}) processes.tell(rank, "leave");
  for (const uint32_t rank : {0u, 1u}) CHECK(processes.end(rank) == kGood);
}

}  // namespace tutti::conformance
