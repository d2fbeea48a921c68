// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "comm/communicator.hpp"
#include "comm/request.hpp"

namespace tutti {
namespace {

constexpr size_t kWords = sizeof(CallSignature) / sizeof(uint64_t);
static_assert(sizeof(CallSignature) == kWords * sizeof(uint64_t));

}  // namespace

// A table with a line for each rank; each fills in its own, and the sum is all of them.
Status CheckedCall::begin(CallRecord& record) {
  record_ = &record;
  disputed_[0].sequence = 0;
  comparing_ = communicator_->size() > 1;
  if (!comparing_) return CollectiveCall::begin(record);
  Result<CallSignature> own = signature();
  if (!own) return own.status();
  record.call = *own;
  record.mark = mark_of(record.sequence, record.call);
  table_.assign(kWords * communicator_->size(), 0);
  std::memcpy(&table_[kWords * communicator_->rank()], &record.call, sizeof record.call);
  CollectiveArguments sum;
  sum.collective = Collective::allreduce;
  sum.input = sum.output = table_.data();
  sum.in_place = true;
  sum.count = table_.size();
  sum.dtype = DType::u64;
  sum.element_bytes = sizeof(uint64_t);
  const Result<const std::shared_ptr<Plan>*> plan = communicator_->plan_for(sum, true);
  if (!plan) return plan.status();
  Bindings bindings = communicator_->bindings(sum);
  bindings.mark = static_cast<uint32_t>(record.sequence);
  return exchange_.start(***plan, bindings);
}

Execution::Outcome CheckedCall::advance(bool& moved) {
  if (comparing_) {
    const Execution::Outcome outcome = exchange_.advance(moved);
    if (outcome != Execution::Outcome::done) return outcome;
    compare();
    if (disputed_[0].sequence != 0) return Execution::Outcome::failed;
    comparing_ = false;
    failed_to_begin_ = CollectiveCall::begin(*record_);
    if (!failed_to_begin_.ok()) return Execution::Outcome::failed;
  }
  return CollectiveCall::advance(moved);
}

void CheckedCall::compare() {
  const auto call = [&](uint32_t rank) {
    NoticeCall result;
    result.rank = communicator_->world_ranks()[rank];
    result.sequence = record_->sequence;
    std::memcpy(static_cast<void*>(&result.call), &table_[kWords * rank], sizeof result.call);
    result.mark = mark_of(result.sequence, result.call);
    return result;
  };
  const NoticeCall first = call(0);
  for (uint32_t rank = 1; rank < communicator_->size(); ++rank) {
    const NoticeCall other = call(rank);
    if (agree(first.call, other.call)) continue;
    disputed_[0] = first;
    disputed_[1] = other;
    return;
  }
}

Status CheckedCall::failure() const {
  if (comparing_) return exchange_.status();
  return failed_to_begin_.ok() ? CollectiveCall::failure() : failed_to_begin_;
}

}  // namespace tutti
