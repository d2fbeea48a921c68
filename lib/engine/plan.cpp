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

Result<std::unique_ptr<Plan>> Plan::create(Program program, ChannelSet& channels, uint32_t choice) {
  std::unique_ptr<Plan> plan(new Plan(std::move(program), choice));
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
  plan->bounds_.resize(p.divisions.size());
  for (size_t n = static_cast<size_t>(BufferId::scratch); n < kBufferCount; ++n) {
    plan->has_scratch_ = plan->has_scratch_ || p.windows[n].division != ProgramOperand::kNoData;
  }
  plan->build_tables();
  plan->prepare_steps();
  plan->find_most_whole_bytes();
  return plan;
}

void Plan::build_tables() {
  for (const ProgramLoop& loop : program_.loops) {
    LoopTable table;
    table.lag_from.resize(loop.step_count);
    for (uint32_t i = 0; i < loop.step_count; ++i) {
      const ProgramStep& step = program_.steps[loop.first_step + i];
      table.lag_from[i] = step.lag;
      for (uint32_t o = 0; o < operand_count(step); ++o) note_extent(table, program_.operands[step.first_operand + o]);
    }
    std::sort(table.extents.begin(), table.extents.end());
    table.extents.erase(std::unique(table.extents.begin(), table.extents.end()), table.extents.end());
    for (uint32_t i = loop.step_count; i-- > 1;) table.lag_from[i - 1] = std::min(table.lag_from[i - 1], table.lag_from[i]);
    loops_.push_back(std::move(table));
  }
}

void Plan::note_extent(LoopTable& table, const ProgramOperand& operand) {
  if (operand.division == ProgramOperand::kNoData) {
    table.signals = true;
    return;
  }
  const Extent extent{operand.division, operand.first, operand.last};
  const auto same_width = [&](const Extent& other) {
    return other.division == extent.division && other.last - other.first == extent.last - extent.first;
  };
  if (std::none_of(table.widths.begin(), table.widths.end(), same_width)) table.widths.push_back(extent);
  const Division& division = program_.divisions[operand.division];
  if (division.cut == Cut::even) return;
  table.extents.push_back(extent);
  const uint32_t shares = division.parts / program_.size;
  const bool joins = extent.last > extent.first && extent.first / shares != (extent.last - 1) / shares;
  if (operand.kind == ProgramOperand::Kind::local && joins) joins_blocks_[static_cast<size_t>(operand.buffer)] = true;
}

// ---- the lengths of a call --------------------------------------------------------------------------------------------

void Plan::bind(const Bindings& bindings) {
  by_table_ = false;
  placed_ = !bindings.input_places.empty() || !bindings.output_places.empty();
  for (size_t n = 0; n < bounds_.size(); ++n) bind_division(n, bindings);
  if (has_scratch_) bind_scratch(bindings.element_bytes);
  bind_steps(bindings.element_bytes);
  bound_count_ = bindings.lengths.count;
}

/// In place of bind(), for a vector that moves as a whole and in one piece, as the one bound before: most short ones. False:
/// bind() has to do it.
bool Plan::bind_whole(uint64_t count, uint32_t element_bytes) noexcept {
  if (element_bytes != bound_element_bytes_ || count == 0 || bound_count_ == 0) return false;
  if (std::max(count, bound_count_) * element_bytes > most_whole_bytes_) return false;
  for (Bounds& bounds : bounds_) bounds.quotient = count;
  for (BoundStep& step : bound_steps_)
    if (!step.signals) step.length = count;
  bound_count_ = count;
  return true;
}

/// What no call's lengths change.
void Plan::prepare_steps() {
  bound_steps_.resize(program_.steps.size());
  bound_operands_.resize(program_.operands.size());
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const ProgramStep& step = program_.steps[s];
    bound_steps_[s].signals =
        operand_count(step) == 0 || program_.operands[step.first_operand].division == ProgramOperand::kNoData;
    for (uint32_t i = step.first_operand; i < step.first_operand + operand_count(step); ++i) {
      const ProgramOperand& operand = program_.operands[i];
      const bool has_data = operand.division != ProgramOperand::kNoData;
      BoundOperand& place = bound_operands_[i];
      if (operand.kind == ProgramOperand::Kind::slot) {
        place.channel = channels_[operand.index];
        bound_steps_[s].has_slots = true;
      } else if (operand.kind == ProgramOperand::Kind::staged) {
        place.offset_bytes = reinterpret_cast<uintptr_t>(stages_[operand.index].get());
        place.mask = program_.stages[operand.index].depth - 1u;
        place.stride_bytes = stage_segment_bytes_[operand.index];
        place.buffer = kBufferCount;
      } else {
        place.buffer = has_data ? static_cast<uint32_t>(operand.buffer) : kBufferCount;
        if (has_data) local_operands_.push_back(i);
      }
    }
  }
}

/// Whether the program never divides the vector, and up to which length it then goes round once.
void Plan::find_most_whole_bytes() {
  if (has_scratch_ || program_.lanes.empty()) return;
  const auto is_whole = [](const Division& division) { return division.cut == Cut::even && division.parts == 1; };
  const auto has_all = [](const ProgramOperand& operand) {
    return operand.division == ProgramOperand::kNoData || (operand.first == 0 && operand.last == 1);
  };
  if (!std::all_of(program_.divisions.begin(), program_.divisions.end(), is_whole)) return;
  if (!std::all_of(program_.operands.begin(), program_.operands.end(), has_all)) return;
  most_whole_bytes_ = UINT64_MAX;
  for (const ProgramLane& lane : program_.lanes) most_whole_bytes_ = std::min<uint64_t>(most_whole_bytes_, lane.segment_bytes);
}

