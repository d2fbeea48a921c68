// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "base/types.hpp"
#include "comm/context.hpp"
#include "comm/plan_cache.hpp"
#include "comm/pools.hpp"
#include "comm/request.hpp"
#include "engine/group.hpp"
#include "schedule/program.hpp"
#include "select/select.hpp"

namespace tutti {

/// An ordered set of ranks that make collective calls together. Arguments have been checked by the caller (lib/capi), but for
/// ranks.
class Communicator {
 public:
  /// All ranks of the context. timeout_ns: 0 means the setting.
  static Result<std::unique_ptr<Communicator>> world(std::shared_ptr<Context> context, uint64_t timeout_ns);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  uint32_t rank() const noexcept { return rank_; }
  uint32_t size() const noexcept { return static_cast<uint32_t>(world_ranks_.size()); }
  uint32_t local_rank() const noexcept { return local_rank_; }
  uint32_t local_size() const noexcept { return local_size_; }
  const std::vector<uint32_t>& world_ranks() const noexcept { return world_ranks_; }
  const std::shared_ptr<Context>& context() const noexcept { return context_; }

  Status run(const CollectiveArguments& arguments);
  /// A non-blocking call, ready to be started or released. persistent: it can be started again when it has completed.
  Result<Request*> prepare(const CollectiveArguments& arguments, bool persistent = false);
  /// Likewise; bind gives the message its arguments.
  template <class Bind>
  Result<Request*> prepare_message(Bind&& bind, bool persistent = false);
  void start(Request& request) {
    if (request.is_collective()) {
      context_->engine().submit(group_, request.call());
    } else {
      context_->engine().submit(group_, request.operation());
    }
  }
  bool failed() const noexcept { return group_.failed(); }
  Status failure() const noexcept { return group_.failure(); }
  /// A persistent call of this communicator that is not running.
  void start_again(Request& request) {
    request.operation().reset(deadline());  // its plan and arguments stay bound
    start(request);
  }
  /// A group of this communicator that is not running.
  Result<Request*> launch(const std::shared_ptr<CallGroup>& group);
  /// Messages, with their arguments.
  Status run(MessageOperation& message);
  /// The first error.
  Status run_both(MessageOperation& first, MessageOperation& second);
  /// nullptr for kNoColor.
  Result<std::unique_ptr<Communicator>> split(int32_t color, int32_t key);
  /// Forces an algorithm from now on, on this communicator; "": none. Collective; rank 0's text counts.
  Status set_algorithm(Collective collective, std::string_view text);
  /// What a call with these arguments uses, as set_algorithm wants it.
  Result<std::string> algorithm_for(const CollectiveArguments& arguments);
  void abort() { context_->engine().abort(group_); }

  /// What calls of messages need for a while. Any thread.
  ScratchPool& scratch() noexcept { return scratch_; }
  ItemPool<ClaimedMessage>& claimed_messages() noexcept { return claimed_messages_; }

  /// check=full.
  bool checks() const noexcept { return checks_; }

  // ---- the driver's
  /// The result is valid until the next call. range: other counts of the same call that it would be the plan for.
  Result<const std::shared_ptr<Plan>*> plan_for(const CollectiveArguments& arguments, bool in_place, CountRange* range = nullptr);
  Bindings bindings(const CollectiveArguments& arguments) const;
  Staging::Conditions conditions(const CollectiveArguments& arguments) const noexcept {
    return {rank_, size(), deterministic_ && folds_inexactly(arguments), cpu_level_};
  }

 private:
  Communicator(std::shared_ptr<Context> context, uint64_t id, uint32_t rank, std::vector<uint32_t> world_ranks,
               uint64_t timeout_ns);
  Status prepare();
  /// range: other counts of the same call that it would be the row for.
  Result<const SelectionRow*> row_for(const CollectiveArguments& arguments, CountRange* range = nullptr);
  Result<std::unique_ptr<Communicator>> make_part(uint64_t id, uint32_t rank, const std::vector<uint32_t>& world_ranks);
  Status agree_on_tuning();
  void use_tuning();
  /// Everybody gets rank 0's text. Collective.
  Status take_from_first(std::string& text);
  Deadline deadline() const { return timeout_ns_ == 0 ? Deadline() : Deadline::after(context_->clock(), timeout_ns_); }

  std::shared_ptr<Context> context_;
  uint32_t rank_;
  uint32_t local_rank_ = 0;
  uint32_t local_size_ = 1;
  uint32_t node_count_ = 1;
  std::vector<uint32_t> world_ranks_;
  uint64_t timeout_ns_;
  Group group_;
  std::unique_ptr<Selector> selector_;
  Capabilities capabilities_;
  CpuLevel cpu_level_;
  PlanCache plans_;
  std::atomic<bool> calling_{false};
  bool deterministic_;
  bool checks_;
  CollectiveCall call_;       // the one blocking collective
  CheckedCall checked_call_;  // which is this one then
  uint64_t split_count_ = 0;
  ScratchPool scratch_;
  ItemPool<ClaimedMessage> claimed_messages_;
};

template <class Bind>
Result<Request*> Communicator::prepare_message(Bind&& bind, bool persistent) {
  if (group_.failed()) return group_.failure();
  Request* request = context_->requests().take(context_);
  request->become_message();
  request->is_persistent = persistent;
  request->message.reset(deadline());
  bind(request->message);
  return request;
}

}  // namespace tutti
