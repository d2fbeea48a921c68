// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// A guest's side of a gathering.
#include <unistd.h>

#include <algorithm>

#include "gathering.hpp"

namespace tutti::shm {
namespace {

class Guest final : public Gathering {
 public:
  explicit Guest(Plan plan) : plan_{std::move(plan)} {
    session_.job = plan_.job;
    session_.leader = plan_.roster.ranks[0];
    session_.leader_incarnation = plan_.addresses.at(session_.leader).incarnation;
  }

  bool step(uint64_t now_ns, std::shared_ptr<Node>& node) override;

 private:
  enum class State { kConnects, kIsChallenged, kGetsArena, kGetsProcesses, kAwaitsVerdict, kIn, kOut };

  void connect();
  void receive();
  Outcome handle(const std::vector<uint8_t>& message, std::vector<Fd>& descriptors);
  Outcome challenged(const std::vector<uint8_t>& message);
  Outcome arena_came(const std::vector<uint8_t>& message, std::vector<Fd>& descriptors);
  Outcome process_came(const std::vector<uint8_t>& message, std::vector<Fd>& descriptors);
  Outcome judged(const std::vector<uint8_t>& message);
  void attached();
  void give_up(const std::string& why);
  static Outcome bad(const char* what) {
    return Outcome::failure(TUTTI_ERR_PROTOCOL, std::string{"the leader's "} + what + " is wrong");
  }

