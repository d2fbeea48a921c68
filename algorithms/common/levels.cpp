// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "levels.hpp"

#include <algorithm>
#include <bit>

namespace tutti {

std::vector<Level> levels_of(const PlanRequest& request, uint32_t turn, uint32_t root) {
  const Shape& shape = request.shape;
  std::vector<Level> levels;
  std::vector<uint32_t> present = whole_team(request).ranks;
  for (size_t n = 0; n <= shape.group_of.size(); ++n) {
    std::vector<std::vector<uint32_t>> teams(shape.size);
    for (const uint32_t rank : present) teams[n < shape.group_of.size() ? shape.group_of[n][rank] : 0].push_back(rank);
    Level level;
    present.clear();
    for (std::vector<uint32_t>& team : teams) {
      if (team.empty()) continue;
      const auto found_root = std::find(team.begin(), team.end(), root);
      const auto leader = found_root == team.end() ? turn % team.size() : static_cast<size_t>(found_root - team.begin());
      level.longest = std::max(level.longest, static_cast<uint32_t>(team.size()));
      present.push_back(team[leader]);
      const auto self = std::find(team.begin(), team.end(), request.rank);
      if (self == team.end()) continue;
      level.leader = static_cast<uint32_t>(leader);
      level.team.self = static_cast<uint32_t>(self - team.begin());
      level.team.ranks = std::move(team);
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

std::vector<uint32_t> longest_teams(const Shape& shape) {
  PlanRequest request;
  request.shape = shape;
  const std::vector<Level> levels = levels_of(request, 0);
  std::vector<uint32_t> longest;
  for (size_t n = 0; n <= last_meeting(levels); ++n) longest.push_back(levels[n].longest);
  return longest;
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
