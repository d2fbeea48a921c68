// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <algorithm>
#include <set>

namespace tutti::cases {

std::vector<Parameters> parameter_variants(const AlgorithmInfo& algorithm, uint32_t element_bytes) {
  std::vector<Parameters> variants = {{}};
  for (const ParameterInfo& info : algorithm.parameters) {
    std::vector<uint64_t> values;
    if (info.bytes) {
      values = {0, std::max<uint64_t>(info.min, uint64_t{element_bytes} * 2),
                std::max<uint64_t>(info.min, uint64_t{element_bytes} * 5)};
    } else {
      values = {info.min, std::min<uint64_t>(info.max, info.min + 1), std::min<uint64_t>(info.max, info.min + 2)};
    }
    std::vector<Parameters> longer;
    for (const Parameters& variant : variants) {
      for (const uint64_t value : std::set<uint64_t>(values.begin(), values.end())) {
        longer.push_back(variant);
        longer.back().push_back(value);
      }
    }
    variants = std::move(longer);
  }
  return variants;
}

std::string text(const Parameters& parameters) {
  std::string text;
  for (const uint64_t value : parameters) text.append(text.empty() ? "" : ",").append(std::to_string(value));
  return text.empty() ? "none" : text;
}

std::vector<uint64_t> counts(uint32_t ranks, uint32_t parts) {
  // 5 chunks of two elements a block, and one element more in some: more chunks than tickets and prefetched receives.
  const uint64_t several_chunks = uint64_t{parts} * 10 + parts / 2 + 1;
  const std::set<uint64_t> distinct = {0, 1, 2, 3, ranks - 1u, ranks, ranks + 1u, 2 * ranks + 1u, several_chunks};
  return {distinct.begin(), distinct.end()};
}

std::vector<Mix> mixes(uint32_t ranks, uint64_t max_segment_bytes, uint16_t prefetch, uint64_t seed) {
  std::vector<Mix> all;
  all.push_back({"messages", uniform_pairs(ranks, Carrier::messages, max_segment_bytes, prefetch)});
  if (ranks == 1) return all;
  all.push_back({"slots", uniform_pairs(ranks, Carrier::slots, max_segment_bytes, prefetch)});
  if (ranks == 2) return all;
  all.push_back({"nodes of 2", node_pairs(ranks, 2, max_segment_bytes, prefetch)});
  all.push_back({"random", random_pairs(ranks, max_segment_bytes, seed)});
  if (ranks == 3) return all;
  all.push_back({"nodes of 3", node_pairs(ranks, 3, max_segment_bytes, prefetch)});
  return all;
}

std::vector<Schedule> job(const AlgorithmInfo& algorithm, uint32_t ranks, uint32_t root, const Parameters& parameters,
                          bool in_place) {
  std::vector<Schedule> schedules;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    PlanRequest request;
    request.shape = Shape::flat(ranks);
    request.rank = rank;
    request.root = root;
    request.in_place = in_place;
    request.parameters = parameters;
    schedules.push_back(algorithm.build(request));
  }
  return schedules;
}

}  // namespace tutti::cases