/// What the size of an element decides: it seldom changes.
void Plan::bind_chunks(uint32_t element_bytes) {
  for (const ProgramLane& lane : program_.lanes) {
    const uint64_t segment = std::max<uint64_t>(1, lane.segment_bytes / element_bytes);
    for (uint32_t l = lane.first_loop; l < lane.first_loop + lane.loop_count; ++l) {
      const ProgramLoop& loop = program_.loops[l];
      for (uint32_t s = loop.first_step; s < loop.first_step + loop.step_count; ++s) {
        const ProgramStep& step = program_.steps[s];
        bound_steps_[s].segment = segment;
        for (uint32_t i = step.first_operand; i < step.first_operand + operand_count(step); ++i)
          if (program_.operands[i].kind == ProgramOperand::Kind::local) bound_operands_[i].stride_bytes = segment * element_bytes;
      }
    }
  }
  bound_element_bytes_ = element_bytes;
}

void Plan::bind_steps(uint32_t element_bytes) {
  if (element_bytes != bound_element_bytes_) bind_chunks(element_bytes);
  for (size_t s = 0; s < bound_steps_.size(); ++s) {
    if (bound_steps_[s].signals) continue;
    const ProgramOperand& operand = program_.operands[program_.steps[s].first_operand];
    bound_steps_[s].length = bound(operand.division, operand.last) - bound(operand.division, operand.first);
  }
  for (const uint32_t i : local_operands_) {
    const ProgramOperand& operand = program_.operands[i];
    const uint64_t* places = placed_ && operand.buffer <= BufferId::output
                                 ? bounds_[operand.division].places[static_cast<size_t>(operand.buffer)]
                                 : nullptr;
    bound_operands_[i].offset_bytes =
        (places != nullptr ? places[operand.first] : bound(operand.division, operand.first)) * element_bytes;
  }
}

void Plan::bind_scratch(uint64_t element_bytes) {
  for (size_t n = 0; n < scratch_.size(); ++n) {
    const ProgramWindow& held = program_.windows[static_cast<size_t>(BufferId::scratch) + n];
    if (held.division == ProgramOperand::kNoData) continue;
    const uint64_t bytes = (bound(held.division, held.last) - bound(held.division, held.first)) * element_bytes;
    if (scratch_[n].size() < bytes) scratch_[n].resize(bytes);
  }
}

void Plan::bind_division(size_t index, const Bindings& bindings) {
  const Division& division = program_.divisions[index];
  const Lengths& lengths = bindings.lengths;
  Bounds& bounds = bounds_[index];
  bounds.table = bounds.places[0] = bounds.places[1] = nullptr;
  const bool even = division.cut == Cut::even;
  const uint32_t shares = even ? division.parts : division.parts / program_.size;
  bounds.quotient = shares == 1 ? lengths.count : lengths.count / shares;
  bounds.remainder = lengths.count - bounds.quotient * shares;
  if (even) return;
  const bool alike = (division.cut == Cut::blocks ? lengths.counts : lengths.received_counts).empty();
  // Equal blocks in equal shares follow the same formula.
  if (alike && bounds.remainder == 0 && !placed_) return;
  const size_t parts = division.parts;
  if (bounds.memory.empty()) bounds.memory.resize(3 * (parts + 1));
  const std::span<uint64_t> memory(bounds.memory);
  fill_bounds(division, program_.size, lengths, memory.first(parts + 1));
  bounds.table = memory.data();
  by_table_ = true;
  for (const BufferId buffer : {BufferId::input, BufferId::output}) {
    const size_t n = static_cast<size_t>(buffer);
    const std::span<const uint64_t> displacements = n == 0 ? bindings.input_places : bindings.output_places;
    if (displacements.empty()) continue;
    const std::span<uint64_t> places = memory.subspan((n + 1) * (parts + 1), parts);
    fill_places(division, program_.size, lengths, displacements, places);
    bounds.places[n] = places.data();
  }
}

/// Elements of the loop's longest slice.
uint64_t Plan::longest(const LoopTable& table) const noexcept {
  uint64_t longest = 0;
  for (const Extent& extent : table.widths) {
    const Bounds& bounds = bounds_[extent.division];
    const uint64_t width = extent.last - extent.first;
    if (bounds.table == nullptr) longest = std::max(longest, width * bounds.quotient + std::min(width, bounds.remainder));
  }
  if (!by_table_) return longest;
  for (const Extent& extent : table.extents) {
    const uint64_t* bound = bounds_[extent.division].table;
    if (bound != nullptr) longest = std::max(longest, bound[extent.last] - bound[extent.first]);
  }
  return longest;
}

uint64_t Plan::iterations(const ProgramLane& lane, uint32_t loop, uint32_t element_bytes) const noexcept {
  const LoopTable& table = loops_[lane.first_loop + loop];
  const uint64_t elements = longest(table);
  if (elements <= 1 || elements * element_bytes <= lane.segment_bytes) return table.signals ? 1 : std::min<uint64_t>(elements, 1);
  const uint64_t segment = std::max<uint64_t>(1, lane.segment_bytes / element_bytes);
  const uint64_t chunks = (elements + segment - 1) / segment;
  return table.signals ? std::max<uint64_t>(chunks, 1) : chunks;
}

uint64_t Plan::memory_bytes() const noexcept {
  uint64_t bytes = 0;
  for (const auto& scratch : scratch_) bytes += scratch.size();
  for (size_t i = 0; i < stages_.size(); ++i) bytes += stage_segment_bytes_[i] * program_.stages[i].depth;
  for (const auto& ring : tickets_) bytes += ring.size() * sizeof(Ticket);
  return bytes;
}

}  // namespace tutti
