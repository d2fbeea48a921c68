// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace tutti {

/// The only topology that an algorithm sees: how many ranks there are and how they nest in groups (NUMA node, package,
/// node, switch ...). Level 0 is the innermost. Equal on every rank.
struct Shape {
  uint32_t size = 1;
  /// group_of[level][rank]: dense group numbers, in order of the lowest rank of each group. May be empty: one flat group.
  std::vector<std::vector<uint32_t>> group_of;

  static Shape flat(uint32_t size) { return {size, {}}; }
  bool operator==(const Shape&) const = default;
};

}  // namespace tutti
