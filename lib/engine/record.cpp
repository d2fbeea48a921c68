// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/record.hpp"

#include <algorithm>

#include "schedule/collective.hpp"

namespace tutti {
namespace {

bool has_data(Collective collective) { return collective != Collective::barrier; }
bool known(Collective collective) { return static_cast<uint32_t>(collective) < kCollectiveCount; }
bool known(DType dtype) { return static_cast<size_t>(dtype) < kDTypeCount; }
bool known(Op op) { return static_cast<size_t>(op) < kOpCount; }

}  // namespace

bool agree(const CallSignature& a, const CallSignature& b) noexcept {
  const bool count_is_own = ((a.flags | b.flags) & CallSignature::kCountIsOwn) != 0;
  return a.collective == b.collective && a.dtype == b.dtype && a.op == b.op && a.root == b.root && a.choice == b.choice &&
         (count_is_own || a.count == b.count);
}

std::string difference(const CallSignature& a, const CallSignature& b) {
  if (a.collective != b.collective) return "different collectives";
  if (a.root != b.root) return "different roots";
  if (a.dtype != b.dtype) return "different types";
  if (a.op != b.op) return "different operations";
  if (a.count != b.count) return "different counts";
  if (a.choice != b.choice)
    return ((a.flags | b.flags) & CallSignature::kGrouped) != 0 ? "different groups" : "different algorithms";
  return "one collective out of order";
}

std::string text(const CallSignature& call, uint64_t sequence) {
  if (!known(call.collective)) return fmt::format("an unknown collective (call {})", sequence);
  std::string result(name(call.collective));
  if (has_data(call.collective)) {
    result += fmt::format(" of {} {}", call.count, known(call.dtype) ? c_name(call.dtype) : "elements of unknown type");
    const std::string_view other = call.op == CallSignature::kUserOp ? "an operation of the caller's" : "unknown operation";
    if (reduces(call.collective)) result += fmt::format(", {}", known(call.op) ? name(call.op) : other);
    const bool to_root = call.collective == Collective::reduce || call.collective == Collective::gather;
    if (has_root(call.collective)) result += fmt::format(" {} root {}", to_root ? "to" : "from", call.root);
  }
  if ((call.flags & CallSignature::kGrouped) != 0) result += " of a group";
  return result + fmt::format(" (call {})", sequence);
}

const CallRecord* CallLog::find(uint64_t sequence) const noexcept {
  const CallRecord& record = records_[sequence % kKept];
  return sequence != 0 && record.sequence == sequence ? &record : nullptr;
}

const CallRecord* CallLog::find_mark(uint32_t mark) const noexcept {
  const auto found = std::find_if(records_.begin(), records_.end(),
                                  [&](const CallRecord& record) { return record.sequence != 0 && record.mark == mark; });
  return found == records_.end() ? nullptr : &*found;
}

}  // namespace tutti
