// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstring>
#include <string>

#include "host.hpp"
#include "wire.hpp"

/// Mutual proof of membership, without sockets. Five messages of fixed length; every field but the magic number is covered by
/// a keyed hash over the whole exchange so far, and is interpreted only after that was verified:
///   connector -> acceptor  greeting    magic, nonce
///   acceptor  -> connector challenge   magic, version, rank, incarnation, nonce; hash
///   connector -> acceptor  proof       version, ranks of both, incarnation, window; hash
///   acceptor  -> connector verdict     accept / yield / refuse, window; hash
///   connector -> acceptor  confirmation: the connector has seen the verdict; only now may the acceptor send
namespace tutti::tcp {

inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kMacBytes = 32;
using Incarnation = std::array<std::uint8_t, 16>;

struct Identity {
  std::array<std::uint8_t, 16> job_id{};
  std::uint32_t rank = 0;
  Incarnation incarnation{};
  std::uint64_t window_bytes = 0;
};

enum class Verdict : std::uint8_t {
  kAccept = 1,
  kYield = 2,  ///< a connection the other way round is about to succeed: wait for it
  kRefuse = 3  ///< not this peer, not now
};

class Handshake {
 public:
  enum class State : std::uint8_t { kRunning, kAsksVerdict, kEstablished, kYielded, kFailed };

  /// The connecting side, which knows whom it wants to meet.
  static Handshake connector(const Host& host, const Identity& self, std::uint32_t peer, const Incarnation& incarnation);
  static Handshake acceptor(const Host& host, const Identity& self);

  State state() const { return state_; }
  const std::string& failure() const { return failure_; }
  /// The other side has proved that it knows the job's secret.
  bool verified() const { return verified_; }
  bool is_connector() const { return connector_; }
  /// The connector has sent its proof: it will take the connection unless the acceptor objects.
  bool committed() const { return connector_ && step_ >= 2; }

  std::uint32_t peer() const { return peer_; }
  const Incarnation& peer_incarnation() const { return peer_incarnation_; }
  std::uint64_t peer_window_bytes() const { return peer_window_bytes_; }

  const std::uint8_t* output() const { return out_.data() + out_sent_; }
  std::size_t output_bytes() const { return out_end_ - out_sent_; }
  void sent(std::size_t bytes) { out_sent_ += bytes; }

  /// Exactly how many bytes to read next; no more must be read, what follows is not the handshake's.
  std::size_t wanted_bytes() const { return want_ - have_; }
  void feed(const std::uint8_t* bytes, std::size_t count);

  /// Acceptor in kAsksVerdict: the decision of its endpoint.
  void decide(Verdict verdict);

 private:
  Handshake(const Host& host, const Identity& self, bool connector);
  void emit(const std::uint8_t* bytes, std::size_t count);
  void append(const std::uint8_t* bytes, std::size_t count);
  void sign(const char* label, std::uint8_t out[kMacBytes]) const;
  bool proven(const char* label, const std::uint8_t* message, std::size_t body_bytes);
  void fail(std::string why);
  void greeted();
  void challenged();
  void proved();
  void judged();
  void confirmed();

  const Host* host_;
  Identity self_;
  bool connector_;
  bool verified_ = false;
  State state_ = State::kRunning;
  int step_ = 0;
  std::uint32_t peer_ = 0;
  Incarnation peer_incarnation_{};
  std::uint64_t peer_window_bytes_ = 0;
  std::size_t want_ = 0;
  std::size_t have_ = 0;
  std::size_t out_sent_ = 0;
  std::size_t out_end_ = 0;
  std::size_t transcript_bytes_ = 0;
  std::array<std::uint8_t, 96> in_{};
  std::array<std::uint8_t, 256> out_{};
  std::array<std::uint8_t, 320> transcript_{};
  std::string failure_;
};

}  // namespace tutti::tcp
