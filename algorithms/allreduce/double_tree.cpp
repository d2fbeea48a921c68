// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../common/tree.hpp"
#include "../registry.hpp"

/// Two binary trees, each for one half of the vector. What is a leaf in the one is inside the other, so that every rank receives
/// and sends as much as all others and both directions of every link are busy.
///
/// Place x = 1 .. p of a tree is as high above the leaves as x has zeros at its end; the second tree is the first shifted by one
/// rank.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(64 * 1024)};

/// In a tree whose places 1 .. size are ranks 0 .. size - 1.
TreePlace place_of(uint32_t rank, uint32_t size) {
  // The parent in the full tree; where that is missing, its nearest ancestor that is not.
  const auto parent_of = [size](uint32_t x) {
    do {
      const uint32_t low = x & (~x + 1);
      x = (x & ~(low * 2)) - low + low * 2;
    } while (x > size);
    return x;
  };
  const uint32_t top = std::bit_floor(size);
  const uint32_t x = rank + 1;
  const uint32_t low = x & (~x + 1);
  TreePlace place;
  for (uint32_t up = x; up != top; up = parent_of(up)) {
    if (up == x) place.parent = parent_of(x) - 1;
    ++place.depth;
  }
  if (low > 1) place.left = x - low / 2 - 1;
  for (uint32_t step = low / 2; step > 0 && place.right == TreePlace::kNone; step /= 2) {
    if (x + step <= size) place.right = x + step - 1;
  }
  return place;
}

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  ScheduleBuilder plan(Collective::allreduce, request);
  for (const uint32_t shift : {0u, 1u}) {
    TreePlace place = place_of((request.rank + shift) % size, size);
    for (uint32_t* rank : {&place.parent, &place.left, &place.right}) {
      if (*rank != TreePlace::kNone) *rank = (*rank + size - shift) % size;
    }
    append_tree(plan.lane(request.parameters[kSegmentBytes]), place, part(shift, 2));
  }
  return plan.take();
}

/// Up and down once: the first chunk pays every hop, the others follow. In both trees together a rank sends and receives twice.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double half = static_cast<double>(bytes) / 2;
  const double chunk = chunk_bytes(bytes / 2, parameters[kSegmentBytes]);
  const auto depth = static_cast<uint32_t>(std::bit_width(shape.size) - 1);
  const double hops_ns = tree_hops_ns(depth, 2 * chunk, model) + depth * 2 * model.near().message_ns;
  return 2 * model.step_ns() + 2 * hops_ns + depth * 2 * model.near().fold_ns(chunk) +
         (depth == 0 ? 0 : 2 * (half - chunk) * (2 * model.stream_ns_per_byte(2) + model.stream_fold_ns_per_byte(1)));
}

}  // namespace

const AlgorithmInfo kAllreduceDoubleTree = {
    Collective::allreduce,
    "double_tree",
    "up and down two binary trees with half of the vector each, chunk by chunk; few rounds and few bytes",
    "P. Sanders, J. Speck, J. L. Traeff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, ParCo 35 (2009)",
    kParameters,
    1,
    UINT32_MAX,
    kNoTraits,
    cost_ns,
    build,
};

}  // namespace tutti
