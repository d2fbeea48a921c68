// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/types.hpp"
#include "comm/arguments.hpp"
#include "comm/staging.hpp"
#include "engine/message.hpp"
#include "engine/operation.hpp"
#include "schedule/schedule.hpp"

namespace tutti {

class CallGroup;
class Communicator;
class Context;
class Request;

/// A collective call as the engine sees it: finds its plan when its turn comes, since plans belong to whoever drives.
class CollectiveCall : public CollectiveOperation {
 public:
  void prepare(Communicator& communicator, const CollectiveArguments& arguments, Deadline deadline) {
    reset(deadline);
    communicator_ = &communicator;
    arguments_ = arguments;
    staging_.drop();
  }
  /// For a call object of one communicator alone: what the last call found serves the next one of its kind.
  void remember_last() noexcept { remembers_ = true; }
  void forget_last() noexcept { last_plan_.reset(); }
  Staging& staging() noexcept { return staging_; }
  /// Every later run is the same call: what can be found once is kept.
  void keep_plan(bool keeps) noexcept {
    keeps_plan_ = keeps;
    kept_.reset();
  }
  Status begin(CallRecord& record) override;
  Execution::Outcome advance(bool& moved) override;
  void recycle() noexcept override;

 protected:
  /// Of what this rank calls. Finds, or makes, the plan.
  Result<CallSignature> signature();
  const CollectiveArguments& arguments() const noexcept { return arguments_; }

  Communicator* communicator_ = nullptr;

 private:
  friend class Request;
  CollectiveArguments arguments_;
  /// What a call has in common with those that its plan and bindings would do for.
  struct Kind {
    Collective collective = Collective::barrier;
    DType dtype = DType::u8;
    Op op = Op::sum;
    bool in_place = false;
    uint32_t root = 0;
    bool operator==(const Kind&) const = default;
  };
  static Kind kind_of(const CollectiveArguments& a) noexcept { return {a.collective, a.dtype, a.op, a.in_place, a.root}; }
  /// Nothing but data and length may differ from call to call.
  static bool is_plain(const CollectiveArguments& a) noexcept {
    return !a.uneven && a.user_fold.function == nullptr && a.factor == 1 && a.element_bytes == size_bytes(a.dtype);
  }
  bool repeats_last() const noexcept {
    return last_plan_ && kind_of(arguments_) == last_kind_ && is_plain(arguments_) && arguments_.count >= last_range_.first &&
           arguments_.count <= last_range_.last;
  }

  Status stage_again(CallRecord& record);

  Staging staging_;
  bool remembers_ = false;
  Kind last_kind_;
  CountRange last_range_;
  std::shared_ptr<Plan> last_plan_;
  bool keeps_plan_ = false;     // a persistent call
  std::shared_ptr<Plan> kept_;  // its plan
  bool stages_ = false;         // it works on memory of the staging
  Request* owner_ = nullptr;
};

/// With check=full: all ranks compare what they call, by an exchange of its own, before the call begins; and then, where a rank
/// has a count for each block, what each pair of ranks says of the block between them.
class CheckedCall : public CollectiveCall {
 public:
  Status begin(CallRecord& record) override;
  Execution::Outcome advance(bool& moved) override;
  Status failure() const override;
  const NoticeCall* disputed() const noexcept override { return disputed_[0].sequence == 0 ? nullptr : disputed_; }
  bool waits_for_slots() const noexcept override { return !comparing() && CollectiveCall::waits_for_slots(); }
  uint32_t culprit() const override { return comparing() ? exchange_.culprit() : CollectiveCall::culprit(); }
  uint32_t foreign_mark() const override { return comparing() ? exchange_.foreign_mark() : CollectiveCall::foreign_mark(); }
  std::vector<uint32_t> waiting_for() const override {
    return comparing() ? exchange_.waiting_for() : CollectiveCall::waiting_for();
  }
  void hold() noexcept override { comparing() ? exchange_.hold() : CollectiveCall::hold(); }
  void abandon() noexcept override { comparing() ? exchange_.abandon() : CollectiveCall::abandon(); }

 private:
  enum class Compares : uint8_t { nothing, calls, counts };
  Status exchange();
  NoticeCall call_of(uint32_t rank) const;
  void compare_calls();
  void fill_counts();
  void compare_counts();
  bool comparing() const noexcept { return compares_ != Compares::nothing; }

  Execution exchange_;
  Compares compares_ = Compares::nothing;
  CallRecord* record_ = nullptr;
  std::vector<uint64_t> table_;  // of calls, a line for each rank
  std::vector<uint64_t> counts_;
  NoticeCall disputed_[2];  // the first rank's call and the first that does not go with it
  Status failed_to_begin_;
};

class MessageCall final : public MessageOperation {
 public:
  void recycle() noexcept override;

 private:
  friend class Request;
  Request* owner_ = nullptr;
};

class RequestPool;

/// A non-blocking call. Lives in its context's pool; in use it keeps the context alive.
class Request {
 public:
  explicit Request(RequestPool& pool) : pool_(pool) {
    collective.owner_ = this;
    checked.owner_ = this;
    message.owner_ = this;
  }
  void become_collective(bool is_compared) noexcept {
    is_message = false;
    is_checked = is_compared;
    operation_ = &call();
  }
  void become_message() noexcept {
    is_message = true;
    operation_ = &message;
  }
  void become_group(const std::shared_ptr<CallGroup>& launched) noexcept;
  /// What it stands for: the last that it became.
  Operation& operation() noexcept { return *operation_; }
  const CollectiveArguments& arguments() noexcept { return call().arguments_; }
  /// A collective by itself.
  bool is_collective() noexcept { return operation_ == &call(); }
  CollectiveCall& call() noexcept { return is_checked ? checked : collective; }
  uint64_t kept_bytes() noexcept { return collective.staging().kept_bytes() + checked.staging().kept_bytes(); }
  /// Back into the pool. May end the context, if the caller holds no communicator of it.
  void release() noexcept;

  CollectiveCall collective;
  CheckedCall checked;
  MessageCall message;
  bool is_message = false;
  bool is_checked = false;             ///< a collective with check=full
  bool is_persistent = false;          ///< to be started again and again, until it is freed
  bool is_active = false;              ///< a persistent one: started and not yet waited for
  const void* communicator = nullptr;  ///< a persistent one: the communicator's handle
  std::shared_ptr<CallGroup> group;    ///< launched with this request; else null
  std::shared_ptr<Context> context;

 private:
  RequestPool& pool_;
  Operation* operation_ = &collective;
};

/// Requests are made once and used again, so that a steady state allocates nothing.
class RequestPool {
 public:
  /// Memory for staging that those not in use keep, all together. A request that would go beyond gives up its own.
  static constexpr uint64_t kMostKeptBytes = 16 << 20;

  Request* take(std::shared_ptr<Context> context);
  void give_back(Request* request) noexcept;
  uint64_t kept_bytes() noexcept {
    const std::lock_guard<std::mutex> hold(mutex_);
    return kept_bytes_;
  }

 private:
  std::mutex mutex_;
  uint64_t kept_bytes_ = 0;
  std::vector<std::unique_ptr<Request>> all_;
  std::vector<Request*> free_;
};

}  // namespace tutti
