// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/arguments.hpp"
#include "comm/request.hpp"
#include "engine/operation.hpp"

namespace tutti {

/// Small calls of one kind that are made as one, over the data of all: in each block of its vector theirs follow one another. The
/// price is a copy of the data at both ends.
class Bundle {
 public:
  /// Calls of more are not copied; the gain would be small beside the copies.
  static constexpr uint64_t kMostCallBytes = 64 * 1024;
  static constexpr uint64_t kMostBytes = 4 << 20;

  Bundle(uint32_t rank, uint32_t size) : rank_(rank), size_(size) {}
  /// Whether this one belongs here; the same on all ranks. Any call may be the first.
  bool takes(const CollectiveArguments& call) const noexcept;
  void add(const CollectiveArguments& call);
  /// The call to make, once all have been added; it has its data in memory of the bundle, if it stands for several. number: of
  /// the bundle in its group.
  CollectiveArguments joined(uint32_t number);
  /// Brings the contributions of all calls together; afterwards, the results to where they belong.
  void pack() noexcept;
  void unpack() noexcept;

 private:
  bool joins() const noexcept { return calls_.size() > 1; }
  /// visit(memory within the bundle, memory of a call, bytes)
  template <class Visit>
  void each_piece(BufferId buffer, std::byte* memory, Visit&& visit) const;

  uint32_t rank_;
  uint32_t size_;
  std::vector<CollectiveArguments> calls_;
  uint64_t bytes_ = 0;  // of their vectors
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
};

/// Collectives of one communicator that start together: bundles, one after another. For one thread at a time, but for what the
/// driver does with it.
class CallGroup final : public Operation {
 public:
  explicit CallGroup(Communicator& communicator);
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  /// Not while it runs. Arrays of the call stay until it has run for the last time.
  void add(const CollectiveArguments& call);
  bool runs() const noexcept { return request_.load(std::memory_order_acquire) != nullptr; }
  /// It is going to be handed to the engine; `request` is released when it has ended and nobody waits.
  void prepare(Request& request, Deadline deadline);
  /// Nobody has an interest in the last run any more.
  void end_run() noexcept { request_.store(nullptr, std::memory_order_release); }

  Status begin(CallRecord& record) override;
  Execution::Outcome advance(bool& moved) override;
  Status failure() const override { return failed_to_begin_.ok() ? current().failure() : failed_to_begin_; }
  uint32_t culprit() const override { return current().culprit(); }
  uint32_t foreign_mark() const override { return current().foreign_mark(); }
  const NoticeCall* disputed() const noexcept override { return current().disputed(); }
  void hold() noexcept override { current().hold(); }
  std::vector<uint32_t> waiting_for() const override;
  void abandon() noexcept override;
  void recycle() noexcept override;

 private:
  void arrange();
  Status begin_part();
  CollectiveCall& current() const noexcept { return *parts_[next_]; }

  Communicator& communicator_;
  std::vector<CollectiveArguments> calls_;
  bool arranged_ = true;
  std::vector<std::unique_ptr<CollectiveCall>> parts_;
  size_t next_ = 0;
  bool part_begun_ = false;
  CallRecord* record_ = nullptr;
  Status failed_to_begin_;
  std::atomic<Request*> request_{nullptr};
};

}  // namespace tutti
