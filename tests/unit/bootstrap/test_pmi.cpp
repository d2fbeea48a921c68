// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <thread>

#include "board.hpp"

using namespace tutti;

namespace {

/// A process manager for two ranks, one after the other: what rank 0 puts, rank 1 gets.
struct Manager {
  std::map<std::string, std::string> keys;
  std::string bad_command;  // answered with an error
  std::vector<std::string> seen;

  static std::string field(const std::string& line, const std::string& name) {
    const size_t at = line.find(name + "=");
    if (at == std::string::npos) return {};
    const size_t begin = at + name.size() + 1;
    return line.substr(begin, line.find(' ', begin) - begin);
  }
  std::string answer(const std::string& line) {
    const std::string command = field(line, "cmd");
    seen.push_back(command);
    if (command == bad_command) return "cmd=" + command + "_result rc=-1 msg=no\n";
    if (command == "init") return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n";
    if (command == "get_maxes") return "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=100\n";
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1\n";
    if (command == "put") {
      if (field(line, "value").size() >= 100) return "cmd=put_result rc=-1 msg=too_long\n";
      keys[field(line, "key")] = field(line, "value");
      return "cmd=put_result rc=0 msg=success\n";
    }
    if (command == "barrier_in") return "cmd=barrier_out\n";
    if (command == "get") {
      const auto found = keys.find(field(line, "key"));
      return found == keys.end() ? "cmd=get_result rc=-1 msg=key_not_found value=unknown\n"
                                 : "cmd=get_result rc=0 msg=success value=" + found->second + "\n";
    }
    return "cmd=finalize_ack\n";
  }
  /// Serves one rank on this end until it leaves.
  void serve(int fd) {
    std::string text;
    char piece[64];
    for (ssize_t got; (got = read(fd, piece, sizeof piece)) > 0;) {
      text.append(piece, static_cast<size_t>(got));
      for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
        // Cut into two, as a network may do.
        const std::string reply = answer(text.substr(0, end));
        (void)!write(fd, reply.data(), 5);
        (void)!write(fd, reply.data() + 5, reply.size() - 5);
      }
    }
    close(fd);
  }
};

/// Runs one rank against the manager. What it has found, or its error.
Result<std::string> meet(Manager& manager, int rank, const std::string& invitation) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  std::thread serving([&] { manager.serve(ends[1]); });
  const auto network = make_system_network();
  LaunchInfo launch;
  launch.rank = rank;
  launch.size = 2;
  launch.pmi_fd = ends[0];
  Result<std::string> outcome = std::string();
  {
    const auto board = make_pmi_board(launch, *network, network->make_poller().value());
    const Deadline deadline = Deadline::after(network->clock(), 10'000'000'000);
    while (!deadline.passed(network->clock())) {
      std::string text;
      const Result<bool> done = rank == 0 ? board->post(invitation) : board->look(&text);
      if (!done.ok()) outcome = done.status();
      if (done.ok() && *done) outcome = rank == 0 ? invitation : text;
      if (!done.ok() || *done) break;
      board->wait(deadline);
    }
  }
  close(ends[0]);
  serving.join();
  return outcome;
}

}  // namespace

TEST_CASE("an invitation passes through PMI in pieces that fit") {
  Manager manager;
  std::string invitation;
  for (int i = 0; i < 512; ++i) invitation.push_back("0123456789abcdef"[i * 7 % 16]);
  REQUIRE(meet(manager, 0, invitation).ok());
  CHECK(manager.keys.size() > 5);
  CHECK(manager.seen.back() == "finalize");
  const Result<std::string> found = meet(manager, 1, "");
  REQUIRE(found.ok());
  CHECK(*found == invitation);
  CHECK(manager.seen.back() == "finalize");
}

TEST_CASE("errors of the process manager are told with its own words") {
  for (const std::string command : {"init", "put", "barrier_in"}) {
    Manager manager;
    manager.bad_command = command;
    const Result<std::string> outcome = meet(manager, 0, std::string(512, 'a'));
    REQUIRE(!outcome.ok());
    CHECK(outcome.status().code() == TUTTI_ERR_PROTOCOL);
    CHECK(outcome.status().message().find("rc=-1") != std::string_view::npos);
  }
  Manager manager;  // nobody has put anything
  CHECK(meet(manager, 1, "").status().code() == TUTTI_ERR_PROTOCOL);
}

TEST_CASE("PMI_FD without a descriptor behind it") {
  const auto network = make_system_network();
  LaunchInfo launch;
  launch.size = 2;
  launch.pmi_fd = 9999;
  const auto board = make_pmi_board(launch, *network, network->make_poller().value());
  const Result<bool> outcome = board->post("x");
  REQUIRE(!outcome.ok());
  CHECK(outcome.status().code() == TUTTI_ERR_ENVIRONMENT);
  CHECK(outcome.status().message().find("PMI_FD is 9999") != std::string_view::npos);
}
