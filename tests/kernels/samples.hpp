// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "base/types.hpp"

/// An element's bytes, the first one lowest.
using Bits = unsigned __int128;
using Elements = std::vector<Bits>;

/// The corners of a type: zeros, ones, extremes, for floats also denormals, infinities and NaN of several payloads; all values of
/// a type of one byte that is a float; for pairs also equal values with several indices, and padding that is not zero.
const Elements& corners(tutti::DType dtype);

/// `count` elements: a third corners, a third any bits, a third values of like size (so that sums round).
Elements random_elements(tutti::DType dtype, size_t count, std::mt19937_64& random);

/// As an array of the type.
std::vector<std::byte> pack(tutti::DType dtype, const Elements& elements);

/// Calls visit(dtype, op) for all that is defined.
template <class Visit>
void for_all_folds(Visit visit) {
  for (size_t type = 0; type < tutti::kDTypeCount; ++type) {
    for (size_t op = 0; op < tutti::kOpCount; ++op) {
      if (tutti::defined(static_cast<tutti::DType>(type), static_cast<tutti::Op>(op)))
        visit(static_cast<tutti::DType>(type), static_cast<tutti::Op>(op));
    }
  }
}
