// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "handshake.hpp"

#include <algorithm>

namespace tutti::tcp {
namespace {

constexpr std::uint8_t kMagic[8] = {'T', 'u', 't', 't', 'i', 'T', 'C', 'P'};
constexpr std::uint8_t kConfirmation[8] = {'g', 'o', ' ', 'a', 'h', 'e', 'a', 'd'};
constexpr std::size_t kGreetingBytes = 8 + 8 + kNonceBytes;
constexpr std::size_t kChallengeBody = 8 + 4 + 4 + 16 + kNonceBytes;
constexpr std::size_t kProofBody = 4 + 4 + 16 + 8 + 8;
constexpr std::size_t kVerdictBody = 16;
constexpr std::size_t kLabelBytes = 16;

std::string text_of(const char* before, std::uint64_t number, const char* after) {
  return before + std::to_string(number) + after;
}

}  // namespace

Handshake::Handshake(const Host& host, const Identity& self, bool connector)
    : host_(&host), self_(self), connector_(connector) {}

Handshake Handshake::connector(const Host& host, const Identity& self, std::uint32_t peer,
                               const Incarnation& incarnation) {
  Handshake handshake(host, self, true);
  handshake.peer_ = peer;
  handshake.peer_incarnation_ = incarnation;
  std::uint8_t greeting[kGreetingBytes] = {};
  std::memcpy(greeting, kMagic, sizeof kMagic);
  host.random(greeting + 16, kNonceBytes);
  handshake.append(greeting, sizeof greeting);
  handshake.emit(greeting, sizeof greeting);
  handshake.want_ = kChallengeBody + kMacBytes;
  handshake.step_ = 1;
  return handshake;
}

Handshake Handshake::acceptor(const Host& host, const Identity& self) {
  Handshake handshake(host, self, false);
  handshake.want_ = kGreetingBytes;
  return handshake;
}

void Handshake::emit(const std::uint8_t* bytes, std::size_t count) {
  if (out_sent_ == out_end_) out_sent_ = out_end_ = 0;
  std::memcpy(out_.data() + out_end_, bytes, count);
  out_end_ += count;
}

void Handshake::append(const std::uint8_t* bytes, std::size_t count) {
  std::memcpy(transcript_.data() + transcript_bytes_, bytes, count);
  transcript_bytes_ += count;
}

void Handshake::sign(const char* label, std::uint8_t out[kMacBytes]) const {
  std::array<std::uint8_t, kLabelBytes + 16 + sizeof transcript_> message{};
  std::memcpy(message.data(), label, std::min(std::strlen(label), kLabelBytes - 1));
  std::memcpy(message.data() + kLabelBytes, self_.job_id.data(), 16);
  std::memcpy(message.data() + kLabelBytes + 16, transcript_.data(), transcript_bytes_);
  host_->mac(message.data(), kLabelBytes + 16 + transcript_bytes_, out);
}

/// Appends the message to the transcript and checks the hash behind its body, in constant time.
bool Handshake::proven(const char* label, const std::uint8_t* message, std::size_t body_bytes) {
  append(message, body_bytes);
  std::uint8_t expected[kMacBytes];
  sign(label, expected);
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < kMacBytes; ++i) {
    difference = static_cast<std::uint8_t>(difference | (expected[i] ^ message[body_bytes + i]));
  }
  append(message + body_bytes, kMacBytes);
  if (difference == 0) {
    verified_ = true;
    return true;
  }
  fail("it is not of this job, or its secret differs");
  return false;
}

void Handshake::fail(std::string why) {
  state_ = State::kFailed;
  failure_ = std::move(why);
  out_sent_ = out_end_ = 0;
}

void Handshake::feed(const std::uint8_t* bytes, std::size_t count) {
  while (count > 0 && state_ == State::kRunning) {
    const std::size_t take = std::min(count, want_ - have_);
    std::memcpy(in_.data() + have_, bytes, take);
    have_ += take;
    bytes += take;
    count -= take;
    if (step_ <= 1 && std::memcmp(in_.data(), kMagic, std::min(have_, sizeof kMagic)) != 0) {
      return fail("it does not speak Tutti's protocol");
    }
    if (have_ < want_) return;
    have_ = 0;
    switch (step_) {
      case 0: greeted(); break;
      case 1: challenged(); break;
      case 2: judged(); break;
      case 3: proved(); break;
      default: confirmed(); break;
    }
  }
}

