// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../common/tree.hpp"
#include "../registry.hpp"

/// A binary tree with the root of the reduction on top, the lower ranks in its left subtree, the higher ones in its right: each
/// rank folds (left subtree, own, right subtree), chunk by chunk, and keeps nothing.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(64 * 1024)};

Schedule build(const PlanRequest& request) {
  const TreePlace place = place_below(request.root, request.rank, request.shape.size);
  ScheduleBuilder plan(Collective::reduce, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  const bool is_root = place.parent == TreePlace::kNone;
  lane.fold(operands_of(place, kWhole), {is_root ? output() : message(place.parent)}).finalize(is_root);
  return plan.take();
}

/// The first chunk pays every hop, the others follow. A rank in the middle receives twice and sends once.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double chunk = chunk_bytes(bytes, parameters[kSegmentBytes]);
  const auto depth = static_cast<uint32_t>(std::bit_width(shape.size) - 1);
  const double rest = static_cast<double>(bytes) - chunk;
  const double rest_ns = rest * (model.stream_ns_per_byte(3) + model.stream_fold_ns_per_byte(2));
  return model.step_ns() + tree_hops_ns(depth, 2 * chunk, model) + depth * 2 * model.near().fold_ns(chunk) +
         (shape.size == 1 ? 0 : rest_ns);
}

}  // namespace

const AlgorithmInfo kReduceTree = {
    Collective::reduce,
    "tree",
    "up a binary tree, chunk by chunk; few rounds, and nothing is kept on the way",
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
