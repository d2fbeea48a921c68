// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "levels.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

namespace tutti {

std::vector<Level> levels_of(const PlanRequest& request, uint32_t turn, uint32_t root) {
  const Shape& shape = request.shape;
  std::vector<Level> levels;
  std::vector<uint32_t> present = whole_team(request).ranks;
  for (size_t n = 0; n <= shape.group_of.size(); ++n) {
    const auto group_of = [&](uint32_t rank) { return n < shape.group_of.size() ? shape.group_of[n][rank] : 0; };
    // Teams one after another, members in rank order.
    std::vector<uint32_t> ends(shape.size + 1, 0);
    for (const uint32_t rank : present) ++ends[group_of(rank)];
    std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), 0u);
    std::vector<uint32_t> members(present.size());
    for (const uint32_t rank : present) members[ends[group_of(rank)]++] = rank;
    Level level;
    present.clear();
    for (uint32_t start = 0; start < members.size();) {
      const std::span<const uint32_t> team(members.data() + start, ends[group_of(members[start])] - start);
      start += static_cast<uint32_t>(team.size());
      const bool of_root = root < shape.size && group_of(root) == group_of(team[0]);
      const auto place_of = [&](uint32_t rank) {
        return static_cast<uint32_t>(std::lower_bound(team.begin(), team.end(), rank) - team.begin());
      };
      const uint32_t leader = of_root ? place_of(root) : static_cast<uint32_t>(turn % team.size());
      level.longest = std::max(level.longest, static_cast<uint32_t>(team.size()));
      present.push_back(team[leader]);
      const uint32_t self = place_of(request.rank);
      if (self == team.size() || team[self] != request.rank) continue;
      level.leader = leader;
      level.team = {{team.begin(), team.end()}, self};
    }
    std::sort(present.begin(), present.end());
    levels.push_back(std::move(level));
  }
  return levels;
}

size_t last_meeting(const std::vector<Level>& levels) {
  size_t last = levels.size() - 1;
  while (last > 0 && levels[last].longest == 1) --last;
  return last;
}

std::vector<LevelPrice> level_prices(const Shape& shape, const CostModel& model) {
  PlanRequest request;
  request.shape = shape;
  const std::vector<Level> levels = levels_of(request, 0);
  std::vector<LevelPrice> prices;
  for (size_t n = 0; n <= last_meeting(levels); ++n) {
    bool near = n < shape.group_of.size();
    std::vector<uint32_t> node_of_group(near ? shape.size : 0, UINT32_MAX);
    for (uint32_t rank = 0; near && rank < shape.size; ++rank) {
      uint32_t& node = node_of_group[shape.group_of[n][rank]];
      if (node == UINT32_MAX) node = model.node_of()[rank];
      near = node == model.node_of()[rank];
    }
    prices.push_back({levels[n].longest, near ? model.near() : model.far()});
  }
  return prices;
}

bool is_aligned(const Shape& shape) {
  return std::all_of(shape.group_of.begin(), shape.group_of.end(), [&](const std::vector<uint32_t>& group_of) {
    const auto length = static_cast<uint32_t>(std::count(group_of.begin(), group_of.end(), 0u));
    if (!std::has_single_bit(length) || shape.size % length != 0) return false;
    for (uint32_t rank = 0; rank < shape.size; ++rank) {
      if (group_of[rank] != rank / length) return false;
    }
    return true;
  });
}

}  // namespace tutti
