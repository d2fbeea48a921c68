// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Memory between two pages that may not be touched: an access one byte outside ends the test with SIGSEGV.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t capacity_bytes);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  /// `bytes` bytes that start `offset` bytes behind the lower guard page.
  std::byte* at_front(size_t offset) { return begin_ + offset; }
  /// `bytes` bytes that end `offset` bytes before the upper guard page.
  std::byte* at_back(size_t bytes, size_t offset) { return end_ - offset - bytes; }
  std::byte* begin() { return begin_; }
  std::byte* end() { return end_; }

 private:
  void* mapping_;
  size_t mapping_bytes_;
  std::byte* begin_;
  std::byte* end_;
};
