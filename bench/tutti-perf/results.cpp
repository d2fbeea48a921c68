// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <algorithm>

namespace tutti_perf {

double percentile(std::vector<double>& values, unsigned percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t rank = (values.size() * percent + 99) / 100;
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

double algorithm_bandwidth(uint64_t bytes, double mean_us) {
  return bytes == 0 || mean_us <= 0 ? 0 : static_cast<double>(bytes) / mean_us / 1000;
}

double overlap_percent(double communication_us, double compute_us, double overall_us) {
  if (communication_us <= 0) return 0;
  return std::clamp(100 * (1 - (overall_us - compute_us) / communication_us), 0.0, 100.0);
}

}  // namespace tutti_perf
