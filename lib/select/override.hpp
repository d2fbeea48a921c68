// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "select/select.hpp"

namespace tutti {

Parameters default_parameters(const AlgorithmInfo& algorithm);

/// nullptr if the algorithm does for this shape; else the restriction that it breaks, for people.
const char* unfit_for(const AlgorithmInfo& algorithm, const Shape& shape);

/// nullptr if the algorithm does what is required; else what it lacks, for people.
const char* lacks(const AlgorithmInfo& algorithm, const Requirements& required);

/// "ring:segment_bytes=256K,channels=2" -> algorithm and parameters, for any shape. The reason is left empty.
Result<Choice> parse_algorithm(Collective collective, std::string_view text);
/// The same for a setting; the algorithm does for this shape.
Result<Choice> parse_override(Collective collective, const Shape& shape, std::string_view text);

}  // namespace tutti
