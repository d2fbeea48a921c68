// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// The leader's side of a gathering.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <list>

#include "gathering.hpp"

namespace tutti::shm {
namespace {

/// Connections that have not proved anything yet, beside one for each process of the node, which may all come at once; beyond,
/// the oldest goes, so that strangers cannot lock out the job.
constexpr size_t kMaxStrangers = 64;
constexpr int kAcceptsAtOnce = 256;

struct Visit {
  explicit Visit(Fd socket) : wire{std::move(socket)} {}
  enum class State { kGreets, kProves, kSendsBells, kSeated, kAttaches, kAttached, kGone };
  Wire wire;
  State state = State::kGreets;
  Token guest_nonce{};
  Token leader_nonce{};
  uint32_t process = UINT32_MAX;
  Fd pidfd;
  std::vector<Fd> bells;
  bool proved() const { return state >= State::kSendsBells; }
};

class Leader final : public Gathering {
 public:
  Leader(Plan plan, Fd listener)
      : plan_{std::move(plan)},
        listener_{std::move(listener)},
        seats_(plan_.roster.processes.size(), nullptr),
        missing_(plan_.roster.processes.size(), 0) {
    session_.job = plan_.job;
    session_.leader = plan_.roster.ranks[0];
    session_.leader_incarnation = plan_.addresses.at(session_.leader).incarnation;
    await_readable(plan_, listener_.get());
  }

  bool step(uint64_t now_ns, std::shared_ptr<Node>& node) override;

 private:
  enum class Phase { kGathers, kHandsOut, kTells };

  void accept_all();
  void receive(Visit& visit);
  bool handle(Visit& visit, const std::vector<uint8_t>& message, std::vector<Fd>& descriptors);
  bool greeted(Visit& visit, const std::vector<uint8_t>& message);
  bool proved(Visit& visit, const std::vector<uint8_t>& message);
  bool bells_came(Visit& visit, const std::vector<uint8_t>& message, std::vector<Fd>& descriptors);
  void leave_out(Visit& visit, const std::string& why);
  void look_for_the_dead();
  bool all_here() const;
  bool make_arena();
  void hand_out();
  void hand_out_process(Visit& visit, uint32_t process);
  void tell_verdict();
  bool all_in(Visit::State state) const;
  bool all_idle() const;
  Session session_of(const Visit& visit) const;
  void enter(Phase phase, uint64_t now_ns) {
    phase_ = phase;
    deadline_ns_ = now_ns + plan_.timeout_ns;
  }

  Plan plan_;
  Fd listener_;
  Session session_;
  std::list<Visit> visits_;
  std::vector<Visit*> seats_;     ///< by process
  std::vector<uint8_t> missing_;  ///< by process: given up
  std::shared_ptr<Node> node_;
  Phase phase_ = Phase::kGathers;
  uint64_t deadline_ns_ = 0;
  uint64_t next_look_ns_ = 0;
};

void Leader::accept_all() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    Fd socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    Credentials who;
    if (!credentials_of(socket.get(), who).ok() || who.uid != ::geteuid() || who.pid <= 0) {
      plan_.host.log(TUTTI_LOG_WARN, "a connection of another user or pid namespace was refused (uid " + std::to_string(who.uid) +
                                         ", pid " + std::to_string(who.pid) + ")");
      continue;
    }
    const auto is_stranger = [](const Visit& visit) { return !visit.proved(); };
    if (static_cast<size_t>(std::count_if(visits_.begin(), visits_.end(), is_stranger)) >= kMaxStrangers + seats_.size()) {
      visits_.erase(std::find_if(visits_.begin(), visits_.end(), is_stranger));
    }
    await_readable(plan_, socket.get());
    visits_.emplace_back(std::move(socket));
    // Opened before the proof comes: who proves after that was alive, so that the number cannot belong to another by now.
    visits_.back().pidfd = open_pidfd(who.pid);
  }
}

