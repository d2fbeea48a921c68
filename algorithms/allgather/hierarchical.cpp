// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <optional>
#include <vector>

#include "../common/levels.hpp"
#include "../common/parameters.hpp"
#include "../registry.hpp"
#include "schedule/builder.hpp"

/// Level by level the members of each group give their leader all blocks that they have; the last leaders pass theirs round a
/// ring; then everything goes down a binomial tree in each group. What leaves a group leaves it once.
namespace tutti {
namespace {

enum : size_t { kSegmentBytes };
constexpr ParameterInfo kParameters[] = {segment_bytes(0)};

/// The blocks that a member of a level's teams has before the level: those of its group of the level below.
std::vector<Slice> blocks_under(const Shape& shape, size_t level, uint32_t leader) {
  if (level == 0) return {block_of(leader, shape.size)};
  const std::vector<uint32_t>& group_of = shape.group_of[level - 1];
  std::vector<Slice> slices;
  for (uint32_t rank = 0; rank < shape.size; ++rank) {
    if (group_of[rank] != group_of[leader]) continue;
    if (!slices.empty() && slices.back().last == rank) {
      ++slices.back().last;
    } else {
      slices.push_back(block_of(rank, shape.size));
    }
  }
  return slices;
}

void append_ring(const LaneBuilder& lane, const Shape& shape, size_t level, const Team& team) {
  const uint32_t size = team.size();
  const auto member = [&](uint32_t steps_behind) { return team.ranks[(team.self + size - steps_behind % size) % size]; };
  for (uint32_t s = 0; s + 1 < size; ++s) {
    const std::vector<Slice> given = blocks_under(shape, level, member(s));
    const std::vector<Slice> got = blocks_under(shape, level, member(s + 1));
    // In turn: no more is under way than any channel holds.
    for (size_t n = 0; n < std::max(given.size(), got.size()); ++n) {
      if (n < given.size()) lane.at(s).send(team.ranks[(team.self + 1) % size], output(given[n]));
      if (n < got.size()) lane.at(s).recv(member(1), output(got[n]));
    }
  }
}

/// In a loop of its own: down the tree of the last level that this rank is in without leading it, and of those that it leads.
void append_release(const LaneBuilder& lane, const std::vector<Level>& levels, size_t top, Slice all) {
  std::optional<uint32_t> parent;
  std::vector<uint32_t> children;
  for (size_t level = top; level-- > 0;) {
    const Team& team = levels[level].team;
    if (team.size() == 0) continue;
    const uint32_t number = (team.self + team.size() - levels[level].leader) % team.size();
    const auto rank_of = [&](uint32_t n) { return team.ranks[(n + levels[level].leader) % team.size()]; };
    const uint32_t span = number == 0 ? std::bit_ceil(team.size()) : number & (~number + 1);
    for (uint32_t bit = span / 2; bit > 0; bit /= 2) {
      if (number + bit < team.size()) children.push_back(rank_of(number + bit));
    }
    if (number != 0) parent = rank_of(number & (number - 1));
  }
  if (parent) {
    lane.forward(*parent, output(all), children);
  } else {
    for (const uint32_t child : children) lane.send(child, output(all));
  }
}

Schedule build(const PlanRequest& request) {
  const Shape& shape = request.shape;
  const std::vector<Level> levels = levels_of(request, 0);
  const size_t top = last_meeting(levels);
  ScheduleBuilder plan(Collective::allgather, request);
  const LaneBuilder lane = plan.lane(request.parameters[kSegmentBytes]);
  if (!request.in_place) lane.copy(input(block_of(request.rank, shape.size)), output(block_of(request.rank, shape.size)));
  for (size_t level = 0; level < top && levels[level].team.size() > 0; ++level) {
    const Team& team = levels[level].team;
    const bool leads = team.self == levels[level].leader;
    const LaneBuilder meeting = lane.then();
    for (uint32_t n = 0; n < team.size(); ++n) {
      if (n == levels[level].leader || (!leads && n != team.self)) continue;
      for (const Slice blocks : blocks_under(shape, level, team.ranks[n])) {
        if (leads) {
          meeting.recv(team.ranks[n], output(blocks));
        } else {
          meeting.send(team.ranks[levels[level].leader], output(blocks));
        }
      }
    }
  }
  if (levels[top].team.size() > 0) append_ring(lane.then(), shape, top, levels[top].team);
  append_release(lane.then(), levels, top, blocks_of(0, shape.size, shape.size));
  return plan.take();
}

double cost_ns(const Shape& shape, uint64_t bytes, const Parameters&, const CostModel& model) {
  const std::vector<LevelPrice> levels = level_prices(shape, model);
  const auto n = static_cast<double>(bytes);
  double under = n / shape.size;  // what a member has
  double total_ns = model.step_ns();
  for (size_t level = 0; level + 1 < levels.size(); ++level) {
    const Price& price = levels[level].price;
    const double others = levels[level].longest - 1.0;
    total_ns += price.latency_ns + others * (price.message_ns + under * price.ns_per_byte);
    total_ns += std::bit_width(levels[level].longest - 1) * price.one_way_ns(n);
    under *= levels[level].longest;
  }
  return total_ns + (levels.back().longest - 1.0) * levels.back().price.exchange_ns(under);
}

}  // namespace

const AlgorithmInfo kAllgatherHierarchical = {
    Collective::allgather,
    "hierarchical",
    "groups gather to their leaders, these pass the blocks round a ring, groups get everything from theirs",
    "J. L. Traeff, S. Hunold: Decomposing MPI Collectives for Exploiting Multi-lane Communication, IEEE CLUSTER (2020)",
    kParameters,
    1,
    kMaxRanksOfLinearSteps,
    kNested,
    cost_ns,
    build,
};

}  // namespace tutti
