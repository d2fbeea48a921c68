// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "schedule/builder.hpp"

/// Pieces of reductions, from which whole algorithms are put together.
///
/// A Piece appends steps to one lane, for some of the job's ranks (its team) and for one slice of the vector. Pieces that work on
/// the whole slice in every step may share a loop, each with a lag behind the one before; those that halve it begin loops of
/// their own.
namespace tutti {

/// Ranks in ascending order; pieces speak of them by their place.
struct Team {
  std::vector<uint32_t> ranks;
  uint32_t self = 0;  ///< place of this rank

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
};

inline Team whole_team(const PlanRequest& request) {
  Team team{std::vector<uint32_t>(request.shape.size), request.rank};
  std::iota(team.ranks.begin(), team.ranks.end(), 0u);
  return team;
}

struct Piece {
  LaneBuilder lane;
  Team team;
  Slice slice = kWhole;
  BufferId mine = BufferId::input;            ///< where what this rank gives lies
  BufferId partial = BufferId::output;        ///< where partial results go; `mine` afterwards, if there are any
  uint32_t lag = 0;                           ///< of the next step
  bool completes = true;                      ///< the fold is complete with this piece
  std::function<Operand(Slice)> result = {};  ///< halving: where a slice goes that is complete; empty: to `partial`
};

}  // namespace tutti
