// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace tutti {

enum class HandleKind : uint8_t { config = 1, communicator, request, context, unique_id, message, type, op, group };

/// Handles are (kind, generation, index), never addresses: one that was destroyed, or is of another kind, is recognised. One of the
/// three globals of the library. Looking up takes no lock.
class HandleTable {
 public:
  HandleTable() = default;
  ~HandleTable();
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// Throws std::bad_alloc.
  void* insert(HandleKind kind, void* object);
  /// nullptr: no such handle.
  void* find(HandleKind kind, const void* handle) const noexcept;
  /// The object, which is the caller's again; nullptr: no such handle.
  void* remove(HandleKind kind, const void* handle) noexcept;

  /// A handle in 31 bits, at least kFirstShortForm, for numbers of types and operations: the index and the last bits of the
  /// generation. nullopt: the index is too large.
  static constexpr int32_t kFirstShortForm = 1 << 30;
  static std::optional<int32_t> short_form(const void* handle) noexcept;
  /// nullptr: no such handle.
  const void* long_form(HandleKind kind, int32_t short_form) const noexcept;
  /// The first object of a kind that `wanted` says so of, under the table's lock; it is the caller's again. nullptr: none.
  void* remove_if(HandleKind kind, const std::function<bool(const void* object)>& wanted);

 private:
  struct Slot {
    std::atomic<uint32_t> tag{0};  // kind in the top four bits, generation below; 0: free
    std::atomic<void*> object{nullptr};
    uint32_t generation = 0;
  };
  static constexpr size_t kChunkSlots = 256;
  static constexpr size_t kMostChunks = 8192;
  using Chunk = std::array<Slot, kChunkSlots>;

  const Slot* slot(size_t index) const noexcept;
  void* remove_locked(HandleKind kind, const void* handle) noexcept;

  std::mutex mutex_;
  std::array<std::atomic<Chunk*>, kMostChunks> chunks_{};
  size_t slot_count_ = 0;
  std::vector<uint32_t> free_;
};

HandleTable& handles() noexcept;

}  // namespace tutti
