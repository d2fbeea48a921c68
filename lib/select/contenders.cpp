// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "select/contenders.hpp"

#include <algorithm>

#include "override.hpp"
#include "tuned.hpp"

namespace tutti {
namespace {

/// Values that are tried in place of the default one.
std::vector<uint64_t> values_of(const ParameterInfo& info, uint32_t ranks) {
  std::vector<uint64_t> values;
  const auto add = [&](uint64_t value) {
    if (value != info.default_value && value >= info.min && value <= info.max) values.push_back(value);
  };
  if (info.bytes) {
    for (const uint64_t value : {16u << 10, 64u << 10, 256u << 10}) add(value);
  } else {
    // More than there are ranks is what there are ranks, whatever the parameter counts.
    for (const uint64_t value : {2u, 4u, 8u}) {
      if (value <= std::max(ranks, 2u)) add(value);
    }
  }
  return values;
}

}  // namespace

std::vector<Contender> rank_contenders(Collective collective, const Shape& shape, uint64_t bytes, const CostModel& model,
                                       const Requirements& required) {
  std::vector<Contender> all;
  for (const AlgorithmInfo* info : all_algorithms()) {
    if (info->collective != collective) continue;
    Contender one{info, default_parameters(*info), 0, ""};
    if (const char* why = unusable(*info, shape, required)) one.excluded = why;
    if (one.excluded.empty()) one.predicted_ns = info->cost_ns(shape, bytes, one.parameters, model);
    all.push_back(std::move(one));
  }
  std::stable_sort(all.begin(), all.end(), [](const Contender& a, const Contender& b) {
    if (a.excluded.empty() != b.excluded.empty()) return a.excluded.empty();
    return a.predicted_ns < b.predicted_ns;
  });
  return all;
}

std::vector<Contender> contender_grid(Collective collective, const Shape& shape, const Requirements& required) {
  std::vector<Contender> grid;
  for (const AlgorithmInfo* info : all_algorithms()) {
    if (info->collective != collective || unusable(*info, shape, required) != nullptr) continue;
    grid.push_back({info, default_parameters(*info), 0, ""});
    const Parameters standard = grid.back().parameters;
    for (size_t n = 0; n < info->parameters.size(); ++n) {
      for (const uint64_t value : values_of(info->parameters[n], shape.size)) {
        grid.push_back({info, standard, 0, ""});
        grid.back().parameters[n] = value;
      }
    }
  }
  return grid;
}

bool alike_at(const Contender& one, const Contender& other, uint64_t bytes) {
  if (one.algorithm != other.algorithm) return false;
  for (size_t n = 0; n < one.parameters.size(); ++n) {
    const auto in_one_piece = [&](uint64_t value) { return value == 0 || value >= bytes; };
    const bool both_whole =
        one.algorithm->parameters[n].bytes && in_one_piece(one.parameters[n]) && in_one_piece(other.parameters[n]);
    if (one.parameters[n] != other.parameters[n] && !both_whole) return false;
  }
  return true;
}

bool differs_at(const Contender& contender, uint64_t bytes) {
  constexpr uint64_t kShareBytes = 32 << 10;  // below, a lane more is only a lane more
  for (size_t n = 0; n < contender.parameters.size(); ++n) {
    const ParameterInfo& info = contender.algorithm->parameters[n];
    const uint64_t value = contender.parameters[n];
    if (value == info.default_value) continue;
    const bool in_one_piece = info.default_value == 0 || info.default_value >= bytes;  // by default
    if (info.bytes && value * 2 > bytes && (value < bytes || in_one_piece)) return false;
    const bool shares = info.name == "channels" || info.name == "leaders";
    if (shares && contender.parameters[n] * kShareBytes > bytes) return false;
  }
  return true;
}

}  // namespace tutti
