// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "options.hpp"
#include "sizes.hpp"

namespace tutti_perf {

/// One (collective, type, operation, root): rows of all sizes.
struct Series {
  Collective collective = Collective::allreduce;
  tutti_dtype_t dtype = TUTTI_FLOAT32;
  tutti_op_t op = TUTTI_SUM;
  uint32_t root = 0;
  bool rotate = false;  // each call has the next rank as its root
};

/// Why `collective` cannot be run with these options; "" when it can.
std::string obstacle(const Options& options, Collective collective);

/// Throws UsageError for a combination that was asked for and does not exist: a type with an operation, a root that is no rank.
std::vector<Series> series_of(const Options& options, Collective collective, uint32_t rank_count);

/// The rows of a series, without what is longer than -e, which *left_out counts.
std::vector<Workload> work_of(const Options& options, const Series& series, uint32_t rank_count, uint64_t* left_out);

/// After how many calls all comes again: each with its communicator, root and buffer. Throws UsageError if they are too many.
uint64_t cycle_of(const Options& options, const Series& series, uint64_t calls_of_iteration, uint32_t rank_count);
/// Calls of an iteration that are under way together.
uint32_t batch_of(const Options& options, Collective collective);

/// Messages of one call of message_rate: what was asked for, or as many as kWindowBytes hold.
uint64_t window_of(const Options& options, uint64_t message_bytes);
inline constexpr uint64_t kWindowBytes = 64ull << 20;

}  // namespace tutti_perf
