// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/arguments.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tutti {

/// The caller's function folds two vectors, the left one into the right one. Several sources are folded from the right, a piece
/// at a time, in memory that nobody else sees: a destination may be a source.
void UserFold::fold(const FoldCall& call) noexcept {
  constexpr uint64_t kPieceBytes = TUTTI_MAX_TYPE_BYTES;
  alignas(64) std::byte piece[kPieceBytes];
  const auto& own = *static_cast<const UserFold*>(call.context);
  const uint64_t bytes = own.element_bytes;
  const uint64_t at_once = kPieceBytes / bytes;
  for (uint64_t done = 0; done < call.count; done += at_once) {
    const uint64_t count = std::min(at_once, call.count - done);
    const auto source = [&](uint32_t n) { return static_cast<const std::byte*>(call.sources[n]) + done * bytes; };
    std::memcpy(piece, source(call.source_count - 1), count * bytes);
    for (uint32_t n = call.source_count - 1; n-- > 0;) own.function(source(n), piece, count, own.dtype, own.user);
    for (uint32_t n = 0; n < call.destination_count; ++n) {
      std::memcpy(static_cast<std::byte*>(call.destinations[n]) + done * bytes, piece, count * bytes);
    }
  }
}

Lengths lengths_of(const CollectiveArguments& arguments, uint32_t size) noexcept {
  Lengths lengths;
  lengths.count = arguments.count;
  if (arguments.counts != nullptr) lengths.counts = {arguments.counts, size};
  if (arguments.received_counts != nullptr) lengths.received_counts = {arguments.received_counts, size};
  return lengths;
}

uint64_t vector_bytes(const CollectiveArguments& arguments, uint32_t size) noexcept {
  // Where ranks do not know each other's counts, they could not agree on a choice by them.
  constexpr uint64_t kSupposedBlockBytes = 16 * 1024;
  if (!has_blocks(arguments.collective)) return arguments.count * arguments.element_bytes;
  if (arguments.uneven && hides_counts(arguments.collective)) return kSupposedBlockBytes * size;
  if (arguments.counts == nullptr) return arguments.count * size * arguments.element_bytes;
  return std::accumulate(arguments.counts, arguments.counts + size, uint64_t{0}) * arguments.element_bytes;
}

bool folds_inexactly(const CollectiveArguments& arguments) noexcept {
  if (arguments.user_fold.function != nullptr) return true;
  switch (arguments.dtype) {
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
    case DType::c64:
    case DType::c128:
      return arguments.op == Op::sum || arguments.op == Op::prod || arguments.op == Op::avg;
    default:
      return false;
  }
}

}  // namespace tutti
