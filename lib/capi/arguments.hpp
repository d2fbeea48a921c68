// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/status.hpp"
#include "base/types.hpp"
#include "comm/communicator.hpp"
#include "tutti/tutti.h"

namespace tutti {

// What calls of several kinds check of their arguments.

bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes);
/// The type, and the bytes of so many elements.
Status check_type(uint64_t count, tutti_dtype_t dtype, DType* type, uint64_t* bytes);
/// name: of the argument.
Status check_rank(const Communicator& communicator, int rank, const char* name);

}  // namespace tutti
