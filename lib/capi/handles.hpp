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

/// Handles are (kind, generation, index), never addresses: one that was destroyed, or is of another kind, is recognised. One of
/// the three globals of the library. Looking up takes no lock.
class HandleTable {
 public:
  static HandleTable all;

  HandleTable() = default;
  ~HandleTable();
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  /// Throws std::bad_alloc.
  void* insert(HandleKind kind, void* object);
  /// nullptr: no such handle.
  void* find(HandleKind kind, const void* handle) const noexcept {
    const uint32_t tag = tag_of(handle);
    if (tag >> 28 != static_cast<uint32_t>(kind)) return nullptr;
    const Slot* found = slot(index_of(handle));
    if (!found || found->tag.load(std::memory_order_acquire) != tag) return nullptr;
    return found->object.load(std::memory_order_relaxed);
  }
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

  static_assert(sizeof(void*) == 8, "a handle holds 32 bits of kind and generation and 32 bits of index");
  static uint32_t tag_of(const void* handle) noexcept { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) >> 32); }
  static size_t index_of(const void* handle) noexcept { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle)); }
  const Slot* slot(size_t index) const noexcept {
    if (index / kChunkSlots >= kMostChunks) return nullptr;
    const Chunk* chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);
    return chunk ? &(*chunk)[index % kChunkSlots] : nullptr;
  }
  void* remove_locked(HandleKind kind, const void* handle) noexcept;

  std::mutex mutex_;
  std::array<std::atomic<Chunk*>, kMostChunks> chunks_{};
  size_t slot_count_ = 0;
  std::vector<uint32_t> free_;
};

inline HandleTable& handles() noexcept { return HandleTable::all; }

}  // namespace tutti
