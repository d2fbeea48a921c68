// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "parameters.hpp"

/// Costs of shapes that several collectives have.
namespace tutti {

/// From rank to rank, each folding its own to what comes: the first chunk pays every hop, the others follow one behind the other.
inline double folding_chain_ns(const Shape& shape, uint64_t bytes, uint64_t segment_bytes, const CostModel& model) {
  const double chunk = chunk_bytes(bytes, segment_bytes);
  const double chunks = chunk > 0 ? static_cast<double>(bytes) / chunk : 1;
  const double follow_ns = 3 * model.step_ns + chunk * (model.ns_per_byte + model.reduce_ns_per_byte);
  return model.step_ns + (shape.size - 1.0) * (model.latency_ns + follow_ns) + (chunks - 1) * follow_ns;
}

/// A block between the root and each other rank: the latencies overlap, the root handles the messages one by one.
inline double star_ns(const Shape& shape, uint64_t bytes, const CostModel& model) {
  if (shape.size == 1) return model.step_ns;
  const double others = shape.size - 1.0;
  return model.latency_ns + model.step_ns +
         others * (model.step_ns + static_cast<double>(bytes) / shape.size * model.ns_per_byte);
}

/// The same up or down a tree: a round for each bit; all blocks but the root's pass it, a subtree's at once.
inline double block_tree_ns(const Shape& shape, uint64_t bytes, const CostModel& model) {
  if (shape.size == 1) return model.step_ns;
  const double rounds = std::bit_width(shape.size - 1);
  const double others = shape.size - 1.0;
  return rounds * (model.latency_ns + 2 * model.step_ns) + others * static_cast<double>(bytes) / shape.size * model.ns_per_byte;
}

}  // namespace tutti
