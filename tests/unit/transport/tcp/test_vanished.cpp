// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "job.hpp"

namespace tutti::test {
namespace {

const tutti_tp_table_t& tp() { return Job::tp(); }

bool set_loopback(bool up, int mtu) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_mtu = mtu;
  bool done = ::ioctl(fd, SIOCSIFMTU, &request) == 0;
  request.ifr_flags = static_cast<short>(up ? IFF_UP : 0);
  done = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0 && done;
  ::close(fd);
  return done;
}

enum Outcome { kGood = 0, kWrongData = 1, kNotNoticed = 2, kWrongCause = 3, kNoNamespace = 77 };

/// In a network of its own with packets of 1500 bytes: data goes through; then the network goes away without a word.
int vanish(bool with_data) {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kNoNamespace;
  if (!set_loopback(true, 1500)) return kNoNamespace;
  Job::Options options = Job::with("heartbeat_timeout", "1000000000");
  options.bind = "::1,127.0.0.1";
  Job job(options);
  Pipe pipe(job, 0, 1, 1);
  const std::vector<uint8_t> out = pattern(4 << 20, 5);
  std::vector<uint8_t> in(out.size());
  tutti_tp_op_t send{};
  tutti_tp_op_t receive{};
  tp().post_recv(pipe.receiver, in.data(), in.size(), &receive);
  tp().post_send(pipe.sender, out.data(), out.size(), 0, &send);
  if (!job.until([&] { return receive.done && send.done; }) || in != out) return kWrongData;
  set_loopback(false, 1500);
  receive = send = tutti_tp_op_t{};
  tp().post_recv(pipe.receiver, in.data(), in.size(), &receive);
  if (with_data) tp().post_send(pipe.sender, out.data(), out.size(), 0, &send);
  if (!job.until([&] { return !job.host(0).gone.empty() && !job.host(1).gone.empty(); })) return kNotNoticed;
  const bool failed = receive.status == TUTTI_ERR_PEER_FAILED && job.host(0).gone[0].cause == TUTTI_TP_GONE_FAILED;
  return failed ? kGood : kWrongCause;
}

}  // namespace

TEST_CASE("a host that vanishes is noticed, idle or in the middle of data", "[tcp]") {
  for (const bool with_data : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(vanish(with_data));
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) == kNoNamespace) {
      WARN("skipped: no network namespace can be made here");
      return;
    }
    CHECK(WEXITSTATUS(status) == kGood);
  }
}

TEST_CASE("a peer that lives but does not read for long is not taken for dead", "[tcp]") {
  Job job(Job::with("heartbeat_timeout", "1000000000"));
  Pipe pipe(job, 0, 1, 1);
  REQUIRE(job.connected(0, 1));
  const std::vector<uint8_t> out = pattern(64 << 20, 1);
  std::vector<uint8_t> in(out.size());
  tutti_tp_op_t send{};
  tutti_tp_op_t receive{};
  REQUIRE(tp().post_recv(pipe.receiver, in.data(), in.size(), &receive) == TUTTI_OK);
  REQUIRE(tp().post_send(pipe.sender, out.data(), out.size(), 0, &send) == TUTTI_OK);
  REQUIRE(job.until([&] { return receive.bytes == 0 && job.counter(1, "bytes_received") > 1000; }));
  job.ignore(1);
  CHECK_FALSE(job.until([&] { return !job.host(0).gone.empty(); }, 3));
  job.ignore(99);
  REQUIRE(job.until([&] { return send.done && receive.done; }));
  CHECK(in == out);
}

}  // namespace tutti::test