Session Leader::session_of(const Visit& visit) const {
  Session session = session_;
  session.guest_nonce = visit.guest_nonce;
  session.leader_nonce = visit.leader_nonce;
  return session;
}

bool Leader::greeted(Visit& visit, const std::vector<uint8_t>& message) {
  Hello hello;
  if (message.size() != sizeof hello || !read_record(message, hello) || hello.magic != Hello::kMagic) return false;
  visit.guest_nonce = hello.nonce;
  plan_.host.random(visit.leader_nonce.data(), visit.leader_nonce.size());
  Challenge challenge;
  challenge.nonce = visit.leader_nonce;
  challenge.mac = challenge_mac(plan_.host, session_of(visit));
  visit.wire.post(&challenge, sizeof challenge);
  visit.state = Visit::State::kProves;
  return true;
}

bool Leader::proved(Visit& visit, const std::vector<uint8_t>& message) {
  Proof proof;
  if (message.size() != sizeof proof || !read_record(message, proof)) return false;
  if (!same_bytes(proof_mac(plan_.host, session_of(visit), proof), proof.mac)) return false;
  const uint32_t index = plan_.roster.index_of(proof.rank);
  if (index == UINT32_MAX || plan_.addresses.at(proof.rank).incarnation != proof.incarnation) return false;
  const uint32_t process = plan_.roster.process_of[index];
  if (process == 0 || seats_[process] != nullptr || missing_[process] != 0 || !visit.pidfd) return false;
  visit.process = process;
  visit.bells.reserve(plan_.roster.processes[process].size());
  visit.state = Visit::State::kSendsBells;
  seats_[process] = &visit;
  return true;
}

bool Leader::bells_came(Visit& visit, const std::vector<uint8_t>& message, std::vector<Fd>& descriptors) {
  Letter letter;
  const size_t expected = plan_.roster.processes[visit.process].size();
  if (!read_record(message, letter) || letter.kind != Letter::kBells || descriptors.empty() ||
      visit.bells.size() + descriptors.size() > expected) {
    return false;
  }
  std::move(descriptors.begin(), descriptors.end(), std::back_inserter(visit.bells));
  if (visit.bells.size() == expected) visit.state = Visit::State::kSeated;
  return true;
}

bool Leader::handle(Visit& visit, const std::vector<uint8_t>& message, std::vector<Fd>& descriptors) {
  Letter letter;
  switch (visit.state) {
    case Visit::State::kGreets:
      return greeted(visit, message);
    case Visit::State::kProves:
      return proved(visit, message);
    case Visit::State::kSendsBells:
      return bells_came(visit, message, descriptors);
    case Visit::State::kAttaches:
      if (!read_record(message, letter) || letter.kind != Letter::kAttached || letter.first != 1) return false;
      visit.state = Visit::State::kAttached;
      return true;
    case Visit::State::kSeated:
    case Visit::State::kAttached:
    case Visit::State::kGone:
      break;
  }
  return false;
}

void Leader::receive(Visit& visit) {
  std::vector<uint8_t> message;
  std::vector<Fd> descriptors;
  while (visit.state != Visit::State::kGone) {
    const Wire::Got got = visit.wire.receive(message, visit.proved() ? &descriptors : nullptr);
    if (got == Wire::Got::kNothing) break;
    if (got == Wire::Got::kEnd) return leave_out(visit, "it closed the connection");
    if (!handle(visit, message, descriptors)) {
      return leave_out(visit, visit.proved() ? "it cannot attach" : "it does not belong to this job");
    }
  }
  if (visit.state != Visit::State::kGone && !visit.wire.flush()) leave_out(visit, "it closed the connection");
}

