// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/kernels.hpp"

namespace tutti {

void copy_bytes(void* const* destinations, uint32_t destination_count, const void* source, uint64_t bytes) noexcept {
  // With several destinations the source is read from memory once, in blocks that stay in the first-level cache.
  constexpr uint64_t kBlockBytes = 16384;
  const uint64_t block = destination_count > 1 ? kBlockBytes : bytes;
  for (uint64_t offset = 0; offset < bytes; offset += block) {
    const auto length = static_cast<size_t>(std::min(block, bytes - offset));
    const auto* from = static_cast<const std::byte*>(source) + offset;
    for (uint32_t j = 0; j < destination_count; ++j) {
      auto* to = static_cast<std::byte*>(destinations[j]) + offset;
      if (to != from) std::memcpy(to, from, length);
    }
  }
}

}  // namespace tutti
