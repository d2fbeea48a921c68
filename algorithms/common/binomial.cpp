// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "binomial.hpp"

#include "pairs.hpp"

namespace tutti {
namespace {

/// One merge of two neighbouring groups: `giver` of one, `taker` of both afterwards. Places in the team.
struct Merge {
  uint32_t round;
  uint32_t giver;
  uint32_t taker;
};

/// The merges that the member takes part in, in order; as giver in the last one only.
std::vector<Merge> merges_of(uint32_t self, uint32_t size, uint32_t root) {
  const Pairs pairs(size, root);
  const uint32_t first_round = pairs.extra() > 0 ? 1 : 0;
  std::vector<Merge> merges;
  if (pairs.paired(self)) {
    const uint32_t taker = pairs.rank_of(pairs.number_of(self));
    merges.push_back({0, taker ^ 1, taker});
    if (taker != self) return merges;
  }
  const uint32_t number = pairs.number_of(self);
  const uint32_t root_number = pairs.number_of(root);
  const auto holder = [&](uint32_t group, uint32_t round) {
    return root_number >> round == group ? root_number : group << round;
  };
  for (uint32_t round = 0; round < pairs.rounds(); ++round) {
    const uint32_t group = number >> round;
    const uint32_t other = holder(group ^ 1, round);
    const uint32_t taker = holder(group / 2, round + 1);
    const uint32_t giver = taker == number ? other : number;
    merges.push_back({first_round + round, pairs.rank_of(giver), pairs.rank_of(taker)});
    if (taker != number) break;
  }
  return merges;
}

}  // namespace

uint32_t binomial_depth(uint32_t size) { return static_cast<uint32_t>(std::bit_width(size - 1)); }

void append_binomial_reduce(Piece& piece, uint32_t root) {
  const uint32_t self = piece.team.self;
  const uint32_t depth = binomial_depth(piece.team.size());
  for (const Merge& merge : merges_of(self, piece.team.size(), root)) {
    const LaneBuilder now = piece.lane.at(piece.lag + merge.round);
    const Operand own = local(piece.mine, piece.slice);
    if (merge.giver == self) {
      now.send(piece.team.ranks[merge.taker], own);
      continue;
    }
    const Operand other = message(piece.team.ranks[merge.giver], piece.slice);
    const bool own_first = self < merge.giver;
    now.fold({own_first ? own : other, own_first ? other : own}, {local(piece.partial, piece.slice)})
        .finalize(piece.completes && merge.round + 1 == depth);
    piece.mine = piece.partial;
  }
  piece.lag += depth;
}

void append_binomial_broadcast(Piece& piece, uint32_t root) {
  const uint32_t self = piece.team.self;
  const uint32_t depth = binomial_depth(piece.team.size());
  const std::vector<Merge> merges = merges_of(self, piece.team.size(), root);
  for (auto merge = merges.rbegin(); merge != merges.rend(); ++merge) {
    const LaneBuilder now = piece.lane.at(piece.lag + depth - 1 - merge->round);
    if (merge->giver == self) {
      now.recv(piece.team.ranks[merge->taker], local(piece.partial, piece.slice));
    } else {
      now.send(piece.team.ranks[merge->giver], local(merges.back().giver == self ? piece.partial : piece.mine, piece.slice));
    }
  }
  piece.lag += depth;
}

}  // namespace tutti
