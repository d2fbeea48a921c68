// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tutti/tutti.h"

namespace tutti::test {

// The program's own operator new and delete, and hooks that give the memory of transports: the n-th allocation of one thread
// fails, when it is told to; others never do.

/// While it lives, allocation `which` (from 0) of this thread fails, and no other. Not within each other.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t which) noexcept;
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  /// Whether the one of this thread has failed, or failed in the last one's life.
  static bool has_failed() noexcept;
};

/// Allocations of this thread since it began.
int64_t allocations_here() noexcept;
/// Those of them that are not freed, less those of others that this thread freed.
int64_t live_here() noexcept;
/// Allocations of all threads that are not freed.
int64_t live_everywhere() noexcept;

const tutti_hooks_t* memory_hooks();

}  // namespace tutti::test
