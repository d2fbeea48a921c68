// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tutti::sim {

/// Of two numbers one that differs whenever either does, but for odds of 2^-64. (The finalizer of MurmurHash3.)
constexpr uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDu;
  x ^= x >> 33;
  x *= 0xC4CEB9FE1A85EC53u;
  return x ^ (x >> 33);
}

}  // namespace tutti::sim
