// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "select/tuning.hpp"

namespace tutti::tune {

/// The table that measured times say: for each size nearly the fastest, so that what changes from size to size is worth it; a
/// change lies in the middle (geometrically) between two sizes. Empty if there are no times.
std::vector<TuningRow> rows_of(std::span<const TuningTime> times);

/// The times replace those of the same sizes; rows are made of all.
void put_times(TuningSection& section, std::span<const TuningTime> times);

}  // namespace tutti::tune
