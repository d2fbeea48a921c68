// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <random>
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

std::vector<uint64_t> counts(const AlgorithmInfo& algorithm, uint32_t ranks) {
  if (algorithm.collective == Collective::barrier) return {0};
  if (has_blocks(algorithm.collective)) return {0, 1, 2, 3, 11};
  // 5 chunks of two elements a part, and one element more in some: more chunks than tickets and prefetched receives.
  const uint64_t several_chunks = uint64_t{ranks} * 10 + ranks / 2 + 1;
  const std::set<uint64_t> distinct = {0, 1, 2, 3, ranks - 1u, ranks, ranks + 1u, 2 * ranks + 3u, several_chunks};
  return {distinct.begin(), distinct.end()};
}

bool takes_uneven(const AlgorithmInfo& algorithm) { return has_blocks(algorithm.collective) && !algorithm.has(kEqualBlocks); }

std::vector<uint64_t> random_counts(const AlgorithmInfo& algorithm, uint32_t ranks, uint64_t longest, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> counts(algorithm.collective == Collective::alltoall ? size_t{ranks} * ranks : ranks);
  // A third of the blocks are empty: what is skipped at one end only would hang.
  for (uint64_t& count : counts) count = random() % 3 == 0 ? 0 : random() % (longest + 1);
  return counts;
}

std::vector<std::vector<uint64_t>> uneven_counts(const AlgorithmInfo& algorithm, uint32_t ranks, uint64_t seed) {
  constexpr uint32_t kExhaustiveRanks = 5;
  constexpr uint64_t kRandom = 3;
  std::vector<std::vector<uint64_t>> all;
  if (!takes_uneven(algorithm)) return all;
  if (algorithm.collective != Collective::alltoall && ranks <= kExhaustiveRanks) {
    for (uint64_t number = 0; number < static_cast<uint64_t>(std::pow(3, ranks)); ++number) {
      std::vector<uint64_t> counts;
      for (uint64_t rest = number; counts.size() < ranks; rest /= 3) counts.push_back(std::array<uint64_t, 3>{0, 1, 3}[rest % 3]);
      all.push_back(std::move(counts));
    }
  }
  for (uint64_t n = 0; n < kRandom; ++n) all.push_back(random_counts(algorithm, ranks, 11, seed * kRandom + n));
  return all;
}

std::vector<Shape> shapes(const AlgorithmInfo& algorithm, uint32_t ranks) {
  std::vector<Shape> all = {Shape::flat(ranks)};
  if (!algorithm.has(kNested)) return all;
  const auto add = [&](const std::vector<std::function<uint32_t(uint32_t)>>& levels) {
    Shape shape = Shape::flat(ranks);
    for (const auto& group_of : levels) {
      std::map<uint32_t, uint32_t> dense;
      std::vector<uint32_t>& groups = shape.group_of.emplace_back();
      for (uint32_t r = 0; r < ranks; ++r) {
        groups.push_back(dense.emplace(group_of(r), static_cast<uint32_t>(dense.size())).first->second);
      }
    }
    if (algorithm.fits != nullptr && !algorithm.fits(shape)) return;
    if (std::find(all.begin(), all.end(), shape) == all.end()) all.push_back(std::move(shape));
  };
  const uint32_t nodes = (ranks + 2) / 3;
  add({[](uint32_t r) { return r / 2; }});
  add({[](uint32_t r) { return r / 3; }});
  add({[=](uint32_t r) { return r % nodes; }});
  add({[](uint32_t r) { return std::min(r, 1u); }});
  add({[](uint32_t r) { return r; }});
  add({[](uint32_t) { return 0; }});
  add({[](uint32_t r) { return r / 2; }, [](uint32_t r) { return r / 4; }});
  add({[](uint32_t r) { return r / 2; }, [](uint32_t r) { return r / 4; }, [](uint32_t r) { return r / 12; }});
  return all;
}

std::string text(const Shape& shape) {
  std::string text;
  for (const std::vector<uint32_t>& level : shape.group_of) {
    text += text.empty() ? "groups " : "; ";
    for (const uint32_t group : level) text += std::to_string(group) + ' ';
  }
  return text.empty() ? "flat" : text;
}

bool fits(const AlgorithmInfo& algorithm, uint32_t ranks) {
  if (ranks < algorithm.min_ranks || ranks > algorithm.max_ranks) return false;
  return !algorithm.has(kPowerOfTwoRanks) || std::has_single_bit(ranks);
}

Call call_for(const AlgorithmInfo& algorithm, uint32_t element_bytes, uint32_t root) {
  Call call;
  call.element_bytes = element_bytes;
  call.root = root;
  call.rank_ordered = algorithm.has(kRankOrdered);
  call.canonical = algorithm.has(kCanonical);
  return call;
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

std::vector<Schedule> job(const AlgorithmInfo& algorithm, const Shape& shape, uint32_t root, const Parameters& parameters,
                          bool in_place) {
  std::vector<Schedule> schedules;
  for (uint32_t rank = 0; rank < shape.size; ++rank) {
    PlanRequest request;
    request.shape = shape;
    request.rank = rank;
    request.root = root;
    request.in_place = in_place;
    request.parameters = parameters;
    schedules.push_back(algorithm.build(request));
  }
  return schedules;
}

}  // namespace tutti::cases