void Leader::leave_out(Visit& visit, const std::string& why) {
  if (visit.process == UINT32_MAX) {
    plan_.host.log(TUTTI_LOG_WARN, "a connection was closed: " + why);
  } else {
    const uint32_t rank = plan_.roster.ranks[plan_.roster.processes[visit.process][0]];
    plan_.host.log(TUTTI_LOG_INFO, "rank " + std::to_string(rank) + " does not take part in shared memory: " + why);
    missing_[visit.process] = 1;
    seats_[visit.process] = nullptr;
  }
  visit.state = Visit::State::kGone;
  visit.wire = Wire{};
  visit.pidfd.reset();
}

/// Processes that have ended need not be waited for. A number that was reused only means to wait.
void Leader::look_for_the_dead() {
  for (uint32_t process = 1; process < seats_.size(); ++process) {
    if (seats_[process] != nullptr || missing_[process] != 0) continue;
    const uint32_t rank = plan_.roster.ranks[plan_.roster.processes[process][0]];
    const auto pid = static_cast<pid_t>(plan_.addresses.at(rank).pid);
    const Fd pidfd = open_pidfd(pid);
    pollfd ended{pidfd.get(), POLLIN, 0};
    if (pidfd ? ::poll(&ended, 1, 0) != 1 : errno != ESRCH) continue;
    plan_.host.log(TUTTI_LOG_INFO, "rank " + std::to_string(rank) + " ended before it attached to shared memory");
    missing_[process] = 1;
  }
}

bool Leader::all_here() const {
  for (uint32_t process = 1; process < seats_.size(); ++process) {
    const bool here = seats_[process] != nullptr && seats_[process]->state == Visit::State::kSeated;
    if (!here && missing_[process] == 0) return false;
  }
  return true;
}

bool Leader::all_in(Visit::State state) const {
  return std::all_of(seats_.begin(), seats_.end(), [&](const Visit* v) { return v == nullptr || v->state == state; });
}

bool Leader::all_idle() const {
  return std::all_of(seats_.begin(), seats_.end(), [](const Visit* v) { return v == nullptr || v->wire.idle(); });
}

bool Leader::make_arena() {
  Outcome made = start_node(plan_, node_);
  if (made.ok()) made = Arena::create(static_cast<uint32_t>(plan_.roster.ranks.size()), plan_.arena_bytes, node_->arena);
  if (made.ok()) return true;
  plan_.host.log(TUTTI_LOG_WARN, "no shared memory on this node: " + made.text);
  node_.reset();
  return false;
}

void Leader::hand_out_process(Visit& visit, uint32_t process) {
  const std::vector<uint32_t>& members = plan_.roster.processes[process];
  constexpr size_t kBatch = Wire::kMaxDescriptors - 1;
  for (size_t first = 0; first < members.size(); first += kBatch) {
    Letter letter;
    letter.kind = Letter::kProcess;
    letter.process = process;
    letter.first = static_cast<uint32_t>(first);
    letter.count = static_cast<uint32_t>(std::min(kBatch, members.size() - first));
    std::vector<int> descriptors;
    if (first == 0) descriptors.push_back(node_->watches[process].fd.get());
    for (uint32_t i = 0; i < letter.count; ++i) descriptors.push_back(node_->bells[members[first + i]].get());
    visit.wire.post(&letter, sizeof letter, std::move(descriptors));
  }
}

