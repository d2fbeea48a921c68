// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// From open to a node.
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "endpoint.hpp"

namespace tutti::shm {

Endpoint::Endpoint(const tutti_tp_open_t& arguments) : host_{arguments.host}, rank_{arguments.rank}, size_{arguments.size} {
  std::copy_n(arguments.job_id, job_.size(), job_.begin());
}

tutti_status_t Endpoint::open(const tutti_tp_open_t& arguments) {
  uint64_t slots = 0;
  Outcome done = host_.number("shm_slots", 8, slots);
  if (done.ok()) done = host_.number("shm_slot_bytes", 64 << 10, slot_bytes_);
  if (done.ok()) done = host_.number("shm_arena_bytes", 256 << 20, arena_bytes_);
  if (done.ok()) done = host_.number("connect_timeout", 20'000'000'000, timeout_ns_);
  timeout_ns_ = std::clamp<uint64_t>(timeout_ns_, 1'000'000, uint64_t{1} << 60);
  slot_bytes_ = slot_bytes_ > kMaxSlotBytes ? 0 : round_up(slot_bytes_, 64);
  if (done.ok() && !valid_geometry(slots, slot_bytes_)) {
    done = Outcome::failure(TUTTI_ERR_CONFIG, "shm_slots must be a power of two from 4 to 1024, shm_slot_bytes 1 to 256 MiB");
  }
  slots_ = static_cast<uint32_t>(slots);
  if (done.ok()) {
    self_.node_key = make_node_key(host_, job_, arguments.host_identity != nullptr ? arguments.host_identity : "");
    self_.process = make_process_token(host_, job_);
    self_.pid = static_cast<uint32_t>(::getpid());
    host_.random(self_.incarnation.data(), self_.incarnation.size());
    epoll_ = Fd{::epoll_create1(EPOLL_CLOEXEC)};
    if (!epoll_) done = Outcome::system("epoll_create1", errno);
  }
  // Deaths are seen by pidfds; a kernel or sandbox without them is no place for this transport.
  if (done.ok() && !open_pidfd(::getpid())) done = Outcome::system("pidfd_open", errno);
  if (done.ok()) done = desk_.open(host_, self_);
  // Listening from now on: whoever has our address finds the socket, so that a refusal is an answer.
  if (done.ok()) done = listen_on(job_, self_.incarnation, listener_);
  if (!done.ok()) host_.log(TUTTI_LOG_INFO, "cannot start: " + done.text);
  return done.status;
}

tutti_status_t Endpoint::address(void* buffer, size_t capacity, size_t* bytes) const {
  if (capacity < sizeof self_) return TUTTI_ERR_ARGUMENT;
  std::memcpy(buffer, &self_, sizeof self_);
  *bytes = sizeof self_;
  return TUTTI_OK;
}

tutti_status_t Endpoint::set_peer(uint32_t peer, const void* address, size_t bytes) {
  if (peer >= size_) return TUTTI_ERR_RANK;
  if (bytes != sizeof(Address)) {
    host_.log(TUTTI_LOG_INFO, "the address of rank " + std::to_string(peer) + " is malformed");
    return TUTTI_ERR_PROTOCOL;
  }
  if (begun_) return TUTTI_ERR_ARGUMENT;
  Address decoded;
  std::memcpy(&decoded, address, sizeof decoded);
  if (decoded.magic == Address::kMagic && decoded.node_key == self_.node_key) addresses_[peer] = decoded;
  return TUTTI_OK;
}

Plan Endpoint::make_plan() {
  Plan plan{host_, job_, addresses_, Roster::make(addresses_), 0, slots_, slot_bytes_, arena_bytes_, timeout_ns_, epoll_.get()};
  plan.process = plan.roster.process_of[plan.roster.index_of(rank_)];
  return plan;
}

tutti_status_t Endpoint::begin() {
  addresses_[rank_] = self_;
  Plan plan = make_plan();
  const Roster& roster = plan.roster;
  begun_ = true;
  if (roster.ranks.size() == 1 || roster.ranks.size() > kMaxNodeRanks) {
    enter(nullptr);
    return TUTTI_OK;
  }
  // Deadlines and busy listeners: whoever sleeps on our descriptor has to come back.
  timer_ = Fd{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  const itimerspec often{{0, 20'000'000}, {0, 20'000'000}};
  if (timer_ && ::timerfd_settime(timer_.get(), 0, &often, nullptr) == 0) await_readable(plan, timer_.get());
  const std::vector<uint32_t>& here = roster.processes[plan.process];
  const uint32_t head = roster.ranks[here[0]];
  if (head == rank_) desk_.expect(static_cast<uint32_t>(here.size() - 1));
  if (head != rank_) {
    if (visited_.visit(addresses_.at(head))) {
      await_readable(plan, visited_.hall()->ready_fd());
    } else {
      host_.log(TUTTI_LOG_INFO, "rank " + std::to_string(head) + " of this process is gone: no shared memory");
      enter(nullptr);
    }
  } else if (roster.processes.size() == 1) {
    std::shared_ptr<Node> node;
    if (const Outcome made = Gathering::alone(plan, node); !made.ok()) {
      host_.log(TUTTI_LOG_WARN, "the ranks of this process get no shared memory: " + made.text);
    }
    enter(std::move(node));
  } else if (roster.ranks[0] == rank_) {
    gathering_ = Gathering::lead(std::move(plan), std::move(listener_));
  } else {
    gathering_ = Gathering::attend(std::move(plan));
  }
  return TUTTI_OK;
}

tutti_status_t Endpoint::advance() {
  uint64_t ticks = 0;
  if (timer_) [[maybe_unused]]
    const ssize_t got = ::read(timer_.get(), &ticks, sizeof ticks);
  std::shared_ptr<Node> node;
  const uint64_t now_ns = host_.clock_ns();
  if (give_up_ns_ == 0) give_up_ns_ = now_ns + 4 * timeout_ns_;
  // A visitor waits for a rank that has deadlines of its own, but may not have been started at all.
  const bool done = gathering_ ? gathering_->step(now_ns, node) : visited_.hall()->settled(node) || now_ns >= give_up_ns_;
  if (!done) return TUTTI_TP_AGAIN;
  enter(std::move(node));
  return TUTTI_OK;
}

tutti_status_t Endpoint::start() {
  if (!begun_) {
    if (const tutti_status_t begun = begin(); begun != TUTTI_OK) return begun;
  }
  return started_ ? TUTTI_OK : advance();
}

/// Closed before it started: those who expect a visit must not wait for it.
void Endpoint::call_off() {
  if (begun_ || addresses_.empty()) return;
  addresses_[rank_] = self_;
  const Plan plan = make_plan();
  const uint32_t head = plan.roster.ranks[plan.roster.processes[plan.process][0]];
  if (head != rank_) visited_.visit(addresses_.at(head));
}

void Endpoint::stop_setup() {
  gathering_.reset();
  listener_.reset();
  // A forked child may keep the timer alive; it must not wake us.
  if (timer_) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, timer_.get(), nullptr);
  timer_.reset();
  if (visited_.hall() != nullptr) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, visited_.hall()->ready_fd(), nullptr);
  visited_.leave();
}

void Endpoint::enter(std::shared_ptr<Node> node) {
  desk_.hall()->settle(node);
  stop_setup();
  started_ = true;
  if (!node) {
    desk_.leave();
    return;
  }
  const Roster& roster = node->roster;
  const uint32_t self = roster.index_of(rank_);
  // Only the first rank of a process has visitors.
  if (roster.processes[roster.process_of[self]][0] != self) desk_.leave();
  share_ = std::make_unique<Share>(std::move(node), self, &host_);
  peers_.resize(roster.ranks.size());
  for (uint32_t index = 0; index < peers_.size(); ++index) {
    peers_[index].rank = roster.ranks[index];
    peers_[index].index = index;
    if (index != self && share_->node->is_seated(index)) peers_[index].state = Peer::State::kAlive;
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = UINT64_MAX;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, share_->node->bells[self].get(), &event);
  for (size_t i = 0; i < share_->node->watches.size(); ++i) {
    event.data.u64 = i;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, share_->node->watches[i].fd.get(), &event);
  }
  auto absent = static_cast<uint32_t>(RankState::kAbsent);
  share_->node->arena->control(self).presence.state.compare_exchange_strong(absent, static_cast<uint32_t>(RankState::kAttached),
                                                                            std::memory_order_seq_cst);
  // Somebody may have left before we could be told.
  share_->node->call_attention(self);
  look_ = true;
}

}  // namespace tutti::shm
