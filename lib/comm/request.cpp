// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/request.hpp"

#include "comm/call_group.hpp"
#include "comm/communicator.hpp"
#include "comm/context.hpp"

namespace tutti {
namespace {

CallSignature signature_of(const CollectiveArguments& arguments, const Plan& plan, uint32_t size) {
  CallSignature call;
  call.count = arguments.count;
  call.root = arguments.root;
  call.choice = plan.choice();
  call.collective = arguments.collective;
  call.dtype = arguments.dtype;
  call.op = arguments.user_fold.function == nullptr ? arguments.op : CallSignature::kUserOp;
  if (arguments.in_place) call.flags |= CallSignature::kInPlace;
  if (arguments.group_hash != 0) {
    call.flags |= CallSignature::kGrouped;
    call.choice ^= arguments.group_hash;
    call.part = arguments.group_part;
  }
  if (arguments.uneven) call.flags |= CallSignature::kUneven;
  if (arguments.uneven && hides_counts(arguments.collective)) {
    call.flags |= CallSignature::kCountIsOwn;
  } else if (arguments.uneven) {
    call.count = vector_bytes(arguments, size) / arguments.element_bytes;
  }
  return call;
}

/// Displacements that say that blocks follow each other say nothing.
void drop_plain_places(Bindings& bindings) {
  const auto plain = [&](std::span<const uint64_t> places, std::span<const uint64_t> counts) {
    uint64_t next = 0;
    for (size_t block = 0; block < places.size(); ++block) {
      if (places[block] != next) return false;
      next += counts.empty() ? bindings.lengths.count : counts[block];
    }
    return true;
  };
  const Lengths& lengths = bindings.lengths;
  if (plain(bindings.input_places, lengths.counts)) bindings.input_places = {};
  const std::span<const uint64_t> arriving = lengths.received_counts.empty() ? lengths.counts : lengths.received_counts;
  if (plain(bindings.output_places, arriving)) bindings.output_places = {};
}

}  // namespace

Status CollectiveCall::begin(CallRecord& record) {
  if (kept_ && !stages_) {
    begin_again(record);
    return Status();
  }
  if (repeats_last()) {
    begin_again(record, arguments_.input, arguments_.output, arguments_.count);
    return Status();
  }
  if (kept_) return stage_again(record);
  last_plan_.reset();
  const Staging::Conditions conditions = communicator_->conditions(arguments_);
  bool staged = Staging::is_needed(arguments_, conditions);
  CountRange range;
  Result<const std::shared_ptr<Plan>*> plan = communicator_->plan_for(arguments_, arguments_.in_place && !staged, &range);
  if (!plan) return plan.status();
  Bindings bindings = communicator_->bindings(arguments_);
  if (arguments_.input_places != nullptr || arguments_.output_places != nullptr) {
    drop_plain_places(bindings);
    if (!staged && Staging::must_join(bindings, ***plan)) {
      staged = true;
      if (arguments_.in_place) plan = communicator_->plan_for(arguments_, false);
      if (!plan) return plan.status();
    }
  }
  if (staged) staging_.before(arguments_, conditions, bindings);
  bind(***plan, bindings, signature_of(arguments_, ***plan, communicator_->size()));
  if (keeps_plan_) {
    kept_ = **plan;
    stages_ = staged;
  }
  if (remembers_ && !staged && is_plain(arguments_)) {
    last_kind_ = kind_of(arguments_);
    last_range_ = range;
    last_plan_ = **plan;
  }
  return CollectiveOperation::begin(record);
}

/// A call whose plan is kept, and whose data are brought into form anew each time.
Status CollectiveCall::stage_again(CallRecord& record) {
  Bindings bindings = communicator_->bindings(arguments_);
  if (arguments_.input_places != nullptr || arguments_.output_places != nullptr) drop_plain_places(bindings);
  staging_.before(arguments_, communicator_->conditions(arguments_), bindings);
  bind(*kept_, bindings, signature_of(arguments_, *kept_, communicator_->size()));
  return CollectiveOperation::begin(record);
}

Execution::Outcome CollectiveCall::advance(bool& moved) {
  const Execution::Outcome outcome = CollectiveOperation::advance(moved);
  if (outcome == Execution::Outcome::done && staging_.active()) staging_.after();
  return outcome;
}

Result<CallSignature> CollectiveCall::signature() {
  Result<const std::shared_ptr<Plan>*> plan = communicator_->plan_for(arguments_, arguments_.in_place);
  if (!plan) return plan.status();
  return signature_of(arguments_, ***plan, communicator_->size());
}

void CollectiveCall::recycle() noexcept {
  if (owner_) owner_->release();
}

void MessageCall::recycle() noexcept {
  if (owner_) owner_->release();
}

void Request::become_group(const std::shared_ptr<CallGroup>& launched) noexcept {
  group = launched;
  operation_ = group.get();
}

void Request::release() noexcept {
  // The context may end with this reference, and the pool with it: nothing is touched afterwards.
  call().keep_plan(false);
  const std::shared_ptr<CallGroup> launched = std::move(group);
  if (launched) launched->end_run();
  const std::shared_ptr<Context> last = std::move(context);
  pool_.give_back(this);
}

Request* RequestPool::take(std::shared_ptr<Context> context) {
  const std::lock_guard<std::mutex> hold(mutex_);
  if (free_.empty()) {
    free_.reserve(all_.size() + 1);  // first, and so that giving back never allocates
    all_.push_back(std::make_unique<Request>(*this));
    free_.push_back(all_.back().get());
  }
  Request* request = free_.back();
  free_.pop_back();
  kept_bytes_ -= request->kept_bytes();
  request->become_collective(false);
  request->is_persistent = request->is_active = false;
  request->context = std::move(context);
  return request;
}

void RequestPool::give_back(Request* request) noexcept {
  const std::lock_guard<std::mutex> hold(mutex_);
  if (kept_bytes_ + request->kept_bytes() > kMostKeptBytes) {
    request->collective.staging().free_memory();
    request->checked.staging().free_memory();
  }
  kept_bytes_ += request->kept_bytes();
  free_.push_back(request);
}

}  // namespace tutti
