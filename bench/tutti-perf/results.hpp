// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "options.hpp"

namespace tutti_perf {

/// Times of one variant, largest over the ranks.
struct Timing {
  double mean_us = 0;
  double p50_us = 0;
  double p99_us = 0;
  uint64_t iterations = 0;
  uint64_t wrong = 0;
  // With --overlap: the mean above is of communication alone.
  double compute_us = 0;
  double overall_us = 0;
  double overlap_percent = 0;
};

/// How much of the communication was hidden behind the computation: 100 when both together took as long as the computation alone,
/// 0 when they took as long as one after the other.
double overlap_percent(double communication_us, double compute_us, double overall_us);

/// One line of the table.
struct Row {
  Collective collective = Collective::allreduce;
  uint64_t bytes = 0;
  uint64_t count = 0;
  tutti_dtype_t dtype = TUTTI_FLOAT32;  // not of barrier
  tutti_op_t op = TUTTI_SUM;            // of reductions; or kScaledSum
  uint32_t root = 0;                    // where there are roots
  bool rotate = false;                  // every rank is root in turn
  uint64_t tensor_count = 1;
  bool whole_model = false;
  bool has_in_place = false;
  Timing out_of_place;
  Timing in_place;
};

/// The value below which `percent` of a hundred lie: the nearest rank, so that it is one that was measured. Sorts `values`.
double percentile(std::vector<double>& values, unsigned percent);

/// 10^9 bytes a second; 0 when nothing was moved.
double algorithm_bandwidth(uint64_t bytes, double mean_us);

}  // namespace tutti_perf
