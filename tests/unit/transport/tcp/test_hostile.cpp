// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "address.hpp"
#include "handshake.hpp"
#include "job.hpp"

namespace tutti::test {
namespace {

const tutti_tp_table_t& tp() { return Job::tp(); }

/// A member of the job (it knows the secret) whose later bytes are whatever a test likes: it stands in for rank 1.
class Renegade {
 public:
  explicit Renegade(Job& job) : job_(job), host_(&job.host(1).table), fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(job.port(0));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) throw std::runtime_error("connect");
    ::fcntl(fd_, F_SETFL, O_NONBLOCK);
    tcp::Contact self;
    tcp::Contact victim;
    decode(1, &self);
    decode(0, &victim);
    tcp::Identity identity;
    identity.job_id[0] = 1;
    identity.rank = 1;
    identity.incarnation = self.incarnation;
    identity.window_bytes = 1 << 16;
    tcp::Handshake handshake = tcp::Handshake::connector(host_, identity, 0, victim.incarnation);
    const bool met = job.until([&] {
      if (handshake.output_bytes() > 0) handshake.sent(send(handshake.output(), handshake.output_bytes()));
      uint8_t bytes[128];
      const ssize_t got = ::recv(fd_, bytes, std::min(sizeof bytes, handshake.wanted_bytes()), MSG_DONTWAIT);
      if (got > 0) handshake.feed(bytes, static_cast<size_t>(got));
      return handshake.state() == tcp::Handshake::State::kEstablished && handshake.output_bytes() == 0;
    });
    if (!met) throw std::runtime_error("handshake");
    job.until([&] { return tp().connect(job[0], 1) == TUTTI_OK; });
  }
  ~Renegade() { ::close(fd_); }
  Renegade(const Renegade&) = delete;
  Renegade& operator=(const Renegade&) = delete;

  size_t send(const void* bytes, size_t count) {
    const ssize_t sent = ::send(fd_, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  void frame(tcp::FrameType type, uint8_t flags, uint64_t channel, uint64_t value, const std::string& payload) {
    tcp::FrameHeader header;
    header.type = type;
    header.flags = flags;
    header.channel = channel;
    header.value = value;
    header.length = static_cast<uint32_t>(payload.size());
    header.stream = 1;
    uint8_t bytes[tcp::kHeaderBytes];
    tcp::encode_header(header, bytes);
    send(bytes, sizeof bytes);
    send(payload.data(), payload.size());
  }
  void hang_up() { ::shutdown(fd_, SHUT_RDWR); }
  /// The text with which rank 0 gives up on it.
  std::string verdict() {
    if (!job_.until([&] { return !job_.host(0).gone.empty(); }, 5)) return "nothing happened";
    CHECK(job_.host(0).gone.size() == 1);
    return std::to_string(job_.host(0).gone[0].cause) + ": " + job_.host(0).gone[0].text;
  }

 private:
  void decode(uint32_t rank, tcp::Contact* contact) {
    const std::string blob = job_.address(rank);
    tcp::decode_contact(blob.data(), blob.size(), contact);
  }
  Job& job_;
  tcp::Host host_;
  int fd_;
};

}  // namespace

TEST_CASE("a member that breaks the protocol is cut, and its memory is bounded", "[tcp]") {
  using tcp::FrameType;
  const auto judge = [](const std::function<void(Renegade&, Job&)>& crime) {
    Job job(Job::with("tcp_window_bytes", "16384"));
    job.ignore(1);
    Renegade renegade(job);
    tutti_tp_channel_t* waiting = job.channel(0, 1, 500, TUTTI_TP_RECV);
    char in[4];
    tutti_tp_op_t receive{};
    REQUIRE(tp().post_recv(waiting, in, sizeof in, &receive) == TUTTI_OK);
    crime(renegade, job);
    const std::string verdict = renegade.verdict();
    CHECK(receive.status == TUTTI_ERR_PEER_FAILED);
    CHECK(job.host(0).peak_bytes < 400'000);
    return verdict;
  };
  const std::string kilobyte(1024, 'x');
  CHECK_THAT(judge([&](Renegade& peer, Job&) {
               for (int i = 0; i < 20; ++i) peer.frame(FrameType::kData, 1, 7, kilobyte.size(), kilobyte);
             }),
             Catch::Contains("1: rank 1: it misbehaved: more bytes than the channel's window allows"));
  CHECK_THAT(judge([&](Renegade& peer, Job& job) {
               for (uint64_t id = 0; id < 5000; ++id) {
                 peer.frame(FrameType::kData, 1, 1000 + id, 0, "");
                 if (id % 100 == 0) job.progress();
               }
             }),
             Catch::Contains("too many channels"));
  CHECK_THAT(judge([&](Renegade& peer, Job&) { peer.send(std::string(64, '\xff').data(), 64); }),
             Catch::Contains("it misbehaved: "));
  CHECK_THAT(judge([&](Renegade& peer, Job&) { peer.frame(FrameType::kData, 1, 7, uint64_t{1} << 62, "x"); }),
             Catch::Contains("message too long"));
  CHECK_THAT(judge([&](Renegade& peer, Job& job) {
               job.channel(0, 1, 9, TUTTI_TP_SEND);
               peer.frame(FrameType::kCredit, 0, 9, ~uint64_t{0}, "");
             }),
             Catch::Contains("more credit"));
  CHECK_THAT(judge([&](Renegade& peer, Job&) {
               peer.frame(FrameType::kData, 1, 7, 100, "half");
               peer.frame(FrameType::kEnd, 0, 7, 0, "");
             }),
             Catch::Contains("ends within a message"));
  CHECK_THAT(judge([&](Renegade& peer, Job&) {
               peer.frame(FrameType::kData, 1, 500, 4, "ab");
               peer.hang_up();
             }),
             Catch::Contains("1: rank 1: it misbehaved") || Catch::Contains("without saying goodbye"));
}

TEST_CASE("random frames of a member never crash an endpoint", "[tcp]") {
  uint32_t state = 4711;
  const auto random = [&](uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
  };
  for (int round = 0; round < 60; ++round) {
    Job job(Job::with("tcp_window_bytes", "16384"));
    job.ignore(1);
    Renegade renegade(job);
    std::vector<tutti_tp_channel_t*> channels;
    for (uint64_t id = 0; id < 3; ++id) channels.push_back(job.channel(0, 1, id, TUTTI_TP_RECV));
    std::vector<uint8_t> in(64 * 3000);
    std::vector<tutti_tp_op_t> ops(64);
    for (uint32_t i = 0; i < 64; ++i) {
      const std::string payload(random(300), 'p');
      const uint64_t value = random(3) == 0 ? random(1000) : payload.size();
      renegade.frame(static_cast<tcp::FrameType>(1 + random(4)), static_cast<uint8_t>(random(8) != 0), random(4), value, payload);
      if (random(2) == 0) tp().post_recv(channels[random(3)], &in[i * 3000], random(3000), &ops[i]);
      if (random(3) == 0) job.progress();
    }
    renegade.hang_up();
    CHECK_THAT(renegade.verdict(), Catch::Contains("rank 1"));
    for (tutti_tp_channel_t* channel : channels) tp().channel_close(channel);
  }
}

}  // namespace tutti::test
