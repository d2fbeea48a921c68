// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "select/select.hpp"

namespace tutti {

/// One way to run a call.
struct Contender {
  const AlgorithmInfo* algorithm = nullptr;
  Parameters parameters;
  double predicted_ns = 0;
  std::string excluded;  ///< why it cannot be taken; "": it can
};

/// All algorithms of a collective, with their default parameters: first those that can be taken, the fastest by the model first.
std::vector<Contender> rank_contenders(Collective collective, const Shape& shape, uint64_t bytes, const CostModel& model,
                                       const Requirements& required);

/// What is worth measuring: each algorithm that can be taken, with its default parameters, and with one at a time changed.
std::vector<Contender> contender_grid(Collective collective, const Shape& shape, const Requirements& required);

/// Whether both are the same program at this size.
bool alike_at(const Contender& one, const Contender& other, uint64_t bytes);

/// Whether its parameters make a difference to the default ones at this size.
bool differs_at(const Contender& contender, uint64_t bytes);

}  // namespace tutti
