// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "fd.hpp"
#include "layout.hpp"
#include "outcome.hpp"

namespace tutti::shm {

/// The mapped memory of a node: a memfd, or private memory if one process has all its ranks. Shared by the ranks of a process;
/// safe to use from several threads.
///
/// The file is sparse and sealed against shrinking; pages are reserved as extents are handed out, so that a shortage is an
/// error code here and never a SIGBUS later. The mapping is not inherited by fork(): a child has no use for it, and would
/// otherwise keep a dead job's memory alive.
class Arena {
 public:
  /// A new arena, sealed. `bytes` is rounded down to pages.
  static Outcome create(uint32_t ranks, uint64_t bytes, std::unique_ptr<Arena>& arena);
  /// One for a single process: plain memory, no descriptor.
  static Outcome create_private(uint32_t ranks, uint64_t bytes, std::unique_ptr<Arena>& arena);
  /// One that came from another process: seals, size and header are checked.
  static Outcome adopt(Fd memfd, uint32_t ranks, uint64_t bytes, std::unique_ptr<Arena>& arena);
  /// Takes over a mapping; use create or adopt.
  Arena(Fd memfd, uint32_t ranks, uint64_t bytes, std::byte* base);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int memfd() const { return memfd_.get(); }
  uint64_t bytes() const { return bytes_; }
  const Layout& layout() const { return layout_; }

  Control& control(uint32_t index) const { return *at<Control>(layout_.controls + sizeof(Control) * index); }
  /// Word `word` of the row of bits by which others tell rank `index` that they sent it a notice, or cut it.
  std::atomic<uint64_t>& notice_bits(uint32_t index, uint32_t word) const {
    return *at<std::atomic<uint64_t>>(layout_.notices + layout_.row_bytes * index + 8 * uint64_t{word});
  }
  std::atomic<uint64_t>& cut_bits(uint32_t index, uint32_t word) const {
    return *at<std::atomic<uint64_t>>(layout_.cuts + layout_.row_bytes * index + 8 * uint64_t{word});
  }

  /// Whether [offset, offset + length) lies in the part that is handed out, with that alignment.
  bool holds(uint64_t offset, uint64_t length, uint64_t alignment) const {
    return offset >= layout_.extents && offset <= bytes_ && length <= bytes_ - offset && offset % alignment == 0;
  }
  template <typename T>
  T* at(uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  std::byte* base() const { return base_; }

  /// Takes up to `want` bytes, at least `need`, for good, with their pages. TUTTI_ERR_RESOURCE: there are none.
  Outcome take_extent(uint64_t need, uint64_t want, uint64_t& offset, uint64_t& taken);

 private:
  static Outcome map(int memfd, uint64_t bytes, std::byte*& base);
  static Outcome check_size(uint32_t ranks, uint64_t bytes);
  void write_header();
  int reserve_pages(uint64_t offset, uint64_t bytes) const;

  Fd memfd_;
  Layout layout_;
  uint64_t bytes_;
  std::byte* base_;
};

}  // namespace tutti::shm
