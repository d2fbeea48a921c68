// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "failing_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local int64_t allocations_left = -1;  // until one fails; negative: none does
thread_local bool failed_here = false;
thread_local int64_t made_here = 0;
thread_local int64_t kept_here = 0;
std::atomic<int64_t> kept_everywhere{0};

/// nullptr: this is the one that fails.
void* allocate(size_t bytes, size_t alignment) noexcept {
  if (allocations_left >= 0 && allocations_left-- == 0) {
    failed_here = true;
    return nullptr;
  }
  void* memory = nullptr;
  if (::posix_memalign(&memory, std::max(alignment, sizeof(void*)), std::max<size_t>(bytes, 1)) != 0) return nullptr;
  ++made_here;
  ++kept_here;
  kept_everywhere.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  --kept_here;
  kept_everywhere.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

constexpr size_t kUsual = alignof(std::max_align_t);

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes, kUsual); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, kUsual); }
void* operator new(size_t bytes, std::align_val_t alignment) { return allocate_or_throw(bytes, static_cast<size_t>(alignment)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, kUsual); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }

namespace tutti::test {

FailingAllocation::FailingAllocation(int64_t which) noexcept {
  failed_here = false;
  allocations_left = which;
}
FailingAllocation::~FailingAllocation() { allocations_left = -1; }
bool FailingAllocation::has_failed() noexcept { return failed_here; }

int64_t allocations_here() noexcept { return made_here; }
int64_t live_here() noexcept { return kept_here; }
int64_t live_everywhere() noexcept { return kept_everywhere.load(std::memory_order_relaxed); }

const tutti_hooks_t* memory_hooks() {
  static const tutti_hooks_t hooks = [] {
    tutti_hooks_t made;
    tutti_hooks_init(&made);
    made.alloc = [](void*, size_t bytes, size_t alignment) { return allocate(bytes, alignment); };
    made.free = [](void*, void* memory) { release(memory); };
    return made;
  }();
  return &hooks;
}

}  // namespace tutti::test
