// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/shape.hpp"

/// The teams of nested groups. A group's leader is the root, if that is in it, else its lowest rank; so the leader of a group
/// also leads the inner group that it is in. The team of a group are the leaders of the groups just inside it; of an innermost
/// group, all its ranks. Outside of the last level there is one group more, of all ranks.
namespace tutti {

/// The teams that `rank` is in, innermost first, each with its leader first and the others in order of rank. It leads all but the
/// last one; the root leads that too.
std::vector<std::vector<uint32_t>> teams_of(const Shape& shape, uint32_t rank, uint32_t root);

/// The size of the largest team of each level, innermost first.
std::vector<uint32_t> largest_teams(const Shape& shape);

/// Place of `rank` in a team that has it.
uint32_t place_in(const std::vector<uint32_t>& team, uint32_t rank);

}  // namespace tutti
