// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule/print.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/types.hpp"
#include "schedule/names.hpp"
#include "tutti/transport.h"

namespace tutti {
namespace {

/// "" for all, "[3/8]" for the third of 8 parts, "[2..5/8]" for parts 2, 3 and 4; "[block 3/8]" where the call says how long.
std::string slice_text(uint32_t first, uint32_t last, const Division& division) {
  if (division == Division{} && first == 0 && last == 1) return "";
  const std::string_view kind = division.cut == Cut::even ? "" : division.cut == Cut::blocks ? "block " : "received ";
  if (last == first + 1) return fmt::format("[{}{}/{}]", kind, first, division.parts);
  return fmt::format("[{}{}..{}/{}]", kind, first, last, division.parts);
}

std::string operand_text(const Operand& operand, bool source) {
  const Slice& slice = operand.slice;
  const bool signal = slice.parts == 0;
  if (operand.kind == Operand::Kind::message) {
    return fmt::format("{} {} {}", signal ? "signal" : "message", source ? "from" : "to", operand.peer);
  }
  if (signal) return "nothing";
  return fmt::format("{}{}", name(operand.buffer), slice_text(slice.first, slice.last, {slice.cut, slice.parts}));
}

std::string step_text(const Step& step) {
  std::string text;
  for (const Operand& operand : step.destinations) {
    text.append(text.empty() ? "" : ", ").append(operand_text(operand, false));
  }
  text += " = ";
  for (size_t n = 0; n < step.sources.size(); ++n) text.append(n == 0 ? "" : " op ").append(operand_text(step.sources[n], true));
  if (step.finalize) text += ", finalized";
  return text;
}

std::string operand_text(const Program& program, const ProgramOperand& operand) {
  std::string text;
  switch (operand.kind) {
    case ProgramOperand::Kind::local:
      text = name(operand.buffer);
      break;
    case ProgramOperand::Kind::slot:
      text = fmt::format("slot of channel {}", operand.index);
      break;
    case ProgramOperand::Kind::staged:
      text = fmt::format("staged {}", operand.index);
      break;
  }
  if (operand.division == ProgramOperand::kNoData) {
    return operand.kind == ProgramOperand::Kind::slot ? text + " (signal)" : "nothing";
  }
  return text + slice_text(operand.first, operand.last, program.divisions[operand.division]);
}

std::string fold_text(const Program& program, const ProgramStep& step) {
  std::string text;
  const ProgramOperand* operands = program.operands.data() + step.first_operand;
  for (uint32_t n = 0; n < step.destination_count; ++n) {
    text.append(n == 0 ? "" : ", ").append(operand_text(program, operands[step.source_count + n]));
  }
  text += " = ";
  for (uint32_t n = 0; n < step.source_count; ++n) {
    text.append(n == 0 ? "" : " op ").append(operand_text(program, operands[n]));
  }
  if (step.finalize) text += ", finalized";
  return text;
}

std::string step_text(const Program& program, const ProgramStep& step) {
  if (step.verb == Verb::fold) return fold_text(program, step);
  if (step.verb == Verb::drain_sent) return fmt::format("ticket {}", step.pending);
  std::string text = operand_text(program, program.operands[step.first_operand]);
  if (step.verb == Verb::post_send) text += fmt::format(" to channel {}", step.channel);
  if (step.verb == Verb::post_recv) text += fmt::format(" from channel {}", step.channel);
  return text + fmt::format("  ticket {}", step.pending);
}

/// Steps of one rank as the first chunk meets them, so that the n-th message sent is the n-th received.
std::vector<std::pair<size_t, size_t>> in_order(const Schedule& schedule) {
  std::vector<std::pair<size_t, size_t>> order;  // (lane, step)
  for (size_t lane = 0; lane < schedule.lanes.size(); ++lane) {
    for (size_t n = 0; n < schedule.lanes[lane].steps.size(); ++n) order.emplace_back(lane, n);
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    const auto key = [&](const auto& at) {
      const Step& step = schedule.lanes[at.first].steps[at.second];
      return std::make_tuple(at.first, step.loop, step.lag);
    };
    return key(a) < key(b);
  });
  return order;
}

std::string node_name(uint32_t rank, const std::pair<size_t, size_t>& at) {
  return fmt::format("r{}_{}_{}", rank, at.first, at.second);
}

void print_rank(const Schedule& schedule, std::string& text) {
  text += fmt::format("  subgraph cluster_{0} {{\n    label=\"rank {0}\";\n", schedule.rank);
  const auto order = in_order(schedule);
  for (size_t n = 0; n < order.size(); ++n) {
    const Step& step = schedule.lanes[order[n].first].steps[order[n].second];
    text += fmt::format("    {} [label=\"{}\"];\n", node_name(schedule.rank, order[n]), step_text(step));
    if (n == 0 || order[n - 1].first != order[n].first) continue;
    text +=
        fmt::format("    {} -> {} [style=dotted];\n", node_name(schedule.rank, order[n - 1]), node_name(schedule.rank, order[n]));
  }
  text += "  }\n";
}

}  // namespace

