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
  failed_to_begin_ = Status();
  compares_ = communicator_->size() > 1 ? Compares::calls : Compares::nothing;
  if (!comparing()) return CollectiveCall::begin(record);
  Result<CallSignature> own = signature();
  if (!own) return own.status();
  record.call = *own;
  record.mark = mark_of(record.sequence, record.call);
  table_.assign(kWords * communicator_->size(), 0);
  std::memcpy(&table_[kWords * communicator_->rank()], &record.call, sizeof record.call);
  return exchange();
}

/// Of the table that is compared.
Status CheckedCall::exchange() {
  std::vector<uint64_t>& table = compares_ == Compares::calls ? table_ : counts_;
  CollectiveArguments sum;
  sum.collective = Collective::allreduce;
  sum.input = sum.output = table.data();
  sum.in_place = true;
  sum.count = table.size();
  sum.dtype = DType::u64;
  sum.element_bytes = sizeof(uint64_t);
  const Result<const std::shared_ptr<Plan>*> plan = communicator_->plan_for(sum, true);
  if (!plan) return plan.status();
  Bindings bindings = communicator_->bindings(sum);
  bindings.mark = static_cast<uint32_t>(record_->sequence);
  exchange_.start(***plan, bindings);
  return Status();
}

Execution::Outcome CheckedCall::advance(bool& moved) {
  while (comparing()) {
    const Execution::Outcome outcome = exchange_.advance(moved);
    if (outcome != Execution::Outcome::done) return outcome;
    bool uneven = false;
    if (compares_ == Compares::calls) {
      compare_calls();
      for (uint32_t rank = 0; rank < communicator_->size(); ++rank) {
        uneven = uneven || (call_of(rank).call.flags & CallSignature::kUneven) != 0;
      }
    } else {
      compare_counts();
    }
    if (disputed_[0].sequence != 0) return Execution::Outcome::failed;
    compares_ = uneven ? Compares::counts : Compares::nothing;
    if (uneven) {
      fill_counts();
      failed_to_begin_ = exchange();
    } else {
      failed_to_begin_ = CollectiveCall::begin(*record_);
    }
    if (!failed_to_begin_.ok()) return Execution::Outcome::failed;
  }
  return CollectiveCall::advance(moved);
}

NoticeCall CheckedCall::call_of(uint32_t rank) const {
  NoticeCall result;
  result.rank = communicator_->world_ranks()[rank];
  result.sequence = record_->sequence;
  std::memcpy(static_cast<void*>(&result.call), &table_[kWords * rank], sizeof result.call);
  result.mark = mark_of(result.sequence, result.call);
  return result;
}

void CheckedCall::compare_calls() {
  const NoticeCall first = call_of(0);
  for (uint32_t rank = 1; rank < communicator_->size(); ++rank) {
    const NoticeCall other = call_of(rank);
    if (agree(first.call, other.call)) continue;
    disputed_[0] = first;
    disputed_[1] = other;
    return;
  }
}

// For each pair of ranks two words: what `from` sends to `to`, by the one and by the other; plus 1, and 0 where a rank cannot
// know.
void CheckedCall::fill_counts() {
  const CollectiveArguments& call = arguments();
  const uint32_t size = communicator_->size();
  const uint32_t own = communicator_->rank();
  counts_.assign(size_t{2} * size * size, 0);
  const auto sends = [&](uint32_t to, uint64_t count) { counts_[2 * (size_t{own} * size + to)] = count + 1; };
  const auto expects = [&](uint32_t from, uint64_t count) { counts_[2 * (size_t{from} * size + own) + 1] = count + 1; };
  const auto block = [&](const uint64_t* counts, uint32_t rank) { return counts == nullptr ? call.count : counts[rank]; };
  if (has_root(call.collective) && call.root != own) {
    call.collective == Collective::gather ? sends(call.root, call.count) : expects(call.root, call.count);
    return;
  }
  for (uint32_t other = 0; other < size; ++other) {
    switch (call.collective) {
      case Collective::gather:
        expects(other, block(call.counts, other));
        break;
      case Collective::scatter:
        sends(other, block(call.counts, other));
        break;
      case Collective::allgather:
        sends(other, block(call.counts, own));
        expects(other, block(call.counts, other));
        break;
      case Collective::reduce_scatter:
        sends(other, block(call.counts, other));
        expects(other, block(call.counts, own));
        break;
      case Collective::alltoall:
        sends(other, block(call.counts, other));
        expects(other, block(call.received_counts, other));
        break;
      default:
        return;
    }
  }
}

void CheckedCall::compare_counts() {
  const uint32_t size = communicator_->size();
  for (uint32_t from = 0; from < size; ++from) {
    for (uint32_t to = 0; to < size; ++to) {
      const uint64_t* said = &counts_[2 * (size_t{from} * size + to)];
      if (from == to || said[0] == 0 || said[1] == 0 || said[0] == said[1]) continue;
      // One call of one mark; only the counts of this pair differ.
      disputed_[0] = call_of(from);
      disputed_[1] = call_of(to);
      disputed_[1].mark = disputed_[0].mark;
      disputed_[0].call.count = said[0] - 1;
      disputed_[1].call.count = said[1] - 1;
      return;
    }
  }
}

Status CheckedCall::failure() const {
  if (!failed_to_begin_.ok()) return failed_to_begin_;
  return comparing() ? exchange_.status() : CollectiveCall::failure();
}

}  // namespace tutti
