// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "schedule/program.hpp"

namespace tutti {

/// Finds those of many operands that may overlap a given one, so that lowering need not compare each with each: a ring of
/// thousands of ranks touches every part of its vector twice. A slice of many parts is entered under each; those occur in few
/// steps.
class TouchIndex {
 public:
  /// alias: input and output may be the same memory.
  explicit TouchIndex(bool alias) : alias_(alias) {}

  void add(const ProgramOperand& operand, uint32_t place) {
    if (!has_bytes(operand)) return;
    Memory& memory = memories_[key(operand)];
    Cuts& cuts = memory[operand.division];
    if (operand.kind == ProgramOperand::Kind::staged) {
      cuts.all.push_back(place);
      return;
    }
    if (cuts.by_part.size() < operand.last) cuts.by_part.resize(operand.last);
    for (uint32_t part = operand.first; part < operand.last; ++part) cuts.by_part[part].push_back(place);
    cuts.all.push_back(place);
  }

  /// visit(place) -> whether to go on: for all whose bytes overlap `operand`'s, some more than once, and for some that do not.
  template <class Visit>
  void each(const ProgramOperand& operand, Visit&& visit) const {
    if (!has_bytes(operand)) return;
    const auto memory = memories_.find(key(operand));
    if (memory == memories_.end()) return;
    for (const auto& [division, cuts] : memory->second) {
      const bool by_part = operand.kind == ProgramOperand::Kind::local && division == operand.division;
      if (!by_part) {  // bounds of different divisions compare differently for different counts
        for (const uint32_t place : cuts.all)
          if (!visit(place)) return;
        continue;
      }
      const uint32_t end = std::min<uint32_t>(operand.last, static_cast<uint32_t>(cuts.by_part.size()));
      for (uint32_t part = operand.first; part < end; ++part)
        for (const uint32_t place : cuts.by_part[part])
          if (!visit(place)) return;
    }
  }

 private:
  struct Cuts {
    std::vector<std::vector<uint32_t>> by_part;
    std::vector<uint32_t> all;
  };
  using Memory = std::map<uint16_t, Cuts>;  // by division

  static bool has_bytes(const ProgramOperand& operand) noexcept {
    return operand.division != ProgramOperand::kNoData && operand.kind != ProgramOperand::Kind::slot;
  }
  /// What lies in one memory.
  std::pair<ProgramOperand::Kind, uint32_t> key(const ProgramOperand& operand) const noexcept {
    if (operand.kind == ProgramOperand::Kind::staged) return {operand.kind, operand.index};
    const bool callers = operand.buffer == BufferId::input || operand.buffer == BufferId::output;
    return {operand.kind, static_cast<uint32_t>(alias_ && callers ? BufferId::input : operand.buffer)};
  }

  bool alias_;
  std::map<std::pair<ProgramOperand::Kind, uint32_t>, Memory> memories_;
};

}  // namespace tutti
