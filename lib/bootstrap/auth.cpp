// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/auth.hpp"

#include <algorithm>
#include <cassert>

namespace tutti {
namespace {

// The hello: magic [0,8), version [8,12), role [12], zero [13,16), hash of the purpose [16,32), nonce [32,64). It never
// changes, so that different versions can still tell each other their numbers.
constexpr std::array<std::byte, 8> kMagic{std::byte{'T'}, std::byte{'U'},  std::byte{'T'},  std::byte{'T'},
                                          std::byte{'I'}, std::byte{0xf5}, std::byte{0x0d}, std::byte{0x0a}};
constexpr size_t kVersionAt = 8;
constexpr size_t kRoleAt = 12;
constexpr size_t kPurposeAt = 16;
constexpr size_t kPurposeBytes = 16;
constexpr size_t kNonceAt = 32;

HandshakeRole opposite(HandshakeRole role) {
  return role == HandshakeRole::initiator ? HandshakeRole::responder : HandshakeRole::initiator;
}

}  // namespace

Handshake::Handshake(HandshakeRole role, const Secret& secret, std::string_view purpose, Random& random, uint32_t version)
    : role_(role), version_(version), secret_(secret) {
  std::copy(kMagic.begin(), kMagic.end(), own_hello_.begin());
  for (size_t i = 0; i < 4; ++i) own_hello_[kVersionAt + i] = static_cast<std::byte>(version >> (8 * i));
  own_hello_[kRoleAt] = static_cast<std::byte>(role);
  // Hashed without the secret: a hello may be seen by strangers.
  const Mac purpose_hash = keyed_mac(Secret(), "purpose", std::as_bytes(std::span(purpose)));
  std::copy_n(purpose_hash.begin(), kPurposeBytes, own_hello_.begin() + kPurposeAt);
  random.fill(std::span(own_hello_).subspan(kNonceAt));
  if (role == HandshakeRole::initiator) out_.assign(own_hello_.begin(), own_hello_.end());
}

size_t Handshake::wanted() const noexcept {
  if (state_ != State::running) return 0;
  return in_bytes_ < kHelloBytes ? kHelloBytes - in_bytes_ : kMostBytes - in_bytes_;
}

void Handshake::feed(std::span<const std::byte> bytes) {
  assert(bytes.size() <= wanted());
  if (bytes.empty()) return;
  if (in_bytes_ < kHelloBytes) {
    std::copy(bytes.begin(), bytes.end(), peer_hello_.begin() + static_cast<ptrdiff_t>(in_bytes_));
    in_bytes_ += bytes.size();
    const size_t seen = std::min(in_bytes_, kMagic.size());
    if (!std::equal(kMagic.begin(), kMagic.begin() + static_cast<ptrdiff_t>(seen), peer_hello_.begin())) {
      return refuse(error(TUTTI_ERR_PROTOCOL, "the other side does not speak Tutti's protocol"));
    }
    if (in_bytes_ == kHelloBytes) take_hello();
  } else {
    std::copy(bytes.begin(), bytes.end(), peer_proof_.begin() + static_cast<ptrdiff_t>(in_bytes_ - kHelloBytes));
    in_bytes_ += bytes.size();
    if (in_bytes_ == kMostBytes) take_proof();
  }
}

void Handshake::take_hello() {
  have_hello_ = true;
  for (size_t i = 0; i < 4; ++i) peer_version_ |= std::to_integer<uint32_t>(peer_hello_[kVersionAt + i]) << (8 * i);
  if (peer_hello_[kRoleAt] != static_cast<std::byte>(opposite(role_))) {
    return refuse(error(TUTTI_ERR_PROTOCOL, "the other side takes the same role in the handshake: a connection to oneself?"));
  }
  // The responder answers even when it is about to refuse, so that the other side can say why.
  if (role_ == HandshakeRole::responder) out_.insert(out_.end(), own_hello_.begin(), own_hello_.end());
  if (!std::equal(own_hello_.begin() + kPurposeAt, own_hello_.begin() + kPurposeAt + kPurposeBytes,
                  peer_hello_.begin() + kPurposeAt)) {
    return refuse(error(TUTTI_ERR_AUTH, "the other side belongs to another job, or is not the part of it that was expected"));
  }
  if (role_ == HandshakeRole::initiator) {
    const Mac own = proof(role_);
    out_.insert(out_.end(), own.begin(), own.end());
  }
}

void Handshake::take_proof() {
  if (!equal_macs(peer_proof_, proof(opposite(role_)))) {
    return refuse(error(TUTTI_ERR_AUTH, "the other side does not have this job's secret"));
  }
  if (role_ == HandshakeRole::responder) {
    const Mac own = proof(role_);
    out_.insert(out_.end(), own.begin(), own.end());
  }
  if (peer_version_ != version_) {
    return refuse(error(TUTTI_ERR_VERSION,
                        "this process speaks version {} of Tutti's protocol, the other side version {}: install the same "
                        "release everywhere",
                        version_, peer_version_));
  }
  state_ = State::accepted;
  secret_.wipe();
}

void Handshake::refuse(Status why) {
  state_ = State::refused;
  if (why.code() == TUTTI_ERR_PROTOCOL) out_sent_ = out_.size();  // nothing more for somebody who is not one of us
  why_ = std::move(why);
  secret_.wipe();
}

Mac Handshake::proof(HandshakeRole prover) const {
  const bool first = role_ == HandshakeRole::initiator;
  std::array<std::byte, 2 * kHelloBytes> both{};
  std::copy_n((first ? own_hello_ : peer_hello_).begin(), kHelloBytes, both.begin());
  std::copy_n((first ? peer_hello_ : own_hello_).begin(), kHelloBytes, both.begin() + kHelloBytes);
  return keyed_mac(secret_, prover == HandshakeRole::initiator ? "handshake initiator" : "handshake responder", both);
}

Io drive(Handshake& handshake, Stream& stream) {
  std::array<std::byte, Handshake::kMostBytes> buffer;
  while (true) {
    const bool refused = handshake.state() == Handshake::State::refused;
    if (const std::span<const std::byte> out = handshake.output(); !out.empty()) {
      size_t moved = 0;
      const Io io = stream.write(out, &moved);
      if (io == Io::done) {
        handshake.sent(moved);
        continue;
      }
      // What a refused peer does not take is not worth waiting for.
      return refused && io != Io::again ? Io::done : io;
    }
    if (handshake.state() != Handshake::State::running) return Io::done;
    size_t moved = 0;
    const Io io = stream.read(std::span(buffer).first(handshake.wanted()), &moved);
    if (io != Io::done) return io;
    handshake.feed(std::span(buffer).first(moved));
  }
}

}  // namespace tutti
