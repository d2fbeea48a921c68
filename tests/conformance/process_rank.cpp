// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "process_rank.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tutti::conformance {

int ProcessRank::run(uint32_t rank, uint32_t size, const uint8_t job_id[16], int socket,
                     const std::function<std::string(ProcessRank&)>& body) {
  ProcessRank self;
  self.rank = rank;
  self.size = size;
  self.socket_ = socket;
  self.host.in_call = true;
  std::string verdict = self.start(job_id);
  if (verdict.empty()) verdict = body(self);
  if (self.endpoint_ != nullptr) tp().close(self.endpoint_);
  if (self.host.live_blocks() != 0) verdict = "memory was not given back";
  if (!self.host.faults.empty()) verdict = self.host.faults.front();
  self.say(verdict);
  return verdict == "good" ? 0 : 1;
}

std::string ProcessRank::start(const uint8_t job_id[16]) {
  tutti_tp_open_t arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.rank = rank;
  arguments.size = size;
  std::memcpy(arguments.job_id, job_id, sizeof arguments.job_id);
  arguments.host_identity = "one machine";
  arguments.bind_addresses = "127.0.0.1";
  arguments.host = &host.table;
  if (tp().open(&arguments, &endpoint_) != TUTTI_OK) return "open: " + host.last_log();
  char buffer[TUTTI_TP_ADDRESS_MAX_BYTES];
  size_t bytes = 0;
  if (tp().address(endpoint_, buffer, sizeof buffer, &bytes) != TUTTI_OK) return "address";
  say(std::string(buffer, bytes));
  for (uint32_t peer = 0; peer < size; ++peer) {
    const std::string theirs = hear();
    if (tp().set_peer(endpoint_, peer, theirs.data(), theirs.size()) != TUTTI_OK) return "set_peer: " + host.last_log();
  }
  tutti_status_t status = TUTTI_TP_AGAIN;
  until([&] { return (status = tp().start(endpoint_)) != TUTTI_TP_AGAIN; });
  return status == TUTTI_OK ? "" : "start: " + host.last_log();
}

void ProcessRank::say(const std::string& word) const { ::send(socket_, word.data(), word.size(), MSG_NOSIGNAL); }

std::string ProcessRank::hear() {
  char buffer[2048];
  ssize_t got = -1;
  until([&] { return (got = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT)) >= 0; }, 60);
  return got <= 0 ? std::string() : std::string(buffer, static_cast<size_t>(got));
}

bool ProcessRank::until(const std::function<bool()>& condition, double seconds) {
  return wait(condition, seconds, 5);  // it may wait for something that wakes nobody
}

bool ProcessRank::sleep_until(const std::function<bool()>& condition, double seconds) { return wait(condition, seconds, 5000); }

bool ProcessRank::wait(const std::function<bool()>& condition, double seconds, int nap_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const int fd = tp().fd(endpoint_);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    tp().arm(endpoint_);
    pollfd one = {fd, POLLIN, 0};
    // It may take what it waits for: once it holds, it is not asked again.
    bool holds = false;
    if (tp().progress(endpoint_) == 0) {
      holds = condition();
      if (!holds) ::poll(&one, 1, nap_ms);
    }
    tp().disarm(endpoint_);
    tp().progress(endpoint_);
    if (holds) return true;
  }
  return true;
}

tutti_status_t ProcessRank::notify(uint32_t peer, const std::string& text) {
  return tp().notify(endpoint_, peer, text.data(), text.size());
}

std::string ProcessRank::exchange_with(uint32_t peer, uint32_t count) {
  tutti_tp_link_t link{};
  link.struct_size = sizeof link;
  if (tp().link(endpoint_, peer, &link) != TUTTI_OK) return "no link to rank " + std::to_string(peer);
  for (const bool slots : {false, true}) {
    if ((link.caps & (slots ? TUTTI_TP_CAP_SLOTS : TUTTI_TP_CAP_MESSAGES)) == 0) continue;
    const std::string wrong = exchange(peer, count, slots, link.slot_bytes);
    if (!wrong.empty()) return wrong + " with rank " + std::to_string(peer);
  }
  return {};
}

std::string ProcessRank::exchange(uint32_t peer, uint32_t count, bool slots, uint64_t slot_bytes) {
  tutti_tp_channel_t* out = nullptr;
  tutti_tp_channel_t* in = nullptr;
  const uint64_t id = slots ? 2 : 1;
  if (tp().channel_open(endpoint_, peer, id, TUTTI_TP_SEND, slots, &out) != TUTTI_OK) return "channel_open";
  if (tp().channel_open(endpoint_, peer, id, TUTTI_TP_RECV, slots, &in) != TUTTI_OK) return "channel_open";
  const auto bytes_of = [&](uint32_t i) { return static_cast<size_t>(i * 7919u % std::min<uint64_t>(slot_bytes, 70'000)); };
  std::string wrong;
  for (uint32_t i = 0; i < count && wrong.empty(); ++i) {
    const Bytes data = pattern(bytes_of(i), i + rank);
    const Bytes expected = pattern(bytes_of(i), i + peer);
    Bytes got(expected.size() + 1);
    tutti_tp_op_t send{};
    tutti_tp_op_t receive{};
    void* slot = nullptr;
    const void* theirs = nullptr;
    uint64_t bytes = 0;
    uint32_t mark = 0;
    if (!slots) {
      if (!until([&] { return tp().post_recv(in, got.data(), got.size(), &receive) == TUTTI_OK; })) wrong = "post_recv";
      if (!until([&] { return tp().post_send(out, data.data(), data.size(), mark_of(data), &send) == TUTTI_OK; }))
        wrong = "post_send";
      if (!until([&] { return receive.done != 0 && send.done != 0; })) wrong = "nothing came";
      bytes = receive.bytes;
      mark = receive.mark;
      theirs = got.data();
    } else {
      if (!until([&] { return tp().slot_reserve(out, data.size(), &slot) == TUTTI_OK; })) return "no slot";
      if (!data.empty()) std::memcpy(slot, data.data(), data.size());
      if (tp().slot_commit(out, data.size(), mark_of(data)) != TUTTI_OK) return "slot_commit";
      if (!until([&] { return tp().slot_peek(in, &theirs, &bytes, &mark) == TUTTI_OK; })) return "nothing came";
    }
    const bool right = bytes == expected.size() && (bytes == 0 || std::memcmp(theirs, expected.data(), bytes) == 0);
    if (wrong.empty() && !right) wrong = "wrong data in message " + std::to_string(i);
    if (wrong.empty() && mark != mark_of(expected)) wrong = "wrong mark on message " + std::to_string(i);
    if (slots) tp().slot_release(in);
  }
  tp().channel_close(out);
  tp().channel_close(in);
  return wrong;
}

}  // namespace tutti::conformance
