// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Inputs whose sums are exact in float, and what must come of them.
#pragma once

#include <cstdint>

#include "body.hpp"

namespace peers {

// Floats that each of the two buffers must hold.
size_t buffer_floats(Collective collective, size_t count, int ranks);

// Fills the buffers of `rank` before a call with this root.
void fill(const Task& task, int rank, int ranks, int root);

// Elements of the result that are not what they must be, of the call with this root after fill().
uint64_t wrong_elements(const Task& task, int rank, int ranks, int root);

bool is_rooted(Collective collective);

}  // namespace peers
