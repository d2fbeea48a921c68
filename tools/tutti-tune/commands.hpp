// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "job.hpp"
#include "options.hpp"

namespace tutti::tune {

/// Both are collective, give an exit code, and throw UsageError (on all ranks) and RunError.
int tune(const Job& job, const Options& options);
int judge(const Job& job, const Options& options);

/// What is measured together: a collective, with a class of types if it folds.
struct Series {
  Collective collective;
  TypeClass type;
  std::vector<Point> points;
};
std::vector<Series> series_of(const Job& job, const Options& options);
uint64_t most_bytes(const Series& series);
/// How long a point takes, to compare with others.
double weight_of(const Series& series, const Point& point, const Options& options, uint32_t ranks);
/// "allreduce of 64K".
std::string text_of(const Series& series, const Point& point);

}  // namespace tutti::tune
