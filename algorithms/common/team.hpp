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
/// A Piece appends steps to one lane, for some of the job's ranks (its team) and for some slices (its units). All steps of a unit
/// work on chunks of that one slice: chunk k of a unit depends on chunk k of the same unit only, so that phases follow each other
/// chunk by chunk. That is why "half of the vector" is a list of units here and not one long slice.
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
  std::vector<Slice> units;
  BufferId mine = BufferId::input;            ///< where what this rank gives lies
  BufferId partial = BufferId::output;        ///< where partial results go; `mine` afterwards, if there are any
  uint32_t lag = 0;                           ///< of the next step
  bool completes = true;                      ///< the fold is complete with this piece
  std::function<Operand(Slice)> result = {};  ///< halving: where a unit goes that is complete; empty: to `partial`
};

/// Parts [share * parts, (share + 1) * parts) of a vector that is cut into shares * parts.
inline std::vector<Slice> parts_of_share(uint32_t share, uint32_t shares, uint32_t parts) {
  std::vector<Slice> units;
  for (uint32_t n = 0; n < parts; ++n) units.push_back(part(share * parts + n, shares * parts));
  return units;
}

}  // namespace tutti
