// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pairs.hpp"
#include "team.hpp"

/// Phases among 2^m acting ranks. All take every unit in each step's place, and all give the lower ranks' operand first.
namespace tutti {

/// With whom an acting rank exchanges in a round, of numbers below 2^rounds; its peer's peer is itself.
using Peer = uint32_t (*)(uint32_t number, uint32_t round, uint32_t rounds);
/// Distance 1, 2, 4 ...: the groups that have exchanged are neighbours.
inline uint32_t cube_peer(uint32_t number, uint32_t round, uint32_t /*rounds*/) { return number ^ (1u << round); }

/// Numbers whose results `number` is still to make after `round` rounds of halving: each round halves them, in the end it is the
/// own one only. In the same order on the rank that sends and the one that receives.
std::vector<uint32_t> kept_after(uint32_t number, uint32_t round, uint32_t rounds, Peer peer);

/// The ranks that do not act give theirs to their neighbours. Afterwards only acting ranks go on.
void append_pairing(Piece& piece, const Pairs& pairs);
/// The neighbours that acted give the results back.
void append_unpairing(Piece& piece, const Pairs& pairs);
/// Each round all units are exchanged: everybody has everything.
void append_doubling(Piece& piece, const Pairs& pairs);
/// units[n] is complete at the acting rank with number n; where there is a unit for each member of the team, at the one that acts
/// for it.
void append_halving(Piece& piece, const Pairs& pairs, Peer peer);
/// After halving: to all acting ranks, the same way back.
void append_unhalving(Piece& piece, const Pairs& pairs, Peer peer);
/// After halving: to the acting rank `root`.
void append_gathering(Piece& piece, const Pairs& pairs, uint32_t root);
/// An allreduce of the team: pairing, halving at distance 1, 2, 4 ..., and all the way back.
void append_rabenseifner(Piece& piece, const Pairs& pairs);

}  // namespace tutti
