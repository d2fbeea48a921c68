// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/call_group.hpp"

#include <algorithm>
#include <cstring>

#include "comm/communicator.hpp"
#include "schedule/collective.hpp"

namespace tutti {
namespace {

bool same_operation(const CollectiveArguments& a, const CollectiveArguments& b) noexcept {
  return a.collective == b.collective && a.dtype == b.dtype && a.op == b.op && a.ordered == b.ordered && a.root == b.root &&
         a.element_bytes == b.element_bytes;
}

/// What tells two operations of the caller's apart is known to this rank alone, and so is the factor of a scaled sum.
bool has_own_operation(const CollectiveArguments& call) noexcept { return call.scaled || call.user_fold.function != nullptr; }

/// A call of the group's that takes what it works on from a bundle.
template <class Call>
class BundleCall final : public Call {
 public:
  explicit BundleCall(Bundle bundle) : bundle_(std::move(bundle)) {}
  Status begin(CallRecord& record) override {
    bundle_.pack();
    return Call::begin(record);
  }
  Execution::Outcome advance(bool& moved) override {
    const Execution::Outcome outcome = Call::advance(moved);
    if (outcome == Execution::Outcome::done) bundle_.unpack();
    return outcome;
  }
  Bundle& bundle() noexcept { return bundle_; }

