// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "models.hpp"

namespace tutti_perf {

/// "4096", "64K", "1M", "2GiB": powers of 1024. Throws UsageError that names `option`.
uint64_t parse_bytes(std::string_view option, std::string_view text);
/// A whole number in [min, max].
uint64_t parse_count(std::string_view option, std::string_view text, uint64_t min, uint64_t max);

/// From begin to end, each the factor times the one before or step_bytes more. A begin of 0 is followed by 8.
struct Sweep {
  uint64_t begin_bytes = 8;
  uint64_t end_bytes = 64ull << 20;
  double factor = 2;  // used when step_bytes is 0
  uint64_t step_bytes = 0;
};
std::vector<uint64_t> sweep_bytes(const Sweep& sweep);

/// One row of the table: calls with these counts, one after the other, are one iteration.
struct Workload {
  std::vector<uint64_t> counts;
  uint64_t tensor_count = 1;  // tensors of the model that have this size
  bool whole_model = false;
  uint64_t total_count() const;
  uint64_t longest_count() const;
};

/// Whole elements of each size, a multiple of `multiple`, at least one multiple but for the size 0; a count that came before is
/// left out.
std::vector<Workload> workloads_of_sweep(const Sweep& sweep, uint32_t element_bytes, uint32_t multiple = 1);

/// One row for each different tensor size in the order of its first tensor, then one for the whole model, all tensors in a row.
/// Tensors above max_bytes are left out and counted in *left_out; the row of the whole model then is those that are left.
std::vector<Workload> workloads_of_model(const Model& model, uint32_t element_bytes, uint64_t max_bytes, uint64_t* left_out);

}  // namespace tutti_perf
