// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/fork_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace tutti {
namespace {
constexpr size_t kPageBytes = 4096;
}

ForkGuard::ForkGuard() : owner_(::getpid()) {
  void* page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (::madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    ::munmap(page, kPageBytes);
    return;
  }
  page_ = static_cast<volatile uint64_t*>(page);
  *page_ = 1;
}

ForkGuard::~ForkGuard() {
  if (page_) ::munmap(const_cast<uint64_t*>(page_), kPageBytes);
}

}  // namespace tutti
