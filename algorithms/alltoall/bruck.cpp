// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Blocks are sorted by how far they go. In round k all whose distance has bit k set move on by 2^k ranks, packed into one
/// message, into the places of those that left: after the last round each has gone its whole way.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

/// A step that copies a small block, without a message.
constexpr double kCopyNs = 30;

/// `scratch` holds the blocks by distance, `scratch_b` what a round sends and `scratch_c` what it gets.
class Rounds {
 public:
  Rounds(const PlanRequest& request, ScheduleBuilder& plan)
      : size_(request.shape.size), rank_(request.rank), lane_(plan.lane(request.parameters[kSegmentBytes])) {
    if (size_ == 1) return;
    plan.hold(BufferId::scratch, blocks_of(0, size_, size_));
    plan.hold(BufferId::scratch_b, blocks_of(0, size_ / 2, size_));
    plan.hold(BufferId::scratch_c, blocks_of(0, size_ / 2, size_));
  }

  void append() {
    sort_by_distance();
    for (uint32_t bit = 1; bit < size_; bit *= 2) append_round(bit);
    // What has come from rank r stands where the distance from r is.
    lane_ = lane_.then();
    for (uint32_t distance = 0; distance < size_; ++distance) {
      const uint32_t from = (rank_ + size_ - distance) % size_;
      lane_.copy(size_ == 1 ? input(blocks(0, 1)) : scratch(blocks(distance, 1)), output(received_from(from, size_)));
    }
  }

 private:
  Slice blocks(uint32_t first, uint32_t count) const { return blocks_of(first, first + count, size_); }

  void sort_by_distance() {
    if (size_ == 1) return;
    lane_.copy(input(blocks(rank_, size_ - rank_)), scratch(blocks(0, size_ - rank_)));
    if (rank_ > 0) lane_.copy(input(blocks(0, rank_)), scratch(blocks(size_ - rank_, rank_)));
  }

  void append_round(uint32_t bit) {
    const LaneBuilder packing = lane_.then();
    uint32_t packed = 0;
    for_each_run(bit, [&](uint32_t first, uint32_t count) {
      packing.copy(scratch(blocks(first, count)), scratch_b(blocks(packed, count)));
      packed += count;
    });
    lane_ = lane_.then();
    lane_.send((rank_ + bit) % size_, scratch_b(blocks(0, packed)));
    lane_.recv((rank_ + size_ - bit) % size_, scratch_c(blocks(0, packed)));
    const LaneBuilder unpacking = lane_.then();
    uint32_t unpacked = 0;
    for_each_run(bit, [&](uint32_t first, uint32_t count) {
      unpacking.copy(scratch_c(blocks(unpacked, count)), scratch(blocks(first, count)));
      unpacked += count;
    });
  }

  /// Runs of distances that have the bit set.
  template <class Visit>
  void for_each_run(uint32_t bit, Visit visit) const {
    for (uint32_t first = bit; first < size_; first += 2 * bit) visit(first, std::min(bit, size_ - first));
  }

  const uint32_t size_;
  const uint32_t rank_;
  LaneBuilder lane_;
};

Schedule build(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::alltoall, request);
  Rounds(request, plan).append();
  return plan.take();
}

/// Half of the blocks move in each round, and are copied twice on the way.
double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const double copies = shape.size - 1.0;  // of runs, in either direction; the first rounds have the most
  const double half = static_cast<double>(bytes) / 2;
  double total_ns = model.step_ns() + 3 * copies * kCopyNs;
  for (uint32_t round = 0; 1u << round < shape.size; ++round) {
    total_ns += model.exchange(round).exchange_ns(half) + 2 * model.exchange(round).fold_ns(half);
  }
  return total_ns;
}

}  // namespace

const AlgorithmInfo kAlltoallBruck = {
    Collective::alltoall,
    "bruck",
    "blocks travel together by the bits of their distances; fewest rounds, for small blocks and many ranks",
    "J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby: Efficient Algorithms for All-to-All Communications in Multiport "
    "Message-Passing Systems, IEEE TPDS 8 (1997)",
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kEqualBlocks,
    cost_ns,
    build,
};

}  // namespace tutti