  Plan plan_;
  Session session_;
  Wire wire_;
  State state_ = State::kConnects;
  uint64_t deadline_ns_ = 0;
  std::shared_ptr<Node> node_;
  Letter arena_;
  Fd memfd_;
  std::vector<uint32_t> bells_of_;  ///< by process: how many have come
  uint32_t complete_ = 0;
};

void Guest::give_up(const std::string& why) {
  plan_.host.log(TUTTI_LOG_INFO, "this rank does not take part in shared memory: " + why);
  // Others may have been told that it does.
  if (node_ && node_->arena) {
    for (const uint32_t index : plan_.roster.processes[plan_.process]) node_->depart(index, RankState::kDead);
  }
  node_.reset();
  wire_ = Wire{};
  state_ = State::kOut;
}

void Guest::connect() {
  Fd socket;
  const Outcome connected = connect_to(plan_.job, session_.leader_incarnation, socket);
  if (connected.status == TUTTI_TP_AGAIN) return;
  if (!connected.ok()) return give_up("rank " + std::to_string(session_.leader) + " cannot be reached: " + connected.text);
  Credentials who;
  if (!credentials_of(socket.get(), who).ok() || who.uid != ::geteuid()) {
    return give_up("rank " + std::to_string(session_.leader) + "'s socket belongs to another user");
  }
  await_readable(plan_, socket.get());
  wire_ = Wire{std::move(socket)};
  Hello hello;
  plan_.host.random(session_.guest_nonce.data(), session_.guest_nonce.size());
  hello.nonce = session_.guest_nonce;
  wire_.post(&hello, sizeof hello);
  state_ = State::kIsChallenged;
}

Outcome Guest::challenged(const std::vector<uint8_t>& message) {
  Challenge challenge;
  if (message.size() != sizeof challenge || !read_record(message, challenge)) return bad("challenge");
  session_.leader_nonce = challenge.nonce;
  if (!same_bytes(challenge_mac(plan_.host, session_), challenge.mac)) {
    return Outcome::failure(TUTTI_ERR_AUTH, "the leader does not belong to this job");
  }
  if (Outcome started = start_node(plan_, node_); !started.ok()) return started;
  Proof proof;
  const std::vector<uint32_t>& members = plan_.roster.processes[plan_.process];
  proof.rank = plan_.roster.ranks[members[0]];
  proof.incarnation = plan_.addresses.at(proof.rank).incarnation;
  proof.mac = proof_mac(plan_.host, session_, proof);
  wire_.post(&proof, sizeof proof);
  for (size_t first = 0; first < members.size(); first += Wire::kMaxDescriptors) {
    Letter letter;
    letter.kind = Letter::kBells;
    std::vector<int> bells;
    for (size_t i = first; i < std::min(members.size(), first + Wire::kMaxDescriptors); ++i) {
      bells.push_back(node_->bells[members[i]].get());
    }
    wire_.post(&letter, sizeof letter, std::move(bells));
  }
  state_ = State::kGetsArena;
  return Outcome::success();
}

Outcome Guest::arena_came(const std::vector<uint8_t>& message, std::vector<Fd>& descriptors) {
  Letter letter;
  if (!read_record(message, letter)) return bad("letter");
  if (letter.kind == Letter::kVerdict) return judged(message);  // there is no arena
  if (letter.kind != Letter::kArena || descriptors.size() != 1 || letter.process >= plan_.roster.processes.size() ||
      !valid_geometry(letter.slots, letter.slot_bytes)) {
    return bad("arena");
  }
  arena_ = letter;
  memfd_ = std::move(descriptors[0]);
  bells_of_.assign(plan_.roster.processes.size(), 0);
  state_ = State::kGetsProcesses;
  return Outcome::success();
}

Outcome Guest::process_came(const std::vector<uint8_t>& message, std::vector<Fd>& descriptors) {
  Letter letter;
  if (!read_record(message, letter) || letter.kind != Letter::kProcess || letter.process >= bells_of_.size() ||
      letter.process == plan_.process) {
    return bad("letter");
  }
  const std::vector<uint32_t>& members = plan_.roster.processes[letter.process];
  uint32_t& known = bells_of_[letter.process];
  const size_t extra = letter.first == 0 ? 1 : 0;
  if (letter.first != known || letter.count == 0 || letter.count > members.size() - known ||
      descriptors.size() != letter.count + extra) {
    return bad("list of processes");
  }
  if (extra != 0) node_->watches.push_back({std::move(descriptors[0]), letter.process});
  for (size_t i = 0; i < letter.count; ++i) node_->bells[members[known + i]] = std::move(descriptors[i + extra]);
  known += letter.count;
  if (known == members.size()) ++complete_;
  return Outcome::success();
}

void Guest::attached() {
  Outcome adopted =
      Arena::adopt(std::move(memfd_), static_cast<uint32_t>(plan_.roster.ranks.size()), arena_.arena_bytes, node_->arena);
  node_->slots = arena_.slots;
  node_->slot_bytes = arena_.slot_bytes;
  Letter answer;
  answer.kind = Letter::kAttached;
  answer.first = adopted.ok() ? 1 : 0;
  wire_.post(&answer, sizeof answer);
  if (adopted.ok()) {
    state_ = State::kAwaitsVerdict;
    return;
  }
  wire_.flush();
  give_up(adopted.text);
}

Outcome Guest::judged(const std::vector<uint8_t>& message) {
  Letter letter;
  if (!read_record(message, letter) || letter.kind != Letter::kVerdict || message.size() != sizeof letter + kMaskBytes) {
    return bad("verdict");
  }
  for (uint32_t process = 0; process < node_->seated.size(); ++process) {
    node_->seated[process] = static_cast<uint8_t>(message[sizeof letter + process / 8] >> (process % 8) & 1);
  }
  if (node_->arena == nullptr || node_->seated[plan_.process] == 0) {
    return Outcome::failure(TUTTI_ERR_UNSUPPORTED, "the leader of the node left it out");
  }
  for (uint32_t index = 0; index < node_->bells.size(); ++index) {
    if (node_->is_seated(index) && !node_->bells[index]) return bad("verdict");
  }
  std::erase_if(node_->watches, [&](const Watch& watch) { return node_->seated[watch.process] == 0; });
  state_ = State::kIn;
  return Outcome::success();
}

Outcome Guest::handle(const std::vector<uint8_t>& message, std::vector<Fd>& descriptors) {
  switch (state_) {
    case State::kIsChallenged:
      return challenged(message);
    case State::kGetsArena:
      return arena_came(message, descriptors);
    case State::kGetsProcesses:
      return process_came(message, descriptors);
    case State::kAwaitsVerdict:
      return judged(message);
    case State::kConnects:
    case State::kIn:
    case State::kOut:
      break;
  }
  return bad("letter");
}

void Guest::receive() {
  std::vector<uint8_t> message;
  std::vector<Fd> descriptors;
  while (state_ != State::kIn && state_ != State::kOut) {
    const bool proved = state_ != State::kIsChallenged;
    const Wire::Got got = wire_.receive(message, proved ? &descriptors : nullptr);
    if (got == Wire::Got::kNothing) break;
    if (got == Wire::Got::kEnd) return give_up("the leader of the node closed the connection");
    if (const Outcome handled = handle(message, descriptors); !handled.ok()) return give_up(handled.text);
    if (state_ == State::kGetsProcesses && complete_ == arena_.process) attached();
  }
  if (state_ != State::kOut && !wire_.flush()) give_up("the leader of the node closed the connection");
}

bool Guest::step(uint64_t now_ns, std::shared_ptr<Node>& node) {
  // Longer than the leader's two phases, so that it is the leader who decides.
  if (deadline_ns_ == 0) deadline_ns_ = now_ns + 3 * plan_.timeout_ns;
  if (state_ == State::kConnects) connect();
  if (state_ != State::kConnects && state_ != State::kOut) receive();
  if (state_ != State::kIn && state_ != State::kOut && now_ns >= deadline_ns_) give_up("the leader of the node does not answer");
  if (state_ != State::kIn && state_ != State::kOut) return false;
  node = std::move(node_);
  return true;
}

}  // namespace

std::unique_ptr<Gathering> Gathering::attend(Plan plan) { return std::make_unique<Guest>(std::move(plan)); }

}  // namespace tutti::shm
