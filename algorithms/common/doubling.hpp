// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "pairs.hpp"
#include "team.hpp"

/// Rounds among 2^m acting ranks, each a loop of its own. All fold the lower ranks' operand first.
namespace tutti {

/// With whom an acting rank exchanges in a round, of numbers below 2^rounds; its peer's peer is itself.
using Peer = uint32_t (*)(uint32_t number, uint32_t round, uint32_t rounds);
/// Distance 1, 2, 4 ...: the groups that have exchanged are neighbours, so that folds are in rank order.
inline uint32_t near_first(uint32_t number, uint32_t round, uint32_t /*rounds*/) { return number ^ (1u << round); }
/// Distance 2^m / 2 ... 2, 1: what a rank is still to make is of neighbours.
inline uint32_t far_first(uint32_t number, uint32_t round, uint32_t rounds) { return number ^ (1u << (rounds - 1 - round)); }

/// Numbers whose results `number` is still to make after `round` rounds of halving: each round halves them, in the end it is the
/// own one only. All those numbers have the same.
std::vector<uint32_t> kept_after(uint32_t number, uint32_t round, uint32_t rounds, Peer peer);

/// Who exchanges what: each round a rank gives what its peer keeps.
struct Halving {
  Peer peer;
  /// The slices that a number keeps after a number of rounds, in one order for all who keep the same.
  std::function<std::vector<Slice>(uint32_t number, uint32_t round)> kept;
};

/// Of share `share` of `shares` of a vector that is cut evenly: in the order in which parts are kept together, so that each round
/// moves one slice.
Halving halving_of_share(const Pairs& pairs, Peer peer, uint32_t share = 0, uint32_t shares = 1);

/// In the loop that the piece is in: the ranks that do not act give theirs to their neighbours. Afterwards only acting ranks go
/// on.
void append_pairing(Piece& piece, const Pairs& pairs);
/// The neighbours that acted give the results back.
void append_unpairing(Piece& piece, const Pairs& pairs);
/// kept(n, rounds) is complete at the acting rank with number n.
void append_halving(Piece& piece, const Pairs& pairs, const Halving& halving);
/// After halving: to all acting ranks, the same way back.
void append_unhalving(Piece& piece, const Pairs& pairs, const Halving& halving);
/// After halving at distance 1, 2, 4 ...: to the acting rank `root`.
void append_gathering(Piece& piece, const Pairs& pairs, const Halving& halving, uint32_t root);
/// An allreduce of the team: pairing, halving at distance 1, 2, 4 ..., and all the way back, of a share of the vector.
void append_rabenseifner(Piece& piece, const Pairs& pairs, uint32_t share = 0, uint32_t shares = 1);

}  // namespace tutti
