// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/builder.hpp"

namespace tutti {

/// An allreduce round the ring, upwards or downwards, of one share of the vector. Reduce-scatter: in step s = 0 .. p-2 each rank
/// sends block rank - s to the next rank and folds the block that comes from the previous one, so that block b gathers its sum on
/// the way b, b+1, ..., b+p-1. Allgather: in the same direction the complete blocks go round once more. Each block is folded in
/// one place, hence the same bits everywhere. Chunk by chunk: step s lags s iterations behind. Inside an iteration every send is
/// followed by a receive before the next but one, so that two messages of credit suffice.
inline void append_ring(const LaneBuilder& lane, const PlanRequest& request, uint32_t share, uint32_t shares, bool downwards) {
  const uint32_t size = request.shape.size;
  const auto mirrored = [&](uint32_t rank) { return downwards ? size - 1 - rank : rank; };
  const uint32_t place = mirrored(request.rank);
  const uint32_t next = mirrored((place + 1) % size);
  const uint32_t previous = mirrored((place + size - 1) % size);
  const uint32_t reduce_steps = size - 1;
  const uint32_t steps = 2 * reduce_steps;
  // The block that a place sends in step s; a rank receives the one that its predecessor sends.
  const auto sent_by = [&](uint32_t who, uint32_t s) {
    return part((share * size) + (who + 2 * size - s) % size, shares * size);
  };
  const auto send = [&](uint32_t s) {
    const Slice slice = sent_by(place, s);
    lane.at(s).send(next, s == 0 ? input(slice) : output(slice));
  };
  send(0);
  for (uint32_t s = 0; s < steps; ++s) {
    if (s + 1 < steps) send(s + 1);
    const Slice slice = sent_by((place + size - 1) % size, s);
    if (s < reduce_steps) {
      lane.at(s).recv_reduce(previous, input(slice), output(slice)).finalize(s + 1 == reduce_steps);
    } else {
      lane.at(s).recv(previous, output(slice));
    }
  }
}

}  // namespace tutti
