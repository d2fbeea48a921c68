// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "doubling.hpp"

#include <algorithm>

namespace tutti {
namespace {

/// to = what lies in `mine` op what comes from the member at `place`.
StepBuilder fold_with(const Piece& piece, uint32_t place, Slice unit, Operand to) {
  const Operand own = local(piece.mine, unit);
  const Operand other = message(piece.team.ranks[place], unit);
  const bool own_first = piece.team.self < place;
  return piece.lane.at(piece.lag).fold({own_first ? own : other, own_first ? other : own}, {to});
}

void send_to(const Piece& piece, uint32_t place, Slice unit) {
  piece.lane.at(piece.lag).send(piece.team.ranks[place], local(piece.mine, unit));
}

void recv_from(const Piece& piece, uint32_t place, Slice unit) {
  piece.lane.at(piece.lag).recv(piece.team.ranks[place], local(piece.partial, unit));
}

/// There is a unit for each number, or one for each rank.
std::vector<Slice> units_of(const Piece& piece, const Pairs& pairs, const std::vector<uint32_t>& numbers) {
  std::vector<Slice> units;
  for (const uint32_t number : numbers) {
    const uint32_t rank = pairs.rank_of(number);
    if (piece.units.size() == pairs.active()) {
      units.push_back(piece.units[number]);
      continue;
    }
    units.push_back(piece.units[rank]);
    if (pairs.paired(rank)) units.push_back(piece.units[rank ^ 1]);
  }
  return units;
}

}  // namespace

std::vector<uint32_t> kept_after(uint32_t number, uint32_t round, uint32_t rounds, Peer peer) {
  std::vector<uint32_t> kept = {number};
  for (uint32_t later = round; later < rounds; ++later) {
    const size_t half = kept.size();
    for (size_t n = 0; n < half; ++n) kept.push_back(peer(kept[n], later, rounds));
  }
  return kept;
}

void append_pairing(Piece& piece, const Pairs& pairs) {
  if (pairs.extra() == 0) return;
  const uint32_t self = piece.team.self;
  if (pairs.paired(self)) {
    for (const Slice unit : piece.units) {
      if (pairs.acts(self)) {
        fold_with(piece, self ^ 1, unit, local(piece.partial, unit));
      } else {
        send_to(piece, self ^ 1, unit);
      }
    }
    if (pairs.acts(self)) piece.mine = piece.partial;
  }
  ++piece.lag;
}

void append_unpairing(Piece& piece, const Pairs& pairs) {
  const uint32_t self = piece.team.self;
  if (!pairs.paired(self)) return;
  for (const Slice unit : piece.units) {
    if (pairs.acts(self)) {
      send_to(piece, self ^ 1, unit);
    } else {
      recv_from(piece, self ^ 1, unit);
    }
  }
}

void append_doubling(Piece& piece, const Pairs& pairs) {
  const uint32_t number = pairs.number_of(piece.team.self);
  for (uint32_t round = 0; round < pairs.rounds(); ++round, ++piece.lag) {
    const uint32_t partner = pairs.rank_of(cube_peer(number, round, pairs.rounds()));
    for (const Slice unit : piece.units) {
      send_to(piece, partner, unit);
      fold_with(piece, partner, unit, local(piece.partial, unit)).finalize(piece.completes && round + 1 == pairs.rounds());
    }
    piece.mine = piece.partial;
  }
}

void append_halving(Piece& piece, const Pairs& pairs, Peer peer) {
  const uint32_t number = pairs.number_of(piece.team.self);
  const uint32_t rounds = pairs.rounds();
  for (uint32_t round = 0; round < rounds; ++round, ++piece.lag) {
    const uint32_t partner = peer(number, round, rounds);
    const std::vector<Slice> given = units_of(piece, pairs, kept_after(partner, round + 1, rounds, peer));
    const std::vector<Slice> kept = units_of(piece, pairs, kept_after(number, round + 1, rounds, peer));
    const bool last = round + 1 == rounds;
    for (size_t n = 0; n < std::max(given.size(), kept.size()); ++n) {
      if (n < given.size()) send_to(piece, pairs.rank_of(partner), given[n]);
      if (n >= kept.size()) continue;
      const Operand to = last && piece.result ? piece.result(kept[n]) : local(piece.partial, kept[n]);
      fold_with(piece, pairs.rank_of(partner), kept[n], to).finalize(piece.completes && last);
    }
    piece.mine = piece.partial;
  }
}

void append_unhalving(Piece& piece, const Pairs& pairs, Peer peer) {
  const uint32_t number = pairs.number_of(piece.team.self);
  const uint32_t rounds = pairs.rounds();
  for (uint32_t round = rounds; round-- > 0; ++piece.lag) {
    const uint32_t partner = peer(number, round, rounds);
    const std::vector<uint32_t> given = kept_after(number, round + 1, rounds, peer);
    const std::vector<uint32_t> got = kept_after(partner, round + 1, rounds, peer);
    for (size_t n = 0; n < given.size(); ++n) {
      send_to(piece, pairs.rank_of(partner), piece.units[given[n]]);
      recv_from(piece, pairs.rank_of(partner), piece.units[got[n]]);
    }
  }
}

void append_gathering(Piece& piece, const Pairs& pairs, uint32_t root) {
  const uint32_t number = pairs.number_of(piece.team.self);
  const uint32_t rounds = pairs.rounds();
  for (uint32_t round = rounds; round-- > 0; ++piece.lag) {
    const uint32_t partner = cube_peer(number, round, pairs.rounds());
    const bool gives = ((number ^ root) >> round & 1) != 0;
    for (const uint32_t n : kept_after(gives ? number : partner, round + 1, rounds, cube_peer)) {
      if (gives) {
        send_to(piece, pairs.rank_of(partner), piece.units[n]);
      } else {
        recv_from(piece, pairs.rank_of(partner), piece.units[n]);
      }
    }
    if (gives) return;
  }
}

void append_rabenseifner(Piece& piece, const Pairs& pairs) {
  append_pairing(piece, pairs);
  if (pairs.acts(piece.team.self)) {
    append_halving(piece, pairs, cube_peer);
    append_unhalving(piece, pairs, cube_peer);
  } else {
    piece.lag += 2 * pairs.rounds();
  }
  append_unpairing(piece, pairs);
}

}  // namespace tutti
