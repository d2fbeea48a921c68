// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "bootstrap/net.hpp"
#include "bootstrap/secret.hpp"

namespace tutti {

/// Raised whenever what ranks say to each other changes; ranks with different numbers refuse each other.
inline constexpr uint32_t kProtocolVersion = 1;

enum class HandshakeRole : uint8_t { initiator = 1, responder = 2 };

/// Mutual keyed challenge-response at the start of every connection, as a state machine over bytes; it does no I/O.
///
///   initiator  hello:  magic, version, role, purpose's hash, nonce                       64 bytes
///   responder  hello:  the same with its own nonce                                        64 bytes
///   initiator  proof:  MAC over both hellos                                               32 bytes
///   responder  proof:  MAC over both hellos                                               32 bytes
///
/// The initiator proves itself first, so that a stranger who knocks learns nothing. A proof covers both versions, both
/// nonces, the purpose ("store", "control", "data" plus whatever else both sides must agree on, such as the job id) and the
/// prover's role, so that none can be replayed or reflected. The layout of the hello never changes: different versions
/// authenticate each other and then report both numbers.
class Handshake {
 public:
  static constexpr size_t kHelloBytes = 64;
  static constexpr size_t kMostBytes = kHelloBytes + 32;  // all that a side ever takes in

  Handshake(HandshakeRole role, const Secret& secret, std::string_view purpose, Random& random,
            uint32_t version = kProtocolVersion);

  enum class State : uint8_t { running, accepted, refused };
  State state() const noexcept { return state_; }
  /// refused: TUTTI_ERR_PROTOCOL (not Tutti at all), TUTTI_ERR_AUTH (another secret or purpose) or TUTTI_ERR_VERSION (after
  /// authentication: the peer is ours, but of another version).
  const Status& why() const noexcept { return why_; }
  uint32_t peer_version() const noexcept { return peer_version_; }

  /// How many bytes to read next, at most: never beyond the handshake. 0: none wanted.
  size_t wanted() const noexcept;
  /// Takes received bytes, at most wanted() of them.
  void feed(std::span<const std::byte> bytes);
  /// What is to be sent; sent() drops its beginning. May be non-empty after the state is final: flush it first.
  std::span<const std::byte> output() const noexcept { return std::span(out_).subspan(out_sent_); }
  void sent(size_t bytes) noexcept { out_sent_ += bytes; }

 private:
  void take_hello();
  void take_proof();
  void refuse(Status why);
  Mac proof(HandshakeRole prover) const;

  HandshakeRole role_;
  State state_ = State::running;
  uint32_t version_;
  uint32_t peer_version_ = 0;
  bool have_hello_ = false;
  Secret secret_;
  std::array<std::byte, kHelloBytes> own_hello_{};
  std::array<std::byte, kHelloBytes> peer_hello_{};
  std::array<std::byte, 32> peer_proof_{};
  size_t in_bytes_ = 0;
  std::vector<std::byte> out_;
  size_t out_sent_ = 0;
  Status why_;
};

/// Moves handshake bytes over a stream as far as they go. again: pending. done: final (see state()) and flushed. closed,
/// failed: the stream ended before.
Io drive(Handshake& handshake, Stream& stream);

}  // namespace tutti
