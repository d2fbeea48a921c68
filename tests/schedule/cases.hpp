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

/// Lengths to judge an algorithm with. A vector: 0, 1, 2, 3, around the number of ranks, odd ones, and enough for several chunks of
/// two elements in each of `ranks` parts. Blocks: short ones, and several chunks.
std::vector<uint64_t> counts(const AlgorithmInfo& algorithm, uint32_t ranks);

/// Whether the algorithm takes blocks of different lengths.
bool takes_uneven(const AlgorithmInfo& algorithm);
/// Blocks of different lengths: all combinations of {0, 1, 3} for few ranks (of alltoall: some), and random ones up to `longest`.
std::vector<std::vector<uint64_t>> uneven_counts(const AlgorithmInfo& algorithm, uint32_t ranks, uint64_t seed);
std::vector<uint64_t> random_counts(const AlgorithmInfo& algorithm, uint32_t ranks, uint64_t longest, uint64_t seed);

/// How the ranks may nest, as far as the algorithm looks at it: flat, neighbours on a node, one after the other over the nodes,
/// uneven nodes, a rank a node, three levels.
std::vector<Shape> shapes(const AlgorithmInfo& algorithm, uint32_t ranks);
std::string text(const Shape& shape);

/// Whether the algorithm does for that many ranks.
bool fits(const AlgorithmInfo& algorithm, uint32_t ranks);

/// A named mix of capabilities.
struct Mix {
  std::string name;
  std::vector<Capabilities> pairs;
};
/// Messages, slots, two and three ranks a node, and random ones from `seed`; each with the given segments and prefetch.
std::vector<Mix> mixes(uint32_t ranks, uint64_t max_segment_bytes, uint16_t prefetch, uint64_t seed);

/// The schedules of all ranks.
std::vector<Schedule> job(const AlgorithmInfo& algorithm, const Shape& shape, uint32_t root, const Parameters& parameters,
                          bool in_place);

/// What the algorithm says of its folds.
Call call_for(const AlgorithmInfo& algorithm, uint32_t element_bytes, uint32_t root);

}  // namespace tutti::cases
