// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "engine/execution.hpp"
#include "engine/notice.hpp"
#include "engine/record.hpp"

namespace tutti {

class Group;
class MessageOperation;

/// A copy, or at least its code when there is no memory for the message.
inline Status copy_of(const Status& status) noexcept {
  try {
    return status;
  } catch (const std::bad_alloc&) {
    return Status(status.code());
  }
}

/// One call in progress. Its owner keeps it in place until done() or, after give_up(), until recycle() was called. Between
/// Engine::submit and completion all but done() belongs to the thread that drives the engine.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Called once, when it is its turn. Touches no peer. record: the call's, with its number; the rest is for the operation to
  /// write.
  virtual Status begin(CallRecord& /*record*/) { return Status(); }
  /// As far as possible without blocking.
  virtual Execution::Outcome advance(bool& moved) = 0;
  virtual Status failure() const { return Status(); }
  /// World rank to blame for failure(); Group::kNobody if none.
  virtual uint32_t culprit() const { return UINT32_MAX; }
  /// The mark of the message for which failure() is TUTTI_ERR_MISMATCH.
  virtual uint32_t foreign_mark() const { return 0; }
  /// The two calls that do not go together, if it has failed for knowing them; else null.
  virtual const NoticeCall* disputed() const noexcept { return nullptr; }
  /// It has failed, but is not ended yet: goes no further.
  virtual void hold() noexcept {}
  /// World ranks that it waits for.
  virtual std::vector<uint32_t> waiting_for() const { return {}; }
  /// The group's channels were closed under it.
  virtual void abandon() noexcept {}
  virtual MessageOperation* as_message() noexcept { return nullptr; }
  /// Runs at once, in no queue, with the driver's exclusive hold of everything.
  virtual bool is_errand() const noexcept { return false; }
  /// The owner gave up interest and now the operation has completed.
  virtual void recycle() noexcept {}

  bool done() const noexcept { return state_.load(std::memory_order_seq_cst) == kDone; }
  /// Valid once done.
  const Status& result() const noexcept { return result_; }
  /// The owner will not look again. True: it had completed already (recycle() will not be called).
  bool give_up() noexcept { return state_.exchange(kOrphaned, std::memory_order_seq_cst) == kDone; }
  void reset(Deadline deadline) {
    state_.store(kPending, std::memory_order_relaxed);
    if (!result_.ok()) result_ = Status();
    deadline_ = deadline;
    begun_ = false;
    group_ = nullptr;
    next_ = nullptr;
  }
  Deadline deadline() const noexcept { return deadline_; }

 private:
  friend class Engine;
  friend class Group;
  friend class PointToPoint;
  static constexpr uint8_t kPending = 0, kDone = 1, kOrphaned = 2;

  /// The last touch: the owner may free the operation as soon as it is told.
  void complete(Status status) noexcept {
    result_ = std::move(status);
    complete_well();
  }

  /// Likewise without an error, as reset() has left it.
  void complete_well() noexcept {
    if (state_.exchange(kDone, std::memory_order_seq_cst) == kOrphaned) recycle();
  }
  /// Likewise for who drives the engine for its own operation's sake: nobody else looks at it, nor gives it up.
  void complete_here() noexcept { state_.store(kDone, std::memory_order_relaxed); }

  std::atomic<uint8_t> state_{kPending};
  bool begun_ = false;
  Status result_;
  Deadline deadline_;
  Group* group_ = nullptr;
  Operation* next_ = nullptr;
};

/// A collective: one execution of a plan.
class CollectiveOperation : public Operation {
 public:
  void bind(Plan& plan, const Bindings& bindings, const CallSignature& call) {
    plan_ = &plan;
    bindings_ = bindings;
    call_ = call;
  }
  Status begin(CallRecord& record) override {
    mark_share_ = mark_share(call_);
    bindings_.mark = enter(record);
    execution_.start(*plan_, bindings_);
    return Status();
  }
  /// The same call once more, which had begun before.
  void begin_again(CallRecord& record) { execution_.start_again(enter(record)); }
  /// Likewise, with other data and perhaps another length.
  void begin_again(CallRecord& record, const void* input, void* output, uint64_t count) {
    bindings_.input = input;
    bindings_.output = output;
    if (count != call_.count) {
      bindings_.lengths.count = call_.count = count;
      mark_share_ = mark_share(call_);
    }
    execution_.start_again(enter(record), input, output, count);
  }
  Execution::Outcome advance(bool& moved) override { return execution_.advance(moved); }
  /// While it is blocked: for nothing that takes more than a look at memory.
  virtual bool waits_for_slots() const noexcept { return execution_.outstanding() == 0; }
  Status failure() const override { return execution_.status(); }
  uint32_t culprit() const override { return execution_.culprit(); }
  uint32_t foreign_mark() const override { return execution_.foreign_mark(); }
  void hold() noexcept override { execution_.hold(); }
  std::vector<uint32_t> waiting_for() const override { return execution_.waiting_for(); }
  void abandon() noexcept override { execution_.abandon(); }

 private:
  /// Its mark this time.
  uint32_t enter(CallRecord& record) const noexcept {
    record.call = call_;
    record.mark = mark_of(record.sequence, mark_share_);
    return record.mark;
  }

  Plan* plan_ = nullptr;
  Bindings bindings_;
  CallSignature call_;
  uint64_t mark_share_ = 0;
  Execution execution_;
};

}  // namespace tutti
