// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/kernels.hpp"

#ifdef TUTTI_KERNELS_X86
#include <emmintrin.h>
#endif

namespace tutti {
namespace {

#ifdef TUTTI_KERNELS_X86
/// Past the caches; SSE2 is part of every x86-64.
[[gnu::noinline]] void stream_copy(std::byte* to, const std::byte* from, uint64_t bytes) noexcept {
  constexpr uint64_t kStep = 64;
  const uint64_t head = std::min<uint64_t>(bytes, -reinterpret_cast<uintptr_t>(to) % kStep);
  std::memcpy(to, from, static_cast<size_t>(head));
  uint64_t at = head;
  for (; bytes - at >= kStep; at += kStep) {
    for (uint64_t part = 0; part < kStep; part += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + part),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + part)));
    }
  }
  _mm_sfence();  // streamed stores are not ordered by the caller's release
  std::memcpy(to + at, from + at, static_cast<size_t>(bytes - at));
}
#endif

}  // namespace

void copy_bytes(void* const* destinations, uint32_t destination_count, const void* source, uint64_t bytes,
                uint64_t streamed_bytes) noexcept {
#ifdef TUTTI_KERNELS_X86
  if (bytes >= streamed_bytes && destination_count == 1 && destinations[0] != source) {
    stream_copy(static_cast<std::byte*>(destinations[0]), static_cast<const std::byte*>(source), bytes);
    return;
  }
#else
  (void)streamed_bytes;  // the C library knows its machine
#endif
  if (destination_count == 1) {
    if (destinations[0] != source) std::memcpy(destinations[0], source, static_cast<size_t>(bytes));
    return;
  }
  // With several destinations the source is read from memory once, in blocks that stay in the first-level cache.
  constexpr uint64_t kBlockBytes = 16384;
  for (uint64_t offset = 0; offset < bytes; offset += kBlockBytes) {
    const auto length = static_cast<size_t>(std::min(kBlockBytes, bytes - offset));
    const auto* from = static_cast<const std::byte*>(source) + offset;
    for (uint32_t j = 0; j < destination_count; ++j) {
      auto* to = static_cast<std::byte*>(destinations[j]) + offset;
      if (to != from) std::memcpy(to, from, length);
    }
  }
}

}  // namespace tutti
