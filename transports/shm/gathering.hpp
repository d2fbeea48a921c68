// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "node.hpp"
#include "wire.hpp"

/// How the processes of a node come to share an arena. The first process leads; each other one connects to it once:
///
///   guest -> leader  Hello      nonce
///   leader -> guest  Challenge  nonce; hash over both nonces and who the leader is
///   guest -> leader  Proof      who the guest is; hash over that, both nonces and the leader
///   guest -> leader  Letter     the eventfds of its ranks
///   leader -> guest  Letter     the arena, and the eventfds and the pidfd of each process
///   guest -> leader  Letter     attached, or not
///   leader -> guest  Letter     which processes take part
///
/// Nothing but the fixed fields that the hashes need is interpreted before the hash is verified, and no descriptor is taken
/// from anybody who has not proved to belong to the job. Who takes part is decided in one place, so that the two ends of a link
/// agree about it. A process that cannot attach is left out; a leader that ends, or cannot make an arena, leaves all out.
namespace tutti::shm {

struct Session {
  Token job{};
  uint32_t leader = 0;
  Token leader_incarnation{};
  Token guest_nonce{};
  Token leader_nonce{};
};

struct Hello {
  uint64_t magic = kMagic;
  Token nonce{};
  static constexpr uint64_t kMagic = 0x6f6c6c6568746e74ull;
};
struct Challenge {
  Token nonce{};
  Mac mac{};
};
struct Proof {
  uint32_t rank = 0;
  uint32_t reserved = 0;
  Token incarnation{};
  Mac mac{};
};
struct Letter {
  enum Kind : uint32_t { kBells = 1, kArena, kProcess, kAttached, kVerdict };
  uint32_t kind = 0;
  uint32_t process = 0;  ///< kArena: how many kProcess letters follow
  uint32_t first = 0;    ///< the first of its ranks whose eventfd comes along; kAttached: 1 if it is
  uint32_t count = 0;    ///< how many eventfds come along, behind the pidfd if `first` is 0
  uint32_t slots = 0;
  uint32_t reserved = 0;
  uint64_t slot_bytes = 0;
  uint64_t arena_bytes = 0;
};  // kVerdict: followed by a bit for each process
constexpr size_t kMaskBytes = kMaxNodeRanks / 8;
static_assert(sizeof(Letter) + kMaskBytes <= Wire::kMaxMessageBytes);

Mac challenge_mac(const Host& host, const Session& session);
Mac proof_mac(const Host& host, const Session& session, const Proof& proof);

template <typename Record>
bool read_record(const std::vector<uint8_t>& message, Record& record) {
  if (message.size() < sizeof(Record)) return false;
  std::memcpy(&record, message.data(), sizeof(Record));
  return true;
}

/// What both sides know and need.
struct Plan {
  Host& host;
  Token job;
  std::map<uint32_t, Address> addresses;  ///< of the node's ranks
  Roster roster;
  uint32_t process = 0;  ///< ours
  uint32_t slots = 0;
  uint64_t slot_bytes = 0;
  uint64_t arena_bytes = 0;
  uint64_t timeout_ns = 0;
  int epoll = -1;  ///< gets the descriptors to wait for
};

/// One side of it, advanced by step().
class Gathering {
 public:
  virtual ~Gathering() = default;
  /// True: finished, and `node` is the node, or nullptr if this process takes no part.
  virtual bool step(uint64_t now_ns, std::shared_ptr<Node>& node) = 0;

  static std::unique_ptr<Gathering> lead(Plan plan, Fd listener);
  static std::unique_ptr<Gathering> attend(Plan plan);
  /// All ranks are in this process.
  static Outcome alone(const Plan& plan, std::shared_ptr<Node>& node);
};

/// A node with the eventfds of this process's ranks, and no arena yet.
Outcome start_node(const Plan& plan, std::shared_ptr<Node>& node);
/// Makes the epoll descriptor readable when the socket is.
void await_readable(const Plan& plan, int fd);

}  // namespace tutti::shm