 private:
  Bundle bundle_;
};

template <class Call>
std::unique_ptr<CollectiveCall> make_part(Communicator& communicator, Bundle bundle, uint32_t number) {
  auto part = std::make_unique<BundleCall<Call>>(std::move(bundle));
  part->keep_plan(true);
  part->prepare(communicator, part->bundle().joined(number), Deadline());
  return part;
}

}  // namespace

// ---- bundles ----------------------------------------------------------------------------------------------------------

bool Bundle::takes(const CollectiveArguments& call) const noexcept {
  if (calls_.empty()) return true;
  const CollectiveArguments& first = calls_.front();
  if (call.collective == Collective::barrier || call.uneven || first.uneven || !same_operation(first, call)) return false;
  if (has_own_operation(call) || has_own_operation(first)) return false;
  const uint64_t bytes = vector_bytes(call, size_);
  return bytes <= kMostCallBytes && vector_bytes(first, size_) <= kMostCallBytes && bytes_ + bytes <= kMostBytes;
}

void Bundle::add(const CollectiveArguments& call) {
  calls_.push_back(call);
  bytes_ += vector_bytes(call, size_);
}

CollectiveArguments Bundle::joined(uint32_t number) {
  CollectiveArguments result = calls_.front();
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&hash](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
  add(number);
  for (const CollectiveArguments& call : calls_) {
    if (!call.uneven) add(call.count);  // else it may be this rank's own
  }
  result.group_part = number;
  result.group_hash = static_cast<uint32_t>(hash ^ (hash >> 32)) | 1;
  if (!joins()) return result;

  result.count = 0;
  for (const CollectiveArguments& call : calls_) result.count += call.count;
  const auto bytes_of = [&](BufferId buffer) -> uint64_t {
    const Slice held = window(result.collective, buffer, rank_, result.root, size_);
    if (held == kNothing) return 0;
    return result.count * result.element_bytes * (held.cut == Cut::even ? 1 : held.last - held.first);
  };
  // One memory does for both where all of it goes in and comes out.
  result.in_place = result.collective == Collective::allreduce;
  output_.resize(bytes_of(BufferId::output));
  if (!result.in_place) input_.resize(bytes_of(BufferId::input));
  result.output = output_.data();
  result.input = result.in_place ? output_.data() : input_.data();
  return result;
}

template <class Visit>
void Bundle::each_piece(BufferId buffer, std::byte* memory, Visit&& visit) const {
  const CollectiveArguments& first = calls_.front();
  const Slice held = window(first.collective, buffer, rank_, first.root, size_);
  if (held == kNothing) return;
  const uint64_t blocks = held.cut == Cut::even ? 1 : held.last - held.first;
  for (uint64_t block = 0; block < blocks; ++block) {
    for (const CollectiveArguments& call : calls_) {
      const uint64_t bytes = call.count * call.element_bytes;
      const void* own = buffer == BufferId::input ? call.input : call.output;
      // In place, what a scatter's root keeps lies in what it sends, which is only read.
      const bool stays = buffer == BufferId::output && call.in_place && call.collective == Collective::scatter;
      if (bytes > 0 && !stays) visit(memory, static_cast<std::byte*>(const_cast<void*>(own)) + block * bytes, bytes);
      memory += bytes;
    }
  }
}

void Bundle::pack() noexcept {
  if (!joins()) return;
  const CollectiveArguments& first = calls_.front();
  const auto take = [](std::byte* joined, const std::byte* own, uint64_t bytes) { std::memcpy(joined, own, bytes); };
  if (first.collective != Collective::broadcast) {
    each_piece(BufferId::input, first.collective == Collective::allreduce ? output_.data() : input_.data(), take);
  } else if (first.root == rank_) {
    each_piece(BufferId::output, output_.data(), take);
  }
}

void Bundle::unpack() noexcept {
  if (!joins()) return;
  const CollectiveArguments& first = calls_.front();
  if (first.collective == Collective::broadcast && first.root == rank_) return;
  if (first.collective == Collective::exscan && rank_ == 0) return;  // it has no result
  each_piece(BufferId::output, output_.data(),
             [](const std::byte* joined, std::byte* own, uint64_t bytes) { std::memcpy(own, joined, bytes); });
}

// ---- groups -----------------------------------------------------------------------------------------------------------

CallGroup::CallGroup(Communicator& communicator) : communicator_(communicator) {}

void CallGroup::add(const CollectiveArguments& call) {
  calls_.push_back(call);
  arranged_ = false;
}

void CallGroup::arrange() {
  if (arranged_) return;
  std::vector<Bundle> bundles;
  for (const CollectiveArguments& call : calls_) {
    const auto takes = [&](const Bundle& bundle) { return bundle.takes(call); };
    auto bundle = std::find_if(bundles.begin(), bundles.end(), takes);
    if (bundle == bundles.end()) bundle = bundles.emplace(bundle, communicator_.rank(), communicator_.size());
    bundle->add(call);
  }
  parts_.clear();
  for (Bundle& bundle : bundles) {
    const auto number = static_cast<uint32_t>(parts_.size());
    parts_.push_back(communicator_.checks() ? make_part<CheckedCall>(communicator_, std::move(bundle), number)
                                            : make_part<CollectiveCall>(communicator_, std::move(bundle), number));
  }
  arranged_ = true;
}

void CallGroup::prepare(Request& request, Deadline deadline) {
  arrange();
  reset(deadline);
  request_.store(&request, std::memory_order_release);
}

Status CallGroup::begin(CallRecord& record) {
  next_ = 0;
  record_ = &record;
  part_begun_ = false;
  failed_to_begin_ = Status();
  if (parts_.empty()) {
    record.call = CallSignature();
    record.call.flags = CallSignature::kGrouped;
    record.mark = mark_of(record.sequence, record.call);
    return Status();
  }
  return begin_part();
}

Status CallGroup::begin_part() {
  part_begun_ = false;
  Status begun = current().begin(*record_);
  part_begun_ = begun.ok();
  return begun;
}

Execution::Outcome CallGroup::advance(bool& moved) {
  while (next_ < parts_.size()) {
    const Execution::Outcome outcome = current().advance(moved);
    if (outcome != Execution::Outcome::done) return outcome;
    moved = true;
    if (next_ + 1 == parts_.size()) break;
    ++next_;
    failed_to_begin_ = begin_part();
    if (!failed_to_begin_.ok()) return Execution::Outcome::failed;
  }
  return Execution::Outcome::done;
}

std::vector<uint32_t> CallGroup::waiting_for() const { return part_begun_ ? current().waiting_for() : std::vector<uint32_t>(); }

void CallGroup::abandon() noexcept {
  if (part_begun_) current().abandon();
}

void CallGroup::recycle() noexcept {
  if (Request* request = request_.load(std::memory_order_acquire)) request->release();
}

}  // namespace tutti
