// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/types.hpp"
#include "commands.hpp"
#include "schedule/collective.hpp"

namespace tutti::tune {

std::vector<Series> series_of(const Job& job, const Options& options) {
  std::vector<Series> all;
  for (const Collective collective : options.collectives) {
    const std::vector<TypeClass> only = {TypeClass::integers};
    for (const TypeClass type : reduces(collective) ? options.types : only)
      all.push_back({collective, type, points_of(collective, job.size(), element_bytes(type), options.sizes)});
  }
  return all;
}

uint64_t most_bytes(const Series& series) {
  uint64_t most = 1;
  for (const Point& point : series.points) most = std::max(most, point.bytes);
  return most;
}

double weight_of(const Series& series, const Point& point, const Options& options, uint32_t ranks) {
  constexpr double kCallsPerPoint = 30;
  constexpr double kNsPerByte = 0.3;
  const double calls_ns = kCallsPerPoint * static_cast<double>(point.bytes) * ranks * kNsPerByte;
  return std::max(options.effort.point_ns, calls_ns) * (series.collective == Collective::barrier ? 0.5 : 1);
}

std::string text_of(const Series& series, const Point& point) {
  return fmt::format("{} of {}", name(series.collective), format_bytes(point.bytes));
}

}  // namespace tutti::tune
