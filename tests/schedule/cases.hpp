// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/algorithm.hpp"
#include "schedule/verify.hpp"

/// What the tests of schedules run over.
namespace tutti::cases {

/// Every combination of small and ordinary values of the algorithm's parameters: chunks of two elements, of few and as long as
/// the transport allows; one lane, and several.
std::vector<Parameters> parameter_variants(const AlgorithmInfo& algorithm, uint32_t element_bytes);

/// "8,2"
std::string text(const Parameters& parameters);

/// 0, 1, 2, 3, around the number of ranks, odd ones, and enough for several chunks of two elements in each of `parts` blocks.
std::vector<uint64_t> counts(uint32_t ranks, uint32_t parts);

/// A named mix of capabilities.
struct Mix {
  std::string name;
  std::vector<Capabilities> pairs;
};
/// Messages, slots, two and three ranks a node, and random ones from `seed`; each with the given segments and prefetch.
std::vector<Mix> mixes(uint32_t ranks, uint64_t max_segment_bytes, uint16_t prefetch, uint64_t seed);

/// The schedules of all ranks.
std::vector<Schedule> job(const AlgorithmInfo& algorithm, uint32_t ranks, uint32_t root, const Parameters& parameters,
                          bool in_place);

}  // namespace tutti::cases