void Handshake::greeted() {
  append(in_.data(), kGreetingBytes);
  std::uint8_t challenge[kChallengeBody + kMacBytes] = {};
  std::memcpy(challenge, kMagic, sizeof kMagic);
  store_le(challenge + 8, kProtocolVersion);
  store_le(challenge + 12, self_.rank);
  std::memcpy(challenge + 16, self_.incarnation.data(), 16);
  host_->random(challenge + 32, kNonceBytes);
  append(challenge, kChallengeBody);
  sign("tutti challenge", challenge + kChallengeBody);
  append(challenge + kChallengeBody, kMacBytes);
  emit(challenge, sizeof challenge);
  step_ = 3;
  want_ = kProofBody + kMacBytes;
}

void Handshake::challenged() {
  if (!proven("tutti challenge", in_.data(), kChallengeBody)) return;
  const auto version = load_le<std::uint16_t>(in_.data() + 8);
  const auto rank = load_le<std::uint32_t>(in_.data() + 12);
  if (version != kProtocolVersion) return fail(text_of("it speaks protocol version ", version, ""));
  if (rank == self_.rank && std::memcmp(in_.data() + 16, self_.incarnation.data(), 16) == 0) {
    return fail("the address leads back to this rank itself");
  }
  if (rank != peer_) return fail(text_of("rank ", rank, " answers there"));
  if (std::memcmp(in_.data() + 16, peer_incarnation_.data(), 16) != 0) return fail("an earlier or later run of it answers");
  std::uint8_t proof[kProofBody + kMacBytes] = {};
  store_le(proof, self_.rank);
  store_le(proof + 4, peer_);
  std::memcpy(proof + 8, self_.incarnation.data(), 16);
  store_le(proof + 24, self_.window_bytes);
  store_le(proof + 32, kProtocolVersion);
  append(proof, kProofBody);
  sign("tutti proof", proof + kProofBody);
  append(proof + kProofBody, kMacBytes);
  emit(proof, sizeof proof);
  step_ = 2;
  want_ = kVerdictBody + kMacBytes;
}

void Handshake::proved() {
  if (!proven("tutti proof", in_.data(), kProofBody)) return;
  peer_ = load_le<std::uint32_t>(in_.data());
  const auto wanted = load_le<std::uint32_t>(in_.data() + 4);
  std::memcpy(peer_incarnation_.data(), in_.data() + 8, 16);
  peer_window_bytes_ = load_le<std::uint64_t>(in_.data() + 24);
  const auto version = load_le<std::uint16_t>(in_.data() + 32);
  if (version != kProtocolVersion) return fail(text_of("it speaks protocol version ", version, ""));
  if (wanted != self_.rank) return fail(text_of("it looks for rank ", wanted, ""));
  if (peer_ == self_.rank) return fail("it claims this rank's number");
  if (peer_window_bytes_ < kMinWindowBytes || peer_window_bytes_ > kMaxWindowBytes) return fail("its window is out of range");
  state_ = State::kAsksVerdict;
}

void Handshake::decide(Verdict verdict) {
  std::uint8_t message[kVerdictBody + kMacBytes] = {};
  message[0] = static_cast<std::uint8_t>(verdict);
  store_le(message + 8, self_.window_bytes);
  append(message, kVerdictBody);
  sign("tutti verdict", message + kVerdictBody);
  emit(message, sizeof message);
  step_ = 4;
  want_ = sizeof kConfirmation;
  state_ = verdict == Verdict::kAccept ? State::kRunning : State::kYielded;
}

void Handshake::judged() {
  if (!proven("tutti verdict", in_.data(), kVerdictBody)) return;
  peer_window_bytes_ = load_le<std::uint64_t>(in_.data() + 8);
  switch (static_cast<Verdict>(in_[0])) {
    case Verdict::kAccept:
      if (peer_window_bytes_ < kMinWindowBytes || peer_window_bytes_ > kMaxWindowBytes) {
        return fail("its window is out of range");
      }
      emit(kConfirmation, sizeof kConfirmation);
      state_ = State::kEstablished;
      return;
    case Verdict::kYield:
      state_ = State::kYielded;
      return;
    case Verdict::kRefuse:
      return fail("it refused the connection");
  }
  fail("unknown verdict");
}

void Handshake::confirmed() {
  if (std::memcmp(in_.data(), kConfirmation, sizeof kConfirmation) != 0) return fail("wrong confirmation");
  state_ = State::kEstablished;
}

}  // namespace tutti::tcp
