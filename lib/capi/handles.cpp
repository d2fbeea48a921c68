// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

#include <new>

namespace tutti {
namespace {

constexpr uint32_t kGenerationMask = 0x0fffffff;
constexpr uint32_t kShortIndexBits = 20;
constexpr uint32_t kShortGenerationMask = 0x3ff;

}  // namespace

HandleTable HandleTable::all;

HandleTable::~HandleTable() {
  for (std::atomic<Chunk*>& chunk : chunks_) delete chunk.exchange(nullptr);
}

void* HandleTable::insert(HandleKind kind, void* object) {
  const std::lock_guard<std::mutex> hold(mutex_);
  if (free_.empty()) {
    const size_t chunk = slot_count_ / kChunkSlots;
    if (chunk >= kMostChunks) throw std::bad_alloc();
    free_.reserve(slot_count_ + kChunkSlots);  // giving back must not allocate
    chunks_[chunk].store(new Chunk, std::memory_order_release);
    for (size_t i = kChunkSlots; i-- > 0;) free_.push_back(static_cast<uint32_t>(slot_count_ + i));
    slot_count_ += kChunkSlots;
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = (*chunks_[index / kChunkSlots].load(std::memory_order_relaxed))[index % kChunkSlots];
  slot.generation = (slot.generation + 1) & kGenerationMask;
  const uint32_t tag = (static_cast<uint32_t>(kind) << 28) | slot.generation;
  slot.object.store(object, std::memory_order_relaxed);
  slot.tag.store(tag, std::memory_order_release);
  return reinterpret_cast<void*>((uintptr_t{tag} << 32) | index);
}

void* HandleTable::remove(HandleKind kind, const void* handle) noexcept {
  const std::lock_guard<std::mutex> hold(mutex_);
  return remove_locked(kind, handle);
}

std::optional<int32_t> HandleTable::short_form(const void* handle) noexcept {
  if (index_of(handle) >> kShortIndexBits != 0) return std::nullopt;
  const uint32_t generation = tag_of(handle) & kShortGenerationMask;
  return static_cast<int32_t>(uint32_t{kFirstShortForm} | generation << kShortIndexBits |
                              static_cast<uint32_t>(index_of(handle)));
}

const void* HandleTable::long_form(HandleKind kind, int32_t short_form) const noexcept {
  if (short_form < kFirstShortForm) return nullptr;
  const auto bits = static_cast<uint32_t>(short_form - kFirstShortForm);
  const size_t index = bits & ((1u << kShortIndexBits) - 1);
  const Slot* found = slot(index);
  const uint32_t tag = found ? found->tag.load(std::memory_order_acquire) : 0;
  if (tag >> 28 != static_cast<uint32_t>(kind) || (tag & kShortGenerationMask) != bits >> kShortIndexBits) return nullptr;
  return reinterpret_cast<const void*>((uintptr_t{tag} << 32) | index);
}

void* HandleTable::remove_locked(HandleKind kind, const void* handle) noexcept {
  void* object = find(kind, handle);
  if (!object) return nullptr;
  auto* found = const_cast<Slot*>(slot(index_of(handle)));
  found->tag.store(0, std::memory_order_release);
  found->object.store(nullptr, std::memory_order_relaxed);
  free_.push_back(static_cast<uint32_t>(index_of(handle)));
  return object;
}

void* HandleTable::remove_if(HandleKind kind, const std::function<bool(const void* object)>& wanted) {
  const std::lock_guard<std::mutex> hold(mutex_);
  for (size_t index = 0; index < slot_count_; ++index) {
    const uint32_t tag = slot(index)->tag.load(std::memory_order_relaxed);
    if (tag >> 28 != static_cast<uint32_t>(kind) || !wanted(slot(index)->object.load(std::memory_order_relaxed))) continue;
    return remove_locked(kind, reinterpret_cast<void*>((uintptr_t{tag} << 32) | index));
  }
  return nullptr;
}

}  // namespace tutti
