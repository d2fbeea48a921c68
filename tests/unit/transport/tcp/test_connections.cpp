// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "address.hpp"
#include "handshake.hpp"
#include "job.hpp"
#include "socket.hpp"

namespace tutti::test {
namespace {

const tutti_tp_table_t& tp() { return Job::tp(); }

int open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

/// A plain client, as a port scanner would be one.
class Stranger {
 public:
  explicit Stranger(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) throw std::runtime_error("connect");
    ::fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  Stranger(Stranger&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Stranger() {
    if (fd_ >= 0) ::close(fd_);
  }
  void send(const std::string& bytes) { (void)::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT); }
  bool closed() {
    char byte[256];
    const ssize_t got = ::recv(fd_, byte, sizeof byte, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }

 private:
  int fd_;
};

void exchange(Job& job, uint32_t a, uint32_t b, Pipe& pipe) {
  (void)a;
  (void)b;
  char in[8] = {};
  tutti_tp_op_t send{};
  tutti_tp_op_t receive{};
  REQUIRE(tp().post_recv(pipe.receiver, in, 8, &receive) == TUTTI_OK);
  REQUIRE(tp().post_send(pipe.sender, "message", 8, 0, &send) == TUTTI_OK);
  REQUIRE(job.until([&] { return receive.done && send.done; }));
  CHECK(std::string(in) == "message");
}

std::string contact_with(const std::string& blob, const std::vector<tcp::Address>& addresses) {
  tcp::Contact contact;
  REQUIRE(tcp::decode_contact(blob.data(), blob.size(), &contact));
  contact.addresses = addresses;
  const std::vector<uint8_t> bytes = tcp::encode_contact(contact);
  return std::string(bytes.begin(), bytes.end());
}

tcp::Address loopback(uint16_t port) {
  tcp::Address address;
  tcp::parse_address("127.0.0.1", &address);
  address.port = port;
  return address;
}

}  // namespace

TEST_CASE("contacts survive the way, and no malformed one is taken", "[tcp]") {
  tcp::Contact contact;
  contact.machine = 99;
  tcp::Address address;
  for (const char* text : {"10.1.2.3", "::1", "2001:db8::7"}) {
    REQUIRE(tcp::parse_address(text, &address));
    address.port = 4711;
    contact.addresses.push_back(address);
  }
  CHECK(contact.addresses[2].text() == "[2001:db8::7]:4711");
  std::vector<uint8_t> bytes = tcp::encode_contact(contact);
  tcp::Contact back;
  REQUIRE(tcp::decode_contact(bytes.data(), bytes.size(), &back));
  CHECK(back.addresses == contact.addresses);
  for (size_t length = 0; length < bytes.size(); ++length) CHECK_FALSE(tcp::decode_contact(bytes.data(), length, &back));
  bytes[1] = 21;
  CHECK_FALSE(tcp::decode_contact(bytes.data(), bytes.size(), &back));
  for (const char* text : {"", "fe80::1", "0.0.0.0", "::", "ff02::1", "name", "10.0.0.1 ", "1.2.3"}) {
    CHECK_FALSE(tcp::parse_address(text, &address));
  }
}

TEST_CASE("both connect at once, again and again, and one connection remains", "[tcp]") {
  for (uint32_t round = 0; round < 60; ++round) {
    Job job;
    Pipe there(job, 0, 1, 1);
    Pipe back(job, 1, 0, 2);
    CHECK(tp().connect(job[0], 1) == TUTTI_TP_AGAIN);
    for (uint32_t i = 0; i < round % 7; ++i) tp().progress(job[round % 2]);
    CHECK(tp().connect(job[1], 0) == TUTTI_TP_AGAIN);
    for (uint32_t i = 0; i < round % 5; ++i) tp().progress(job[(round / 2) % 2]);
    REQUIRE(job.connected(0, 1));
    exchange(job, 0, 1, there);
    exchange(job, 1, 0, back);
    CHECK(job.counter(0, "connections") == 1);
    CHECK(job.counter(1, "connections") == 1);
    CHECK(job.host(0).gone.empty());
    CHECK(job.host(1).gone.empty());
  }
}

TEST_CASE("twelve ranks connect all to all in every direction", "[tcp]") {
  Job::Options options;
  options.ranks = 12;
  Job job(options);
  for (uint32_t a = 0; a < 12; ++a) {
    CHECK(tp().connect(job[a], a) == TUTTI_ERR_RANK);
    for (uint32_t b = 0; b < 12; ++b) {
      if (a != b) tp().connect(job[a], b);
    }
  }
  for (uint32_t a = 0; a < 12; ++a) {
    for (uint32_t b = 0; b < a; ++b) REQUIRE(job.connected(a, b));
  }
  for (uint32_t a = 0; a < 12; ++a) {
    CHECK(job.counter(a, "connections") == 11);
    CHECK(job.counter(a, "strangers_dropped") == 0);
  }
}

TEST_CASE("an address that leads to the wrong place is passed over", "[tcp]") {
  Job::Options options;
  options.ranks = 3;
  options.introduce = false;
  Job job(options);
  Job::Options foreign_options;
  foreign_options.job_id = 9;
  Job foreign(foreign_options);
  const int dead = ::socket(AF_INET, SOCK_STREAM, 0);  // bound, but nobody listens
  sockaddr_in nowhere{};
  nowhere.sin_family = AF_INET;
  nowhere.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof nowhere;
  REQUIRE(::bind(dead, reinterpret_cast<sockaddr*>(&nowhere), bytes) == 0);
  ::getsockname(dead, reinterpret_cast<sockaddr*>(&nowhere), &bytes);
  // Rank 1's card, as rank 0 sees it: itself, rank 2, another job, nobody, and last the right port.
  const std::string card = contact_with(job.address(1), {loopback(job.port(0)), loopback(job.port(2)), loopback(foreign.port(0)),
                                                         loopback(ntohs(nowhere.sin_port)), loopback(job.port(1))});
  for (uint32_t rank = 0; rank < 3; ++rank) {
    for (uint32_t peer = 0; peer < 3; ++peer) job.introduce(rank, peer, rank == 0 && peer == 1 ? card : job.address(peer));
    REQUIRE(tp().start(job[rank]) == TUTTI_OK);
  }
  Pipe pipe(job, 0, 1, 1);
  REQUIRE(job.until([&] {
    foreign.progress();
    return tp().connect(job[0], 1) == TUTTI_OK && tp().connect(job[1], 0) == TUTTI_OK;
  }));
  exchange(job, 0, 1, pipe);
  CHECK(job.host(2).gone.empty());
  CHECK(foreign.counter(0, "connections") == 0);
  ::close(dead);
}

TEST_CASE("the lower rank that reaches nobody takes the other's connection", "[tcp]") {
  Job::Options options;
  options.introduce = false;
  Job job(options);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    for (uint32_t peer = 0; peer < 2; ++peer) {
      const bool misled = rank == 0 && peer == 1;
      job.introduce(rank, peer, misled ? contact_with(job.address(1), {loopback(job.port(0))}) : job.address(peer));
    }
    tp().start(job[rank]);
  }
  tp().connect(job[0], 1);
  for (int i = 0; i < 50; ++i) job.progress();
  CHECK(tp().connect(job[0], 1) == TUTTI_TP_AGAIN);
  tp().connect(job[1], 0);
  CHECK(job.connected(0, 1));
}

TEST_CASE("a peer that cannot be reached is reported with the address tried", "[tcp]") {
  Job job(Job::with("connect_timeout", "300000000"));
  Pipe pipe(job, 0, 1, 1);
  const std::string port = std::to_string(job.port(1));
  job.close(1);
  char in[1];
  tutti_tp_op_t receive{};
  tutti_tp_channel_t* from = job.channel(0, 1, 2, TUTTI_TP_RECV);
  REQUIRE(tp().post_recv(from, in, 1, &receive) == TUTTI_OK);
  REQUIRE(job.until([&] { return !job.host(0).gone.empty(); }));
  CHECK(job.host(0).gone[0].cause == TUTTI_TP_GONE_UNREACHABLE);
  CHECK(job.host(0).gone[0].text.find("127.0.0.1:" + port) != std::string::npos);
  CHECK(receive.status == TUTTI_ERR_CONNECT);
  CHECK(tp().connect(job[0], 1) == TUTTI_ERR_CONNECT);
}

TEST_CASE("a peer that is no more is given up long before the timeout", "[tcp]") {
  Job job(Job::with("connect_timeout", "60000000000"));
  job.close(1);
  CHECK(tp().connect(job[0], 1) == TUTTI_TP_AGAIN);
  REQUIRE(job.until([&] { return !job.host(0).gone.empty(); }, 20));
  CHECK(job.host(0).gone[0].cause == TUTTI_TP_GONE_UNREACHABLE);
  CHECK_THAT(job.host(0).gone[0].text, Catch::Contains("nobody listens") && Catch::Contains("refused"));
}

TEST_CASE("strangers are dropped, logged, and disturb neither data nor newcomers", "[tcp]") {
  Job::Options options;
  options.ranks = 3;
  Job job(options);
  Pipe pipe(job, 0, 1, 1);
  exchange(job, 0, 1, pipe);
  const uint64_t memory = job.counter(1, "memory_bytes");
  std::vector<Stranger> silent;
  for (int i = 0; i < 10; ++i) silent.emplace_back(job.port(1));
  std::vector<Stranger> loud;
  const std::string random(1 << 20, '\xa5');
  const std::string giant = std::string("TuttiTCP") + std::string(24, '\xff') + std::string(1000, '\xff');
  for (const std::string& words : {std::string("GET / HTTP/1.0\r\n\r\n"), std::string("\x16\x03\x01\x02\x00\x01", 6), random, giant}) {
    loud.emplace_back(job.port(1));
    loud.back().send(words);
  }
  Stranger half(job.port(1));
  half.send("TuttiTC");
  for (int i = 0; i < 50; ++i) exchange(job, 0, 1, pipe);
  for (Stranger& stranger : loud) CHECK(job.until([&] { return stranger.closed(); }));
  CHECK(job.counter(1, "strangers_dropped") == 4);
  REQUIRE(job.host(1).log.size() >= 4);
  CHECK(job.host(1).log[0].find("dropped a connection from 127.0.0.1:") != std::string::npos);
  CHECK(job.counter(1, "memory_bytes") == memory);
  Pipe newcomer(job, 2, 1, 1);
  exchange(job, 2, 1, newcomer);  // while the silent ones still hold their connections
  CHECK(job.host(1).gone.empty());
}

TEST_CASE("a flood of silent connections cannot keep a peer out", "[tcp]") {
  Job job;
  std::vector<Stranger> flood;
  for (int i = 0; i < 300; ++i) {
    flood.emplace_back(job.port(1));
    if (i % 50 == 0) job.progress();
  }
  for (int i = 0; i < 20; ++i) job.progress();
  CHECK(job.connected(0, 1));
  CHECK(job.counter(1, "strangers_dropped") > 40);
}

TEST_CASE("a silent connection is dropped at its deadline", "[tcp]") {
  Job job(Job::with("connect_timeout", "200000000"));
  Stranger stranger(job.port(0));
  CHECK(job.until([&] { return stranger.closed(); }));
  CHECK(job.counter(0, "strangers_dropped") == 1);
}

TEST_CASE("endpoints leave no descriptor, no memory and no connection in the kernel", "[tcp]") {
  const auto waiting_in_kernel = [] {
    int count = 0;
    std::string line;
    for (std::ifstream table("/proc/net/tcp"); std::getline(table, line);) count += line.find(" 06 ") == 34 ? 1 : 0;
    return count;
  };
  { Job warm_up; }
  const int descriptors = open_descriptors();
  const int before = waiting_in_kernel();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit small = {static_cast<rlim_t>(descriptors + 30), limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &small);
  for (int round = 0; round < 100; ++round) {
    Job job;
    Pipe pipe(job, static_cast<uint32_t>(round % 2), static_cast<uint32_t>(1 - round % 2), 1);
    exchange(job, 0, 1, pipe);
    job.close(static_cast<uint32_t>(round % 3 == 0));
    if (round % 2 == 0) job.until([&] { return job.host(0).gone.size() + job.host(1).gone.size() > 0; });
    job.close(0);
    job.close(1);
    CHECK(job.host(0).live_bytes == 0);
    CHECK(job.host(1).live_bytes == 0);
  }
  ::setrlimit(RLIMIT_NOFILE, &limit);
  CHECK(open_descriptors() == descriptors);
  CHECK(waiting_in_kernel() - before < 10);
}

TEST_CASE("without descriptors opening fails with a line that says so, and harms nobody", "[tcp]") {
  Job job;
  Pipe pipe(job, 0, 1, 1);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int descriptors = open_descriptors();
  const rlimit small = {static_cast<rlim_t>(descriptors + 3), limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &small);
  std::vector<std::unique_ptr<Job>> more;
  std::exception_ptr failure;
  for (int i = 0; i < 10 && failure == nullptr; ++i) {
    try {
      more.push_back(std::make_unique<Job>());
    } catch (...) {
      failure = std::current_exception();
    }
  }
  ::setrlimit(RLIMIT_NOFILE, &limit);
  REQUIRE(failure != nullptr);
  CHECK_THROWS_WITH(std::rethrow_exception(failure), Catch::Contains("tcp:"));
  more.clear();
  exchange(job, 0, 1, pipe);
}

TEST_CASE("listeners keep to the addresses and the ports they are given", "[tcp]") {
  Job::Options options;
  options.ranks = 3;
  options.settings["port_range"] = "38910-38912";
  Job job(options);
  for (uint32_t rank = 0; rank < 3; ++rank) CHECK((job.port(rank) >= 38910 && job.port(rank) <= 38912));
  CHECK_THROWS_WITH(Job(options), Catch::Contains("38910-38912"));  // all taken
  std::string line;
  for (std::ifstream table("/proc/net/tcp"); std::getline(table, line);) {
    if (line.find(":97FE") != std::string::npos && line.find(" 0A ") == 34) CHECK(line.substr(6, 8) == "0100007F");
  }
  options.settings["port_range"] = "1-99999";
  CHECK_THROWS_WITH(Job(options), Catch::Contains("port_range"));
  options.settings.clear();
  options.bind = "";
  CHECK_THROWS_WITH(Job(options), Catch::Contains("no address"));
}

}  // namespace tutti::test
