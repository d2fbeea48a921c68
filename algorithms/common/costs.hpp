// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "pairs.hpp"
#include "parameters.hpp"

/// Costs of shapes that several collectives have.
namespace tutti {

/// One message after another from each rank to the next.
inline double chain_latencies_ns(const CostModel& model) {
  const double edges = static_cast<double>(model.node_of().size()) - 1;
  const double between = model.neighbour().latency_ns == model.near().latency_ns ? 0 : model.node_count() - 1.0;
  return (edges - between) * model.near().latency_ns + between * model.far().latency_ns;
}

/// From rank to rank, each folding its own to what comes: the first chunk pays every hop, the others follow one behind the other.
inline double folding_chain_ns(const Shape& shape, uint64_t bytes, uint64_t segment_bytes, const CostModel& model) {
  const double chunk = chunk_bytes(bytes, segment_bytes);
  const double chunks = chunk > 0 ? static_cast<double>(bytes) / chunk : 1;
  const Price price = model.neighbour();
  const Price& alone = model.far();
  const double hop_ns = 2 * alone.message_ns + chunk * alone.ns_per_byte + alone.fold_ns(chunk);
  const double follow_ns = 3 * price.message_ns + chunk * (model.stream_ns_per_byte(2) + model.stream_fold_ns_per_byte(1));
  return model.step_ns() + chain_latencies_ns(model) + (shape.size - 1.0) * hop_ns + (chunks - 1) * follow_ns;
}

/// A block between the root and each other rank: the latencies overlap, the root handles the messages one by one.
inline double star_ns(const Shape& shape, uint64_t bytes, const CostModel& model) {
  if (shape.size == 1) return model.step_ns();
  return model.meeting_ns() + model.star_ns(static_cast<double>(bytes) / shape.size);
}

/// The same up or down a tree: a round for each bit; all blocks but the root's pass it, a subtree's at once.
inline double block_tree_ns(const Shape& shape, uint64_t bytes, const CostModel& model) {
  double total_ns = model.step_ns();
  for (uint32_t round = 0; 1u << round < shape.size; ++round) {
    const double blocks = std::min(1u << round, shape.size - (1u << round));
    total_ns += model.tree_edge(round).one_way_ns(static_cast<double>(bytes) / shape.size * blocks);
  }
  return total_ns;
}

/// Down or up a balanced tree over ranks in order: the lower half of its levels is near, if anything is.
inline double tree_hops_ns(uint32_t depth, double chunk_bytes, const CostModel& model) {
  double total_ns = 0;
  for (uint32_t level = 0; level < depth; ++level) total_ns += model.tree_edge(level).one_way_ns(chunk_bytes);
  return total_ns;
}

enum class Halves : uint8_t { there, far_first, there_and_back, there_and_back_to_one };

/// Rounds of exchanging half, a quarter ... of the vector, nearest first unless told otherwise; ranks beyond a power of two pair
/// up before, and afterwards where all get results.
inline double halving_ns(const Shape& shape, double bytes, const CostModel& model, Halves way) {
  const Pairs pairs(shape.size);
  const bool back = way == Halves::there_and_back || way == Halves::there_and_back_to_one;
  double total_ns = model.step_ns();
  double moved = bytes;
  for (uint32_t round = 0; round < pairs.rounds(); ++round) {
    moved /= 2;
    const uint32_t distance = way == Halves::far_first ? pairs.rounds() - 1 - round : round;
    const Price price = model.exchange_of(pairs.active(), distance);
    total_ns += (way == Halves::there_and_back ? 2 : 1) * price.exchange_ns(moved) + price.fold_ns(moved);
    if (way == Halves::there_and_back_to_one) total_ns += model.tree_edge(distance).one_way_ns(moved);
  }
  if (pairs.extra() == 0) return total_ns;
  const Price price = model.tree_edge(0);
  total_ns += price.one_way_ns(bytes) + price.fold_ns(bytes);
  if (way == Halves::there_and_back_to_one) return total_ns;
  return total_ns + price.one_way_ns(back ? bytes : bytes / shape.size);
}

}  // namespace tutti
