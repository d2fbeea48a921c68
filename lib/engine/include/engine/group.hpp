// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "engine/fabric.hpp"
#include "engine/notice.hpp"
#include "engine/operation.hpp"
#include "engine/p2p.hpp"
#include "engine/plan.hpp"
#include "engine/record.hpp"

namespace tutti {

/// The engine's view of a communicator: its channels, its queue of collectives (run one at a time, in order), its messages, and
/// whether it still works. Owned by the communicator, registered with Engine::add. All but failed() belongs to the driver.
class Group {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;

  /// id: the same on all members, low 16 bits zero. world_ranks[r]: the context-wide rank of rank r.
  Group(Fabric& fabric, uint64_t id, uint32_t rank, std::vector<uint32_t> world_ranks)
      : id_(id), rank_(rank), channels_(fabric, id, std::move(world_ranks)), messages_(channels_, rank) {}

  uint64_t id() const noexcept { return id_; }
  uint32_t rank() const noexcept { return rank_; }
  uint32_t size() const noexcept { return static_cast<uint32_t>(channels_.world_ranks().size()); }
  ChannelSet& channels() noexcept { return channels_; }
  /// Any thread: whether it has failed, and why.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  Status failure() const noexcept {
    const std::lock_guard<std::mutex> hold(failure_mutex_);
    return copy_of(failure_);
  }

 private:
  friend class Engine;
  /// What a member that destroyed its communicator did until then: whoever waits for more waits in vain.
  struct Departed {
    uint32_t rank;  // of the group
    uint64_t collectives;
    uint64_t messages;  // sent to us
  };

  uint64_t id_;
  uint32_t rank_;
  ChannelSet channels_;
  PointToPoint messages_;
  Operation* head_ = nullptr;
  Operation* tail_ = nullptr;
  uint64_t collectives_ended_ = 0;
  CallLog calls_;
  uint64_t asked_at_ns_ = 0;  // when its peers were last asked whether they are still there
  bool active_ = false;
  std::vector<Departed> departed_;  // one a rank
  /// A peer that was asked which call a message of its belongs to.
  struct Asked {
    uint32_t peer = kNobody;  // world rank
    uint64_t give_up_ns = 0;
  };
  Asked asked_about_;
  uint32_t culprit_ = kNobody;  // of failure_
  NoticeCall disputed_[2];      // of failure_, if that is a mismatch
  std::atomic<bool> failed_{false};
  std::atomic<bool> abort_wanted_{false};
  mutable std::mutex failure_mutex_;
  Status failure_;
};

}  // namespace tutti