std::string print_text(const Schedule& schedule) {
  std::string text = fmt::format("{}, rank {} of {}\n", name(schedule.collective), schedule.rank, schedule.size);
  for (size_t n = 0; n < schedule.lanes.size(); ++n) {
    const Lane& lane = schedule.lanes[n];
    text += fmt::format("  lane {}, chunks {}\n", n,
                        lane.segment_bytes == 0 ? "as long as the transport allows" : "of " + format_bytes(lane.segment_bytes));
    uint16_t loop = 0;
    for (const Step& step : lane.steps) {
      if (step.loop != loop) text += "   then\n";
      loop = step.loop;
      text += fmt::format("    lag {:<4}{}\n", step.lag, step_text(step));
    }
  }
  return text;
}

std::string print_text(const Program& program) {
  std::string text = fmt::format("{}, program of rank {} of {}\n", name(program.collective), program.rank, program.size);
  for (size_t n = static_cast<size_t>(BufferId::scratch); n < kBufferCount; ++n) {
    const ProgramWindow& held = program.windows[n];
    if (held.division == ProgramOperand::kNoData) continue;
    const std::string part = slice_text(held.first, held.last, program.divisions[held.division]);
    text += fmt::format("  {} as large as input{}\n", name(static_cast<BufferId>(n)), part);
  }
  for (size_t n = 0; n < program.channels.size(); ++n) {
    const ProgramChannel& channel = program.channels[n];
    text += fmt::format("  channel {}: {} rank {}, by {}, lane {}\n", n, channel.direction == TUTTI_TP_SEND ? "to" : "from",
                        channel.peer, name(channel.carrier), channel.lane);
  }
  for (size_t n = 0; n < program.stages.size(); ++n) {
    text += fmt::format("  staged {}: {} segments, lane {}\n", n, program.stages[n].depth, program.stages[n].lane);
  }
  for (size_t n = 0; n < program.pendings.size(); ++n) {
    text += fmt::format("  ticket {}: {} in flight\n", n, program.pendings[n].depth);
  }
  for (size_t l = 0; l < program.lanes.size(); ++l) {
    const ProgramLane& lane = program.lanes[l];
    text += fmt::format("  lane {}, segments of {}\n", l, format_bytes(lane.segment_bytes));
    uint32_t number = 0;
    for (uint32_t loop = lane.first_loop; loop < lane.first_loop + lane.loop_count; ++loop) {
      if (loop != lane.first_loop) text += "   then\n";
      for (uint32_t n = 0; n < program.loops[loop].step_count; ++n) {
        const ProgramStep& step = program.steps[program.loops[loop].first_step + n];
        text += fmt::format("    {:<4}lag {:<4}{:<16}{}\n", number++, step.lag, name(step.verb), step_text(program, step));
      }
    }
  }
  return text;
}

std::string print_dot(std::span<const Schedule> job) {
  std::string text = "digraph schedule {\n  rankdir=TB;\n  node [shape=box, fontsize=10];\n";
  std::map<std::tuple<size_t, uint32_t, uint32_t>, std::vector<std::string>> sent;  // (lane, from, to)
  for (const Schedule& schedule : job) {
    print_rank(schedule, text);
    for (const auto& at : in_order(schedule)) {
      for (const Operand& operand : schedule.lanes[at.first].steps[at.second].destinations) {
        if (operand.kind != Operand::Kind::message) continue;
        sent[{at.first, schedule.rank, operand.peer}].push_back(node_name(schedule.rank, at));
      }
    }
  }
  std::map<std::tuple<size_t, uint32_t, uint32_t>, size_t> received;
  for (const Schedule& schedule : job) {
    for (const auto& at : in_order(schedule)) {
      for (const Operand& operand : schedule.lanes[at.first].steps[at.second].sources) {
        if (operand.kind != Operand::Kind::message) continue;
        const auto key = std::make_tuple(at.first, operand.peer, schedule.rank);
        const size_t number = received[key]++;
        if (number >= sent[key].size()) continue;  // a faulty schedule: nothing to draw
        text += fmt::format("  {} -> {};\n", sent[key][number], node_name(schedule.rank, at));
      }
    }
  }
  return text + "}\n";
}

}  // namespace tutti
