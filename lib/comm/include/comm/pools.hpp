// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tutti {

struct Arrived;

/// A message that was claimed by a look and waits for its receive.
struct ClaimedMessage {
  const void* communicator = nullptr;  ///< its handle
  Arrived* message = nullptr;          ///< the group's
};

/// Objects that are made once and used again. Any thread.
template <class Item>
class ItemPool {
 public:
  /// Throws std::bad_alloc.
  std::unique_ptr<Item> take() {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (free_.empty()) {
      free_.reserve(made_ + 1);  // so that giving back never allocates
      auto made = std::make_unique<Item>();
      ++made_;
      return made;
    }
    std::unique_ptr<Item> item = std::move(free_.back());
    free_.pop_back();
    return item;
  }
  void give_back(std::unique_ptr<Item> item) noexcept {
    const std::lock_guard<std::mutex> hold(mutex_);
    free_.push_back(std::move(item));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Item>> free_;
  size_t made_ = 0;
};

/// Memory for the length of a call. A few pieces of moderate size are kept for the next. Any thread.
class ScratchPool {
 public:
  static constexpr uint64_t kMostKeptBytes = 1 << 20;  ///< of one piece: beside a longer copy an allocation is nothing
  static constexpr size_t kMostKept = 4;

  struct Piece {
    std::unique_ptr<std::byte[]> data;
    uint64_t bytes = 0;
  };
  /// Of this length at least. Throws std::bad_alloc.
  Piece take(uint64_t bytes) {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      for (Piece& kept : kept_) {
        if (kept.bytes >= bytes) return std::exchange(kept, Piece());
      }
    }
    return {std::unique_ptr<std::byte[]>(new std::byte[bytes]), bytes};
  }
  void give_back(Piece piece) noexcept {
    if (piece.bytes > kMostKeptBytes) return;
    const std::lock_guard<std::mutex> hold(mutex_);
    // The shortest makes room, so that repeated calls find one that does for all of them.
    Piece* shortest = kept_.data();
    for (Piece& kept : kept_) {
      if (kept.bytes < shortest->bytes) shortest = &kept;
    }
    if (shortest->bytes < piece.bytes) std::swap(*shortest, piece);
  }

 private:
  std::mutex mutex_;
  std::array<Piece, kMostKept> kept_;
};

}  // namespace tutti
