// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "options.hpp"
#include "ranks.hpp"

namespace tutti_perf {

/// One blocking call of a collective on this rank, as the timed loop makes it.
struct Call {
  Collective collective = Collective::allreduce;
  tutti_dtype_t dtype = TUTTI_FLOAT32;
  tutti_op_t op = TUTTI_SUM;
  uint32_t root = 0;
  uint32_t element_bytes = 4;
};

/// Elements [offset, offset + count) of the buffers; send == recv: in place. Throws RunError.
void make_call(const Member& member, const Call& call, void* send, void* recv, uint64_t offset, uint64_t count);

/// "allreduce of 16 float32, sum"
std::string describe(const Call& call, uint64_t count);

}  // namespace tutti_perf
