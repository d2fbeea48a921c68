// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.hpp"

#include <algorithm>
#include <set>

namespace tutti {

Result<ChannelHandle*> ChannelSet::get(uint32_t rank, int direction, uint16_t number) {
  ChannelHandle& handle = open_[{rank, direction, number}];  // first, so that nothing can fail once the channel is open
  if (!handle.channel) {
    Result<ChannelHandle> opened = fabric_.open_channel(world_ranks_[rank], id_base_ | number, direction);
    if (!opened) {
      open_.erase({rank, direction, number});
      return opened.status();
    }
    handle = *opened;
  }
  return &handle;
}

void ChannelSet::close_all() noexcept {
  for (auto& entry : open_) Fabric::close_channel(entry.second);
  open_.clear();
}

std::vector<uint32_t> ChannelSet::neighbours() const {
  std::set<uint32_t> ranks;
  for (const auto& entry : open_) ranks.insert(std::get<0>(entry.first));
  return {ranks.begin(), ranks.end()};
}

Result<std::unique_ptr<Plan>> Plan::create(Program program, ChannelSet& channels) {
  std::unique_ptr<Plan> plan(new Plan(std::move(program)));
  const Program& p = plan->program_;
  for (const ProgramChannel& channel : p.channels) {
    Result<ChannelHandle*> handle = channels.get(channel.peer, channel.direction, channel.lane);
    if (!handle) return handle.status();
    plan->channels_.push_back(*handle);
  }
  for (const Stage& stage : p.stages) {
    const uint64_t segment = p.lanes[stage.lane].segment_bytes;
    plan->stages_.emplace_back(new std::byte[segment * stage.depth]);
    plan->stage_segment_bytes_.push_back(segment);
  }
  for (const PendingRing& ring : p.pendings) plan->tickets_.emplace_back(ring.depth);
  plan->quotient_.resize(p.divisors.size());
  plan->remainder_.resize(p.divisors.size());
  plan->build_tables();
  return plan;
}

void Plan::build_tables() {
  for (const ProgramLane& lane : program_.lanes) {
    LaneTable table;
    table.lag_from.resize(lane.step_count);
    for (uint32_t i = 0; i < lane.step_count; ++i) {
      const ProgramStep& step = program_.steps[lane.first_step + i];
      table.lag_from[i] = step.lag;
      const uint32_t operand_count =
          step.verb == Verb::fold ? uint32_t{step.source_count} + step.destination_count : 1;
      for (uint32_t o = 0; o < operand_count; ++o) {
        const ProgramOperand& operand = program_.operands[step.first_operand + o];
        if (operand.divisor == ProgramOperand::kNoData) {
          table.signals = true;
          continue;
        }
        const Width width{operand.divisor, operand.last - operand.first};
        const bool known = std::any_of(table.widths.begin(), table.widths.end(), [&](const Width& w) {
          return w.divisor == width.divisor && w.width == width.width;
        });
        if (!known) table.widths.push_back(width);
      }
    }
    for (uint32_t i = lane.step_count; i-- > 1;)
      table.lag_from[i - 1] = std::min(table.lag_from[i - 1], table.lag_from[i]);
    lanes_.push_back(std::move(table));
  }
}

uint64_t Plan::memory_bytes() const noexcept {
  uint64_t bytes = scratch_.size();
  for (size_t i = 0; i < stages_.size(); ++i) bytes += stage_segment_bytes_[i] * program_.stages[i].depth;
  for (const auto& ring : tickets_) bytes += ring.size() * sizeof(Ticket);
  return bytes;
}

}  // namespace tutti
