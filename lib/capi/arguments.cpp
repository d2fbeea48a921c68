// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

namespace tutti {

bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a);
  const auto y = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && (x < y ? y - x < a_bytes : x - y < b_bytes);
}

Status check_type(uint64_t count, tutti_dtype_t dtype, DType* type, uint64_t* bytes) {
  Result<DType> known = to_dtype(dtype);
  if (!known) return known.status();
  *type = *known;
  Result<uint64_t> size = checked_bytes(count, size_bytes(*known));
  if (!size) return size.status();
  *bytes = *size;
  return Status();
}

Status check_rank(const Communicator& communicator, int rank, const char* name) {
  if (rank < 0 || static_cast<uint32_t>(rank) >= communicator.size())
    return error(TUTTI_ERR_RANK, "{} is {}, outside [0, {})", name, rank, communicator.size());
  return Status();
}

}  // namespace tutti
