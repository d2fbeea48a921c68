// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "teams.hpp"

#include <algorithm>

namespace tutti {
namespace {

uint32_t group_of(const Shape& shape, size_t level, uint32_t rank) {
  return level < shape.group_of.size() ? shape.group_of[level][rank] : 0;
}

std::vector<uint32_t> everybody(const Shape& shape, uint32_t root) {
  std::vector<uint32_t> ranks(shape.size);
  for (uint32_t r = 0; r < shape.size; ++r) ranks[r] = r;
  std::rotate(ranks.begin(), ranks.begin() + root, ranks.begin() + root + 1);
  return ranks;
}

/// The first of each group of `level` among `ranks`; as the root is the first of all, it leads its groups.
std::vector<uint32_t> leaders(const Shape& shape, size_t level, const std::vector<uint32_t>& ranks) {
  std::vector<uint32_t> found;
  std::vector<bool> has_leader(shape.size, false);
  for (const uint32_t rank : ranks) {
    const uint32_t group = group_of(shape, level, rank);
    if (!has_leader[group]) found.push_back(rank);
    has_leader[group] = true;
  }
  return found;
}

}  // namespace

std::vector<std::vector<uint32_t>> teams_of(const Shape& shape, uint32_t rank, uint32_t root) {
  std::vector<std::vector<uint32_t>> teams;
  std::vector<uint32_t> ranks = everybody(shape, root);
  for (size_t level = 0; level <= shape.group_of.size(); ++level) {
    std::vector<uint32_t>& team = teams.emplace_back();
    for (const uint32_t other : ranks) {
      if (group_of(shape, level, other) == group_of(shape, level, rank)) team.push_back(other);
    }
    if (team[0] != rank) break;
    ranks = leaders(shape, level, ranks);
  }
  return teams;
}

std::vector<uint32_t> largest_teams(const Shape& shape) {
  std::vector<uint32_t> largest;
  std::vector<uint32_t> ranks = everybody(shape, 0);
  for (size_t level = 0; level <= shape.group_of.size(); ++level) {
    std::vector<uint32_t> sizes(shape.size, 0);
    for (const uint32_t rank : ranks) ++sizes[group_of(shape, level, rank)];
    largest.push_back(*std::max_element(sizes.begin(), sizes.end()));
    ranks = leaders(shape, level, ranks);
  }
  return largest;
}

uint32_t place_in(const std::vector<uint32_t>& team, uint32_t rank) {
  return static_cast<uint32_t>(std::find(team.begin(), team.end(), rank) - team.begin());
}

}  // namespace tutti
