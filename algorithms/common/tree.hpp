// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/builder.hpp"

/// Binary trees over the ranks in which a subtree covers neighbouring ranks, those of the left one below its root, those of the
/// right one above: (left, own, right) is rank order.
namespace tutti {

struct TreePlace {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t depth = 0;
  uint32_t parent = kNone;
  uint32_t left = kNone;
  uint32_t right = kNone;
};

/// The tree whose root is `top`; below it each subtree's root is the middle rank of the subtree.
inline TreePlace place_below(uint32_t top, uint32_t rank, uint32_t size) {
  const auto middle = [](uint32_t low, uint32_t high) { return low + (high - low) / 2; };
  TreePlace place;
  uint32_t low = 0;
  uint32_t high = size;
  uint32_t root = top;
  while (root != rank) {
    place.parent = root;
    ++place.depth;
    (rank < root ? high : low) = rank < root ? root : root + 1;
    root = middle(low, high);
  }
  if (low < rank) place.left = middle(low, rank);
  if (rank + 1 < high) place.right = middle(rank + 1, high);
  return place;
}

inline std::vector<uint32_t> children_of(const TreePlace& place) {
  std::vector<uint32_t> children;
  if (place.left != TreePlace::kNone) children.push_back(place.left);
  if (place.right != TreePlace::kNone) children.push_back(place.right);
  return children;
}

/// What the subtree is made of, in rank order.
inline std::vector<Operand> operands_of(const TreePlace& place, Slice slice) {
  std::vector<Operand> operands;
  if (place.left != TreePlace::kNone) operands.push_back(message(place.left, slice));
  operands.push_back(input(slice));
  if (place.right != TreePlace::kNone) operands.push_back(message(place.right, slice));
  return operands;
}

/// An allreduce up and down the tree.
///
/// A rank at depth d has the result of a chunk 2 d hops after it gave its part away. So its second half lags 2 d iterations: the
/// pipeline stays full, and as each hop holds one chunk at least, no more than the smallest credit is asked of a channel.
inline void append_tree(const LaneBuilder& lane, const TreePlace& place, Slice slice) {
  const std::vector<uint32_t> children = children_of(place);
  if (place.parent != TreePlace::kNone) {
    lane.fold(operands_of(place, slice), {message(place.parent, slice)});
    lane.at(2 * place.depth).forward(place.parent, output(slice), children);
    return;
  }
  std::vector<Operand> results = {output(slice)};
  for (const uint32_t child : children) results.push_back(message(child, slice));
  lane.fold(operands_of(place, slice), results).finalize();
}

}  // namespace tutti
