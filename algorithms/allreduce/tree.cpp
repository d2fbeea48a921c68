// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <vector>

#include "../registry.hpp"
#include "schedule/builder.hpp"

/// A binary search tree over the ranks: the root of the ranks [low, high) is the middle one, its subtrees are the ranks below and
/// above it. Each rank folds (left subtree, own, right subtree), which is rank order, and gives the result to its parent; the
/// root sends the complete result down again. It is folded in one place: the same bits everywhere.
///
/// A rank at depth d has the result of a chunk 2 d hops after it gave its part away. So its second half lags 2 d iterations: the
/// pipeline stays full, and as each hop holds one chunk at least, no more than the smallest credit is asked of a channel.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {
    {"segment_bytes", 64 * 1024, 8, uint64_t{1} << 30, true, "length of a chunk; 0: as long as the transport allows"},
};

struct Place {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t depth = 0;
  uint32_t parent = kNone;
  uint32_t left = kNone;
  uint32_t right = kNone;
};

Place find(uint32_t rank, uint32_t size) {
  const auto middle = [](uint32_t low, uint32_t high) { return low + (high - low) / 2; };
  Place place;
  uint32_t low = 0;
  uint32_t high = size;
  uint32_t root = middle(low, high);
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

Schedule build(const PlanRequest& request) {
  const Place place = find(request.rank, request.shape.size);
  ScheduleBuilder plan(Collective::allreduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);

  std::vector<Operand> parts;
  std::vector<uint32_t> children;
  if (place.left != Place::kNone) {
    parts.push_back(message(place.left));
    children.push_back(place.left);
  }
  parts.push_back(input());
  if (place.right != Place::kNone) {
    parts.push_back(message(place.right));
    children.push_back(place.right);
  }

  if (place.parent != Place::kNone) {
    lane.fold(parts, {message(place.parent)});
    lane.at(2 * place.depth).forward(place.parent, output(), children);
    return plan.take();
  }
  std::vector<Operand> results = {output()};
  for (const uint32_t child : children) results.push_back(message(child));
  lane.fold(parts, results).finalize();
  return plan.take();
}

/// Up and down once: the first chunk pays every hop, the others follow. A rank in the middle receives and sends three times.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const auto n = static_cast<double>(bytes);
  const uint64_t segment_bytes = parameters[kSegmentBytes];
  const double chunk = segment_bytes == 0 || bytes < segment_bytes ? n : static_cast<double>(segment_bytes);
  const double depth = std::bit_width(shape.size) - 1;
  const double hop = model.latency_ns + 2 * model.step_ns + chunk * model.ns_per_byte;
  const double rest = n - chunk;
  return 2 * depth * hop + depth * chunk * 2 * model.reduce_ns_per_byte +
         rest * (3 * model.ns_per_byte + 2 * model.reduce_ns_per_byte);
}

}  // namespace

const AlgorithmInfo kAllreduceTree = {
    Collective::allreduce,
    "tree",
    "reduce up and broadcast down one binary tree, chunk by chunk; few rounds and few bytes a rank",
    "P. Sanders, J. Speck, J. L. Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, ParCo 35 "
    "(2009); here with one tree",
    kParameters,
    1,
    UINT32_MAX,
    kRankOrdered,
    cost_ns,
    build,
};

}  // namespace tutti
