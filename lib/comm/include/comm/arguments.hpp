// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.hpp"
#include "kernels/kernels.hpp"
#include "schedule/collective.hpp"
#include "tutti/tutti.h"

namespace tutti {

/// An operation of the caller's; function nullptr: none.
struct UserFold {
  tutti_op_function_t function = nullptr;
  void* user = nullptr;
  tutti_dtype_t dtype = 0;
  uint32_t element_bytes = 0;

  /// A kernel that calls it; FoldCall::context is the UserFold.
  static void fold(const FoldCall& call) noexcept;
};

/// What one collective call was given, checked. Arrays are the caller's, have an entry for each rank and stay until the call has
/// completed.
struct CollectiveArguments {
  Collective collective = Collective::barrier;
  DType dtype = DType::u8;
  Op op = Op::sum;
  bool in_place = false;
  bool uneven = false;        ///< a call of the kind with a count for each block, whatever the counts are
  bool ordered = false;       ///< the operation does not commute
  uint32_t element_bytes = 1;
  uint32_t root = 0;
  const void* input = nullptr;  ///< of the collective's window (schedule/collective.hpp)
  void* output = nullptr;
  uint64_t count = 0;  ///< of the vector; with blocks: of each, or of the own one
  /// Blocks of different lengths: nullptr where they are alike, and where the rank need not know (gatherv, away from the root).
  const uint64_t* counts = nullptr;
  const uint64_t* received_counts = nullptr;  ///< alltoall
  const uint64_t* input_places = nullptr;     ///< elements before each block in its buffer; nullptr: one after another
  const uint64_t* output_places = nullptr;
  double factor = 1;  ///< by which contributions are multiplied first
  UserFold user_fold;
  bool scaled = false;  ///< by a factor, be it 1 on this rank
  uint32_t group_part = 0;  ///< of a call of a group: its number there
  uint32_t group_hash = 0;  ///< of a call of a group: what it is put together from; 0: a call by itself
  std::shared_ptr<const std::vector<uint64_t>> own_arrays;  ///< counts and places, where they are not the caller's
};

/// Counts for which one algorithm is taken.
struct CountRange {
  uint64_t first = 0;
  uint64_t last = 0;
};

/// The call's counts, for a job of `size` ranks.
Lengths lengths_of(const CollectiveArguments& arguments, uint32_t size) noexcept;

/// Bytes of the whole vector as far as all ranks know them: what an algorithm is chosen by.
uint64_t vector_bytes(const CollectiveArguments& arguments, uint32_t size) noexcept;

/// What of the operation makes the choice of an algorithm; the same on all ranks.
bool folds_inexactly(const CollectiveArguments& arguments) noexcept;

}  // namespace tutti