void Leader::hand_out() {
  node_->watches.resize(seats_.size());
  node_->watches[0] = {open_pidfd(::getpid()), 0};
  for (uint32_t process = 1; process < seats_.size(); ++process) {
    if (seats_[process] == nullptr) continue;
    node_->watches[process] = {std::move(seats_[process]->pidfd), process};
    const std::vector<uint32_t>& members = plan_.roster.processes[process];
    for (size_t i = 0; i < members.size(); ++i) node_->bells[members[i]] = std::move(seats_[process]->bells[i]);
  }
  const auto here = [&](uint32_t process) { return process == 0 || seats_[process] != nullptr; };
  Letter arena;
  arena.kind = Letter::kArena;
  arena.slots = plan_.slots;
  arena.slot_bytes = plan_.slot_bytes;
  arena.arena_bytes = node_->arena->bytes();
  for (uint32_t process = 0; process < seats_.size(); ++process) arena.process += here(process) ? 1 : 0;
  --arena.process;  // not its own
  for (uint32_t guest = 1; guest < seats_.size(); ++guest) {
    if (seats_[guest] == nullptr) continue;
    Visit& visit = *seats_[guest];
    visit.state = Visit::State::kAttaches;
    visit.wire.post(&arena, sizeof arena, {node_->arena->memfd()});
    for (uint32_t process = 0; process < seats_.size(); ++process) {
      if (process != guest && here(process)) hand_out_process(visit, process);
    }
  }
}

void Leader::tell_verdict() {
  std::vector<uint8_t> message(sizeof(Letter) + kMaskBytes, 0);
  Letter letter;
  letter.kind = Letter::kVerdict;
  std::memcpy(message.data(), &letter, sizeof letter);
  for (uint32_t process = 0; process < seats_.size() && node_; ++process) {
    if (process != 0 && seats_[process] == nullptr) continue;
    node_->seated[process] = 1;
    message[sizeof(Letter) + process / 8] |= static_cast<uint8_t>(1u << (process % 8));
  }
  for (Visit* visit : seats_) {
    if (visit != nullptr) visit->wire.post(message.data(), message.size());
  }
}

bool Leader::step(uint64_t now_ns, std::shared_ptr<Node>& node) {
  if (deadline_ns_ == 0) enter(Phase::kGathers, now_ns);
  if (phase_ == Phase::kGathers) accept_all();
  for (Visit& visit : visits_) {
    if (visit.state != Visit::State::kGone && phase_ != Phase::kTells) receive(visit);
  }
  visits_.remove_if([](const Visit& visit) { return visit.state == Visit::State::kGone; });
  const bool late = now_ns >= deadline_ns_;
  if (phase_ == Phase::kGathers) {
    if (now_ns >= next_look_ns_) {
      look_for_the_dead();
      next_look_ns_ = now_ns + 50'000'000;
    }
    if (!all_here() && !late) return false;
    for (Visit& visit : visits_) {
      if (visit.process != UINT32_MAX && visit.state != Visit::State::kSeated) leave_out(visit, "it takes too long");
    }
    visits_.remove_if([](const Visit& visit) { return visit.process == UINT32_MAX || visit.state == Visit::State::kGone; });
    listener_.reset();
    enter(make_arena() ? Phase::kHandsOut : Phase::kTells, now_ns);
    node_ ? hand_out() : tell_verdict();
  }
  if (phase_ == Phase::kHandsOut) {
    for (Visit& visit : visits_) receive(visit);
    visits_.remove_if([](const Visit& visit) { return visit.state == Visit::State::kGone; });
    if (!all_in(Visit::State::kAttached)) {
      if (now_ns < deadline_ns_) return false;
      for (Visit& visit : visits_) {
        if (visit.state != Visit::State::kAttached) leave_out(visit, "it takes too long");
      }
    }
    enter(Phase::kTells, now_ns);
    tell_verdict();
  }
  // Who ends now has attached: its death will be seen by its pidfd.
  for (Visit* visit : seats_) {
    if (visit != nullptr && !visit->wire.flush()) visit->wire = Wire{};
  }
  if (!all_idle() && now_ns < deadline_ns_) return false;
  if (node_) {
    std::erase_if(node_->watches, [&](const Watch& watch) { return watch.process == 0 || node_->seated[watch.process] == 0; });
  }
  node = std::move(node_);
  return true;
}

}  // namespace

std::unique_ptr<Gathering> Gathering::lead(Plan plan, Fd listener) {
  return std::make_unique<Leader>(std::move(plan), std::move(listener));
}

}  // namespace tutti::shm
