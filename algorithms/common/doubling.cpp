// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "doubling.hpp"

#include <algorithm>
#include <memory>

namespace tutti {
namespace {

/// to = what lies in `mine` op what comes from the member at `place`.
StepBuilder fold_with(const Piece& piece, uint32_t place, Slice slice, Operand to) {
  const Operand own = local(piece.mine, slice);
  const Operand other = message(piece.team.ranks[place], slice);
  const bool own_first = piece.team.self < place;
  return piece.lane.at(piece.lag).fold({own_first ? own : other, own_first ? other : own}, {to});
}

void send_to(const Piece& piece, uint32_t place, Slice slice) {
  piece.lane.at(piece.lag).send(piece.team.ranks[place], local(piece.mine, slice));
}

void recv_from(const Piece& piece, uint32_t place, Slice slice) {
  piece.lane.at(piece.lag).recv(piece.team.ranks[place], local(piece.partial, slice));
}

void next_loop(Piece& piece) {
  piece.lane = piece.lane.then();
  piece.lag = 0;
}

uint32_t reversed_bits(uint32_t number, uint32_t bits) {
  uint32_t reversed = 0;
  for (uint32_t n = 0; n < bits; ++n) reversed |= (number >> n & 1) << (bits - 1 - n);
  return reversed;
}

/// Numbers in an order in which those that are kept together stand together, whatever the round.
void append_order(uint32_t number, uint32_t round, uint32_t rounds, Peer peer, std::vector<uint32_t>& order) {
  if (round == rounds) return order.push_back(number);
  append_order(number, round + 1, rounds, peer, order);
  append_order(peer(number, round, rounds), round + 1, rounds, peer, order);
}

/// The place of each number in that order.
std::function<uint32_t(uint32_t)> places(uint32_t rounds, Peer peer) {
  if (peer == near_first) return [rounds](uint32_t number) { return reversed_bits(number, rounds); };
  if (peer == far_first) return [](uint32_t number) { return number; };
  std::vector<uint32_t> order;
  append_order(0, 0, rounds, peer, order);
  const auto place_of = std::make_shared<std::vector<uint32_t>>(order.size());
  for (uint32_t n = 0; n < order.size(); ++n) (*place_of)[order[n]] = n;
  return [place_of](uint32_t number) { return (*place_of)[number]; };
}

}  // namespace

std::vector<uint32_t> kept_after(uint32_t number, uint32_t round, uint32_t rounds, Peer peer) {
  std::vector<uint32_t> kept = {number};
  for (uint32_t later = round; later < rounds; ++later) {
    const size_t half = kept.size();
    for (size_t n = 0; n < half; ++n) kept.push_back(peer(kept[n], later, rounds));
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

Halving halving_of_share(const Pairs& pairs, Peer peer, uint32_t share, uint32_t shares) {
  const uint32_t rounds = pairs.rounds();
  const uint32_t active = pairs.active();
  return {peer, [=, place_of = places(rounds, peer)](uint32_t number, uint32_t round) {
            const uint32_t length = active >> round;
            const uint32_t first = share * active + place_of(number) / length * length;
            return std::vector<Slice>{{shares * active, first, first + length, Cut::even}};
          }};
}

void append_pairing(Piece& piece, const Pairs& pairs) {
  const uint32_t self = piece.team.self;
  if (!pairs.paired(self)) return;
  if (!pairs.acts(self)) return send_to(piece, self ^ 1, piece.slice);
  fold_with(piece, self ^ 1, piece.slice, local(piece.partial, piece.slice));
  piece.mine = piece.partial;
}

void append_unpairing(Piece& piece, const Pairs& pairs) {
  const uint32_t self = piece.team.self;
  if (!pairs.paired(self)) return;
  next_loop(piece);
  if (pairs.acts(self)) {
    send_to(piece, self ^ 1, piece.slice);
  } else {
    recv_from(piece, self ^ 1, piece.slice);
  }
}

void append_halving(Piece& piece, const Pairs& pairs, const Halving& halving) {
  const uint32_t number = pairs.number_of(piece.team.self);
  const uint32_t rounds = pairs.rounds();
  for (uint32_t round = 0; round < rounds; ++round) {
    next_loop(piece);
    const uint32_t partner = halving.peer(number, round, rounds);
    const bool last = round + 1 == rounds;
    const std::vector<Slice> given = halving.kept(partner, round + 1);
    const std::vector<Slice> kept = halving.kept(number, round + 1);
    // In turn: no more is under way than any channel holds.
    for (size_t n = 0; n < std::max(given.size(), kept.size()); ++n) {
      if (n < given.size()) send_to(piece, pairs.rank_of(partner), given[n]);
      if (n >= kept.size()) continue;
      const Operand to = last && piece.result ? piece.result(kept[n]) : local(piece.partial, kept[n]);
      fold_with(piece, pairs.rank_of(partner), kept[n], to).finalize(piece.completes && last);
    }
    piece.mine = piece.partial;
  }
}

void append_unhalving(Piece& piece, const Pairs& pairs, const Halving& halving) {
  const uint32_t number = pairs.number_of(piece.team.self);
  const uint32_t rounds = pairs.rounds();
  for (uint32_t round = rounds; round-- > 0;) {
    next_loop(piece);
    const uint32_t partner = halving.peer(number, round, rounds);
    for (const Slice slice : halving.kept(number, round + 1)) send_to(piece, pairs.rank_of(partner), slice);
    for (const Slice slice : halving.kept(partner, round + 1)) recv_from(piece, pairs.rank_of(partner), slice);
  }
}

void append_gathering(Piece& piece, const Pairs& pairs, const Halving& halving, uint32_t root) {
  const uint32_t number = pairs.number_of(piece.team.self);
  const uint32_t rounds = pairs.rounds();
  for (uint32_t round = rounds; round-- > 0;) {
    next_loop(piece);
    const uint32_t partner = halving.peer(number, round, rounds);
    const bool gives = ((number ^ root) >> round & 1) != 0;
    for (const Slice slice : halving.kept(gives ? number : partner, round + 1)) {
      if (gives) {
        send_to(piece, pairs.rank_of(partner), slice);
      } else {
        recv_from(piece, pairs.rank_of(partner), slice);
      }
    }
    if (gives) return;
  }
}

void append_rabenseifner(Piece& piece, const Pairs& pairs, uint32_t share, uint32_t shares) {
  append_pairing(piece, pairs);
  if (pairs.acts(piece.team.self)) {
    const Halving halving = halving_of_share(pairs, near_first, share, shares);
    append_halving(piece, pairs, halving);
    append_unhalving(piece, pairs, halving);
  }
  append_unpairing(piece, pairs);
}

}  // namespace tutti
