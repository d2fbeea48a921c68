// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "team.hpp"

/// How a job's ranks meet level by level: at level 0 in the innermost groups; at each further level the leaders of the level
/// below, in the groups of this one; at the last all leaders that are left.
namespace tutti {

struct Level {
  Team team;             ///< this rank's; empty where it does not take part
  uint32_t leader = 0;   ///< place in the team
  uint32_t longest = 1;  ///< size of the largest team of the level
};

/// In each team the leader is `root` if that is in it, else the member at place `turn`, counted round and round: other turns have
/// other leaders.
std::vector<Level> levels_of(const PlanRequest& request, uint32_t turn, uint32_t root = UINT32_MAX);

/// The level at which the fold is complete: the last at which anybody meets.
size_t last_meeting(const std::vector<Level>& levels);

struct LevelPrice {
  uint32_t longest = 1;  ///< size of the largest team
  Price price;           ///< of its messages: near where every team lies within a node
};

/// Each level up to the last meeting, for cost formulas.
std::vector<LevelPrice> level_prices(const Shape& shape, const CostModel& model);

/// Whether the groups of each level are neighbouring ranks, as many in each, a power of two: then folding level by level is the
/// association of deterministic mode.
bool is_aligned(const Shape& shape);

}  // namespace tutti
