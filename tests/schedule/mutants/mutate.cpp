// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "mutate.hpp"

#include <algorithm>
#include <array>

#include "schedule/print.hpp"

namespace tutti::mutants {
namespace {

enum ScheduleMutation : size_t {
  kDrop,
  kDouble,
  kRetarget,
  kReorder,
  kSlice,
  kSlices,
  kFinalize,
  kLag,
  kBuffer,
  kOperandOrder,
  kOperandDropped,
  kSegment,
  kLoop,
};
constexpr std::array<std::string_view, 13> kScheduleNames = {"step dropped",       "step doubled",    "message re-targeted",
                                                             "steps reordered",    "slice changed",   "slices of a step changed",
                                                             "finalize changed",   "lag changed",     "buffer changed",
                                                             "operands reordered", "operand dropped", "segment changed",
                                                             "loops changed"};

enum ProgramMutation : size_t {
  kProgramDrop,
  kProgramDouble,
  kProgramRetarget,
  kProgramReorder,
  kProgramSlice,
  kProgramBuffer,
  kProgramFinalize,
  kProgramLag,
  kProgramTicket,
  kProgramDepth,
  kProgramVerb,
};
constexpr std::array<std::string_view, 11> kProgramNames = {
    "program step dropped",     "program step doubled",  "channel re-targeted",
    "program steps reordered",  "program slice changed", "program buffer changed",
    "program finalize changed", "program lag changed",   "ticket changed",
    "ring depth changed",       "verb changed"};

uint32_t below(std::mt19937_64& random, size_t limit) { return static_cast<uint32_t>(random() % limit); }

/// One of the bounds, or the number of parts, a little off; stays a slice.
void nudge(std::mt19937_64& random, uint32_t& parts, uint32_t& first, uint32_t& last) {
  switch (below(random, 4)) {
    case 0:
      first = below(random, last + 1);
      break;
    case 1:
      last = first + below(random, parts - first + 1);
      break;
    case 2:
      first = below(random, parts);
      last = first + 1;
      break;
    default:
      parts += 1 + below(random, 2);
  }
}

void nudge(std::mt19937_64& random, Slice& slice) {
  if (slice.parts == 0) {
    slice = kWhole;
  } else {
    const uint32_t parts = slice.parts;
    nudge(random, slice.parts, slice.first, slice.last);
    if (slice.cut != Cut::even && slice.parts != parts) slice.parts = parts * 2;  // shares of the same blocks
  }
}

BufferId other_buffer(std::mt19937_64& random, BufferId buffer) {
  return static_cast<BufferId>((static_cast<uint32_t>(buffer) + 1 + below(random, 2)) % 3);
}

std::vector<Operand>& some_operands(std::mt19937_64& random, Step& step) {
  return below(random, 2) == 0 && !step.sources.empty() ? step.sources : step.destinations;
}

void change_operand(ScheduleMutation mutation, Operand& operand, uint32_t size, std::mt19937_64& random) {
  const bool message = operand.kind == Operand::Kind::message;
  if (mutation == kSlice) nudge(random, operand.slice);
  if (mutation == kBuffer && !message && operand.slice.parts != 0) operand.buffer = other_buffer(random, operand.buffer);
  if (mutation == kRetarget && message) operand.peer = below(random, size);
}

/// Ends a loop before step `at`, or joins the step's loop to the one before.
void change_loops(std::vector<Step>& steps, uint32_t at, std::mt19937_64& random) {
  const uint16_t loop = steps[at].loop;
  if (below(random, 2) == 0) {
    for (size_t n = at; n < steps.size(); ++n) ++steps[n].loop;
  } else if (loop > 0) {
    for (Step& step : steps) step.loop = static_cast<uint16_t>(step.loop - (step.loop >= loop ? 1 : 0));
  }
}

void change_lane(ScheduleMutation mutation, Lane& lane, uint32_t size, std::mt19937_64& random) {
  std::vector<Step>& steps = lane.steps;
  const uint32_t at = below(random, steps.size());
  const uint32_t other = below(random, steps.size());
  Step& step = steps[at];
  std::vector<Operand>& operands = some_operands(random, step);
  switch (mutation) {
    case kDrop:
      steps.erase(steps.begin() + at);
      break;
    case kDouble: {
      const Step copy = step;
      steps.insert(steps.begin() + other, copy);
      break;
    }
    case kReorder:
      std::swap(steps[at], steps[other]);
      break;
    case kRetarget:
    case kSlice:
    case kBuffer:
      if (!operands.empty()) change_operand(mutation, operands[below(random, operands.size())], size, random);
      break;
    case kSlices: {
      Slice slice = step.destinations.front().slice;
      nudge(random, slice);
      for (Operand& operand : step.sources) operand.slice = slice;
      for (Operand& operand : step.destinations) operand.slice = slice;
      break;
    }
    case kFinalize:
      step.finalize = step.sources.front().slice.parts != 0 && !step.finalize;
      break;
    case kLag:
      step.lag = static_cast<uint16_t>(std::max(0, step.lag - 3 + static_cast<int>(below(random, 7))));
      break;
    case kOperandOrder:
      std::reverse(step.sources.begin(), step.sources.end());
      break;
    case kOperandDropped:
      if (operands.size() > 1) operands.erase(operands.begin() + below(random, operands.size()));
      break;
    case kSegment:
      if (step.sources.front().slice.parts != 0) lane.segment_bytes = 4 + 4 * below(random, 6);
      break;
    case kLoop:
      change_loops(steps, at, random);
      break;
  }
}

// ---- programs

void insert_step(Program& program, uint32_t at, const ProgramStep& step) {
  program.steps.insert(program.steps.begin() + at, step);
  bool grown = false;
  for (ProgramLoop& loop : program.loops) {
    if (grown) {
      ++loop.first_step;
    } else if (at < loop.first_step + loop.step_count) {
      ++loop.step_count;
      grown = true;
    }
  }
}

void erase_step(Program& program, uint32_t at) {
  program.steps.erase(program.steps.begin() + at);
  bool shrunk = false;
  for (ProgramLoop& loop : program.loops) {
    if (shrunk) {
      --loop.first_step;
    } else if (at < loop.first_step + loop.step_count) {
      --loop.step_count;
      shrunk = true;
    }
  }
}

/// Other transfers only wait: their operands and channel say nothing that is not in the post.
bool posts(const ProgramStep& step) { return step.verb == Verb::post_send || step.verb == Verb::post_recv; }

/// Operands are shared by a post and its await: the step gets its own first.
ProgramOperand& own_operand(Program& program, ProgramStep& step, std::mt19937_64& random) {
  const uint32_t count = operand_count(step);
  const auto first = static_cast<uint32_t>(program.operands.size());
  for (uint32_t n = 0; n < count; ++n) {
    const ProgramOperand operand = program.operands[step.first_operand + n];
    program.operands.push_back(operand);
  }
  step.first_operand = first;
  return program.operands[first + below(random, count)];
}

void retarget(Program& program, ProgramStep& step, std::mt19937_64& random) {
  if (program.channels.empty()) return;
  if (below(random, 3) == 0) {
    program.channels[below(random, program.channels.size())].peer = below(random, program.size);
  } else if (step.verb == Verb::fold) {
    ProgramOperand& operand = own_operand(program, step, random);
    if (operand.kind == ProgramOperand::Kind::slot) operand.index = static_cast<uint16_t>(below(random, program.channels.size()));
  } else if (posts(step)) {
    step.channel = static_cast<uint16_t>(below(random, program.channels.size()));
  }
}

void change_slice(Program& program, ProgramStep& step, std::mt19937_64& random) {
  if (step.verb != Verb::fold && !posts(step)) return;
  ProgramOperand& operand = own_operand(program, step, random);
  if (operand.division == ProgramOperand::kNoData) return;
  const Division cut = program.divisions[operand.division];
  Slice slice{cut.parts, operand.first, operand.last, cut.cut};
  nudge(random, slice);
  const Division division{slice.cut, slice.parts};
  operand.first = slice.first;
  operand.last = slice.last;
  if (division == cut) return;
  operand.division = static_cast<uint16_t>(program.divisions.size());
  program.divisions.push_back(division);
}

void change_place(Program& program, ProgramStep& step, std::mt19937_64& random) {
  if (step.verb != Verb::fold && !posts(step)) return;
  ProgramOperand& operand = own_operand(program, step, random);
  if (operand.division == ProgramOperand::kNoData) return;
  if (operand.kind == ProgramOperand::Kind::local) {
    operand.buffer = other_buffer(random, operand.buffer);
    ProgramWindow& held = program.windows[static_cast<size_t>(operand.buffer)];
    // A scratch buffer that only the mutant has, and long enough.
    if (operand.buffer == BufferId::scratch && held.division == ProgramOperand::kNoData) {
      held = {operand.division, 0, program.divisions[operand.division].parts};
    }
  } else if (operand.kind == ProgramOperand::Kind::staged) {
    operand.index = static_cast<uint16_t>(below(random, program.stages.size()));
  }
}

void change_lag(Program& program, uint32_t at, std::mt19937_64& random) {
  ProgramStep& step = program.steps[at];
  step.lag = static_cast<uint16_t>(std::max(0, step.lag - 3 + static_cast<int>(below(random, 7))));
  for (ProgramLoop& loop : program.loops) {
    if (at < loop.first_step || at >= loop.first_step + loop.step_count) continue;
    loop.max_lag = std::max(loop.max_lag, step.lag);
  }
}

template <class Ring>
void change_depth(std::vector<Ring>& rings, std::mt19937_64& random) {
  if (!rings.empty()) rings[below(random, rings.size())].depth = static_cast<uint16_t>(1u << below(random, 4));
}

void change_program(ProgramMutation mutation, Program& program, std::mt19937_64& random) {
  const uint32_t at = below(random, program.steps.size());
  const uint32_t other = below(random, program.steps.size());
  ProgramStep& step = program.steps[at];
  switch (mutation) {
    case kProgramDrop:
      return erase_step(program, at);
    case kProgramDouble: {
      const ProgramStep copy = step;
      return insert_step(program, other, copy);
    }
    case kProgramRetarget:
      return retarget(program, step, random);
    case kProgramReorder:
      return std::swap(program.steps[at], program.steps[other]);
    case kProgramSlice:
      return change_slice(program, step, random);
    case kProgramBuffer:
      return change_place(program, step, random);
    case kProgramFinalize:
      if (step.verb != Verb::fold || program.operands[step.first_operand].division == ProgramOperand::kNoData) return;
      step.finalize = !step.finalize;
      return;
    case kProgramLag:
      return change_lag(program, at, random);
    case kProgramTicket:
      if (step.verb != Verb::fold) step.pending = static_cast<uint16_t>(below(random, program.pendings.size()));
      return;
    case kProgramDepth:
      return below(random, 2) == 0 ? change_depth(program.pendings, random) : change_depth(program.stages, random);
    case kProgramVerb:
      if (step.verb != Verb::fold) step.verb = static_cast<Verb>(1 + below(random, 5));
      return;
  }
}

}  // namespace

std::span<const std::string_view> schedule_mutations() { return kScheduleNames; }
std::span<const std::string_view> program_mutations() { return kProgramNames; }

std::string_view mutate(Schedule& schedule, std::mt19937_64& random) {
  if (schedule.lanes.empty()) return "";
  const Schedule before = schedule;
  const auto mutation = static_cast<ScheduleMutation>(below(random, kScheduleNames.size()));
  Lane& lane = schedule.lanes[below(random, schedule.lanes.size())];
  if (lane.steps.empty()) return "";
  change_lane(mutation, lane, schedule.size, random);
  return schedule == before ? "" : kScheduleNames[mutation];
}

std::string_view mutate(Program& program, std::mt19937_64& random) {
  if (program.steps.empty()) return "";
  const Program before = program;
  const auto mutation = static_cast<ProgramMutation>(below(random, kProgramNames.size()));
  change_program(mutation, program, random);
  return print_text(program) == print_text(before) ? "" : kProgramNames[mutation];
}

}  // namespace tutti::mutants
