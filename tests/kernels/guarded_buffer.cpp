// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "guarded_buffer.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>

GuardedBuffer::GuardedBuffer(size_t capacity_bytes) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t inner = (capacity_bytes + page - 1) / page * page;
  mapping_bytes_ = inner + 2 * page;
  mapping_ = ::mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::runtime_error("mmap failed");
  begin_ = static_cast<std::byte*>(mapping_) + page;
  end_ = begin_ + inner;
  if (::mprotect(begin_, inner, PROT_READ | PROT_WRITE) != 0) throw std::runtime_error("mprotect failed");
}

GuardedBuffer::~GuardedBuffer() { ::munmap(mapping_, mapping_bytes_); }
