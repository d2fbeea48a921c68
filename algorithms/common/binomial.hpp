// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "team.hpp"

/// A binomial tree over a team whose partial results cover neighbours: in round k the holders of two neighbouring groups of 2^k
/// members become one, the root being the holder of each group that it is in.
namespace tutti {

/// The member at place `root` has the fold over all, in the association of deterministic mode.
void append_binomial_reduce(Piece& piece, uint32_t root);
/// From there to all, down the same tree: into `partial`, from `mine` at the root.
void append_binomial_broadcast(Piece& piece, uint32_t root);
/// By how much each of the two adds to the lag.
uint32_t binomial_depth(uint32_t size);

}  // namespace tutti
