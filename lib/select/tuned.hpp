// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "select/select.hpp"
#include "select/tuning.hpp"

namespace tutti {

/// Whether groups say anything: more than one of them, and not a rank each.
bool nests(const Shape& shape);

/// nullptr, or why it cannot, or need not, be taken; for people.
const char* unusable(const AlgorithmInfo& algorithm, const Shape& shape, const Requirements& required);

/// The model's table with what was measured in its place, as far as that can be used. match.section is not null.
std::vector<SelectionRow> apply_tuning(const std::vector<SelectionRow>& model, const TuningTable& table,
                                       const TuningTable::Match& match, const Shape& shape, const Requirements& required);

}  // namespace tutti
