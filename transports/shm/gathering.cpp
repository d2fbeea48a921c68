// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "gathering.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace tutti::shm {
namespace {

/// The bytes that a hash covers: a label, the session, and more.
class Covered {
 public:
  explicit Covered(const char* label) : bytes_(16, 0) { std::memcpy(bytes_.data(), label, std::strlen(label)); }
  Covered& add(const Session& session) {
    return add_token(session.job)
        .add_number(session.leader)
        .add_token(session.leader_incarnation)
        .add_token(session.guest_nonce)
        .add_token(session.leader_nonce);
  }
  Covered& add_token(const Token& token) {
    for (const uint8_t byte : token) bytes_.push_back(byte);
    return *this;
  }
  Covered& add_number(uint32_t number) {
    for (int shift = 0; shift < 32; shift += 8) bytes_.push_back(static_cast<uint8_t>(number >> shift));
    return *this;
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

Mac challenge_mac(const Host& host, const Session& session) { return host.mac(Covered{"shm challenge"}.add(session).bytes()); }

Mac proof_mac(const Host& host, const Session& session, const Proof& proof) {
  return host.mac(Covered{"shm proof"}.add(session).add_number(proof.rank).add_token(proof.incarnation).bytes());
}

Outcome start_node(const Plan& plan, std::shared_ptr<Node>& node) {
  auto made = std::make_shared<Node>();
  made->roster = plan.roster;
  made->process = plan.process;
  made->slots = plan.slots;
  made->slot_bytes = plan.slot_bytes;
  made->bells.resize(plan.roster.ranks.size());
  made->seated.assign(plan.roster.processes.size(), 0);
  for (const uint32_t index : plan.roster.processes[plan.process]) {
    Fd bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!bell) return Outcome::system("eventfd", errno);
    made->bells[index] = std::move(bell);
  }
  node = std::move(made);
  return Outcome::success();
}

Outcome Gathering::alone(const Plan& plan, std::shared_ptr<Node>& node) {
  std::shared_ptr<Node> made;
  if (Outcome started = start_node(plan, made); !started.ok()) return started;
  const auto ranks = static_cast<uint32_t>(plan.roster.ranks.size());
  if (Outcome created = Arena::create_private(ranks, plan.arena_bytes, made->arena); !created.ok()) return created;
  made->seated[plan.process] = 1;
  node = std::move(made);
  return Outcome::success();
}

void await_readable(const Plan& plan, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = UINT64_MAX;
  ::epoll_ctl(plan.epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace tutti::shm
