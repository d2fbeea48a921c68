// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "../common/costs.hpp"
#include "../common/parameters.hpp"
#include "../common/tree.hpp"
#include "../registry.hpp"

/// A binary search tree over the ranks, its root the middle one. Each rank folds (left subtree, own, right subtree), which is
/// rank order, and gives the result to its parent; the root sends the complete result down again. It is folded in one place: the
/// same bits everywhere.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(64 * 1024)};

Schedule build(const PlanRequest& request) {
  const uint32_t size = request.shape.size;
  ScheduleBuilder plan(Collective::allreduce, request);
  append_tree(plan.lane(request.parameters[kSegmentBytes]), place_below(size / 2, request.rank, size), kWhole);
  return plan.take();
}

/// Up and down once: the first chunk pays every hop, the others follow. A rank in the middle receives and sends three times.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters& parameters, const CostModel& model) {
  const double chunk = chunk_bytes(bytes, parameters[kSegmentBytes]);
  const auto depth = static_cast<uint32_t>(std::bit_width(shape.size) - 1);
  const double hops_ns = tree_hops_ns(depth, chunk, model);
  const double rest = static_cast<double>(bytes) - chunk;
  return model.step_ns() + 2 * hops_ns + depth * 2 * model.near().fold_ns(chunk) +
         (depth == 0 ? 0 : rest * (model.stream_ns_per_byte(3) + model.stream_ns_per_byte(3) + model.stream_fold_ns_per_byte(2)));
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
