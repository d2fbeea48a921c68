// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// What one step of a program does to the symbolic memory and the channels.
#include <fmt/format.h>

#include <algorithm>

#include "machine.hpp"
#include "schedule/names.hpp"
#include "tutti/transport.h"

namespace tutti {

Verifier::Machine::Outcome Verifier::Machine::fault(std::string text) {
  fault_ = std::move(text);
  return Outcome::failed;
}

Verifier::Machine::Outcome Verifier::Machine::run_step(Process& process, const ProgramStep& step, uint64_t chunk) {
  switch (step.verb) {
    case Verb::fold:
      return fold(process, step, chunk);
    case Verb::post_send:
    case Verb::post_recv:
      return post(process, step, chunk);
    case Verb::await_sent:
    case Verb::await_received: {
      uint32_t& waited = ticket(process, step.pending, chunk);
      return waited == kNone ? Outcome::done : settle(process, waited);
    }
    case Verb::drain_sent:
      return chunk > 0 ? Outcome::done : drain(process, step.pending);
  }
  return fault("unknown verb");
}

uint32_t& Verifier::Machine::ticket(const Process& process, uint32_t pending, uint64_t chunk) {
  std::vector<uint32_t>& ring = tickets_[ranks_[process.rank].first_ticket_ring + pending];
  return ring[chunk & (ring.size() - 1)];
}

uint32_t Verifier::Machine::cell_of(const Process& process, uint32_t index, uint64_t chunk) const {
  const Program& program = job_[process.rank];
  const ProgramOperand& operand = program.operands[index];
  if (operand.kind == ProgramOperand::Kind::local) {
    const Memory& held = memory(process.rank, operand.buffer);
    return static_cast<uint32_t>(held.first + (extent(process, index).start - held.origin) + chunk * process.segment);
  }
  const StageCells& stage = stages_[ranks_[process.rank].first_stage + operand.index];
  const uint64_t segment = chunk & (program.stages[operand.index].depth - 1u);
  return static_cast<uint32_t>(stage.first_cell + segment * stage.stride);
}

/// The length of the step's chunk; all operands must have the same, as the engine looks at the first only.
Verifier::Machine::Outcome Verifier::Machine::check_length(const Process& process, const ProgramStep& step, uint64_t chunk,
                                                           uint32_t& length, bool& signal) {
  const uint32_t operands = operand_count(step);
  const uint64_t from = chunk * process.segment;
  for (uint32_t n = 0; n < operands; ++n) {
    const Extent& slice = extent(process, step.first_operand + n);
    const uint64_t left = from >= slice.length ? 0 : slice.length - from;
    const auto own_length = static_cast<uint32_t>(std::min(left, process.segment));
    if (n == 0) {
      length = own_length;
      signal = slice.signal;
    } else if (slice.signal != signal || own_length != length) {
      return fault(fmt::format("operands of {} and {} elements", length, own_length));
    }
  }
  const uint64_t segment_bytes = job_[process.rank].lanes[process.lane].segment_bytes;
  if (uint64_t{length} * call_.element_bytes > segment_bytes) {
    return fault(fmt::format("a chunk of {} elements does not fit into a segment of {} bytes", length, segment_bytes));
  }
  return Outcome::done;
}

// ---- memory

bool Verifier::Machine::touch(const Process& process, Cell& cell, bool writes) {
  const auto own = static_cast<uint8_t>(process.lane + 1);
  const bool others_wrote = cell.writer != 0 && cell.writer != own;
  const bool others_read = cell.reader != 0 && cell.reader != own;
  if (others_wrote || (writes && others_read)) {
    fault("another lane uses the same bytes");
    return false;
  }
  if (writes) {
    cell.writer = own;
  } else {
    cell.reader = others_read ? kSeveral : own;
  }
  return true;
}

bool Verifier::Machine::read(const Process& process, uint32_t index) {
  Cell& cell = cells_[index];
  if (cell.receiving) {
    fault("reads bytes that a posted receive may still write");
    return false;
  }
  if (cell.value.term == Terms::kUndefined) {
    fault("reads bytes that nobody wrote");
    return false;
  }
  return touch(process, cell, false);
}

bool Verifier::Machine::write(const Process& process, uint32_t index) {
  Cell& cell = cells_[index];
  if (cell.receiving || cell.sending > 0) {
    fault(cell.receiving ? "writes bytes that a posted receive may still write"
                         : "writes bytes that a posted send may still read");
    return false;
  }
  const bool root = job_[process.rank].collective == Collective::broadcast && process.rank == call_.root;
  const Memory& output = memory(process.rank, BufferId::output);
  if (root && index >= output.first && index < output.first + output.length) {
    fault("writes the buffer of the broadcast's root");
    return false;
  }
  return touch(process, cell, true);
}

// ---- folds and slots

Verifier::Machine::Outcome Verifier::Machine::fold(Process& process, const ProgramStep& step, uint64_t chunk) {
  uint32_t length = 0;
  bool signal = false;
  if (check_length(process, step, chunk, length, signal) == Outcome::failed) return Outcome::failed;
  if (signal ? chunk > 0 : length == 0) return Outcome::done;
  bool failed = false;
  if (!slots_ready(process, step, failed, length)) return failed ? Outcome::failed : Outcome::blocked;
  if (!signal && fold_overlaps(process, step, chunk, length)) return fault("operands overlap");
  if (!signal && fold_values(process, step, chunk, length) == Outcome::failed) return Outcome::failed;
  publish_slots(process, step, length);
  return Outcome::done;
}

/// Whether every source slot has a message and every destination slot is free: the step is taken whole or not at all.
bool Verifier::Machine::slots_ready(Process& process, const ProgramStep& step, bool& failed, uint32_t length) {
  const Program& program = job_[process.rank];
  for (uint32_t n = 0; n < operand_count(step); ++n) {
    const ProgramOperand& operand = program.operands[step.first_operand + n];
    if (operand.kind != ProgramOperand::Kind::slot) continue;
    const Channel& channel = channels_[channel_of_[ranks_[process.rank].first_channel + operand.index]];
    process.waits_for = program.channels[operand.index].peer;
    if (n >= step.source_count) {
      if (channel.sent.size() - channel.released >= TUTTI_TP_MIN_SLOTS) return false;
      continue;
    }
    if (channel.sent.size() == channel.released) return false;
    const uint32_t got = channel.sent[channel.released].length;
    if (got == length) continue;
    fault(fmt::format("a message of {} elements from rank {} where {} are expected", got, process.waits_for, length));
    failed = true;
    return false;
  }
  return true;
}

/// A destination may be exactly a source; else nothing overlaps.
bool Verifier::Machine::fold_overlaps(const Process& process, const ProgramStep& step, uint64_t chunk, uint32_t length) const {
  const Program& program = job_[process.rank];
  const uint32_t operands = operand_count(step);
  for (uint32_t to = step.source_count; to < operands; ++to) {
    if (program.operands[step.first_operand + to].kind == ProgramOperand::Kind::slot) continue;
    const uint32_t written = cell_of(process, step.first_operand + to, chunk);
    for (uint32_t other = 0; other < to; ++other) {
      if (program.operands[step.first_operand + other].kind == ProgramOperand::Kind::slot) continue;
      const uint32_t used = cell_of(process, step.first_operand + other, chunk);
      const bool same_source = other < step.source_count && used == written;
      if (!same_source && used < written + length && written < used + length) return true;
    }
  }
  return false;
}

/// Leaves the results in the local destinations and, for slots, at the end of values_.
Verifier::Machine::Outcome Verifier::Machine::fold_values(Process& process, const ProgramStep& step, uint64_t chunk,
                                                          uint32_t length) {
  struct Place {
    bool slot;
    uint64_t first;  // value or cell
  };
  Place places[64];  // the structure check limits operands to that
  const Program& program = job_[process.rank];
  const uint32_t operands = operand_count(step);
  for (uint32_t n = 0; n < operands; ++n) {
    const ProgramOperand& operand = program.operands[step.first_operand + n];
    places[n] = {operand.kind == ProgramOperand::Kind::slot, 0};
    if (!places[n].slot) {
      places[n].first = cell_of(process, step.first_operand + n, chunk);
    } else if (n < step.source_count) {
      const Channel& channel = channels_[channel_of_[ranks_[process.rank].first_channel + operand.index]];
      places[n].first = channel.sent[channel.released].first_value;
    }
  }
  const uint64_t result = values_.size();
  values_.resize(result + length);
  std::vector<uint32_t>& terms = fold_terms_;
  terms.assign(size_t{step.source_count} * 2, Terms::kUndefined);  // now, and of the element before
  uint32_t* const before = terms.data() + step.source_count;
  uint32_t folded = Terms::kUndefined;
  for (uint32_t i = 0; i < length; ++i) {
    for (uint32_t n = 0; n < step.source_count; ++n) {
      if (!places[n].slot && !read(process, static_cast<uint32_t>(places[n].first + i))) return Outcome::failed;
      const Value& value = places[n].slot ? values_[places[n].first + i] : cells_[places[n].first + i].value;
      terms[n] = value.term;
      if (n == 0) values_[result + i].element = value.element;
      if (value.element != values_[result + i].element) return fault("folds different elements");
    }
    if (folded == Terms::kUndefined || !std::equal(terms.data(), before, before)) {
      folded = terms_.fold(terms.data(), step.source_count);
      if (step.finalize) folded = terms_.finalize(folded);
      std::copy_n(terms.data(), step.source_count, before);
    }
    values_[result + i].term = folded;
  }
  for (uint32_t n = step.source_count; n < operands; ++n) {
    for (uint32_t i = 0; !places[n].slot && i < length; ++i) {
      if (!write(process, static_cast<uint32_t>(places[n].first + i))) return Outcome::failed;
      cells_[places[n].first + i].value = values_[result + i];
    }
  }
  return Outcome::done;
}

void Verifier::Machine::publish_slots(Process& process, const ProgramStep& step, uint32_t length) {
  const Program& program = job_[process.rank];
  const uint32_t operands = operand_count(step);
  for (uint32_t n = 0; n < operands; ++n) {  // sources first: what is heard is passed on
    const ProgramOperand& operand = program.operands[step.first_operand + n];
    if (operand.kind != ProgramOperand::Kind::slot) continue;
    Channel& channel = channels_[channel_of_[ranks_[process.rank].first_channel + operand.index]];
    if (n < step.source_count) {
      hear(process, channel.sent[channel.released++]);
      wake(channel.sender);
    } else {
      channel.sent.push_back(new_message(process, length));
      wake(channel.receiver);
    }
  }
}

/// Of the values last appended.
Verifier::Machine::Message Verifier::Machine::new_message(const Process& process, uint32_t length) {
  Message message;
  message.first_value = values_.size() - length;
  message.length = length;
  if (heard_words_ == 0) return message;
  message.first_heard = heard_of_messages_.size();
  const auto own = heard_.begin() + (&process - processes_.data()) * heard_words_;
  heard_of_messages_.insert(heard_of_messages_.end(), own, own + heard_words_);
  return message;
}

void Verifier::Machine::hear(const Process& process, const Message& message) {
  const auto own = static_cast<size_t>(&process - processes_.data()) * heard_words_;
  for (uint32_t word = 0; word < heard_words_; ++word) heard_[own + word] |= heard_of_messages_[message.first_heard + word];
}

// ---- transfers

Verifier::Machine::Outcome Verifier::Machine::post(Process& process, const ProgramStep& step, uint64_t chunk) {
  uint32_t length = 0;
  bool signal = false;
  if (check_length(process, step, chunk, length, signal) == Outcome::failed) return Outcome::failed;
  if (signal ? chunk > 0 : length == 0) return Outcome::done;
  uint32_t& used = ticket(process, step.pending, chunk);
  if (used != kNone) {
    if (const Outcome outcome = settle(process, used); outcome != Outcome::done) return outcome;
  }
  Transfer transfer;
  transfer.first_cell = length == 0 ? 0 : cell_of(process, step.first_operand, chunk);
  transfer.length = length;
  transfer.channel = channel_of_[ranks_[process.rank].first_channel + step.channel];
  transfer.receives = step.verb == Verb::post_recv;
  return transfer.receives ? post_recv(process, transfer, used) : post_send(process, transfer, used);
}

Verifier::Machine::Outcome Verifier::Machine::post_send(Process& process, Transfer transfer, uint32_t& used) {
  for (uint32_t cell = transfer.first_cell; cell < transfer.first_cell + transfer.length; ++cell) {
    if (!read(process, cell)) return Outcome::failed;
    ++cells_[cell].sending;
    // Nobody may write them until the transfer ends: they are now what they will be when the peer gets them.
    values_.push_back(cells_[cell].value);
  }
  Channel& channel = channels_[transfer.channel];
  transfer.number = static_cast<uint32_t>(channel.sent.size());
  used = static_cast<uint32_t>(transfers_.size());
  transfers_.push_back(transfer);
  Message message = new_message(process, transfer.length);
  message.transfer = used;
  channel.sent.push_back(message);
  return match(transfer.channel, transfer.number) ? Outcome::done : Outcome::failed;
}

Verifier::Machine::Outcome Verifier::Machine::post_recv(Process& process, Transfer transfer, uint32_t& used) {
  for (uint32_t cell = transfer.first_cell; cell < transfer.first_cell + transfer.length; ++cell) {
    if (!write(process, cell)) return Outcome::failed;
    cells_[cell].receiving = true;
  }
  Channel& channel = channels_[transfer.channel];
  transfer.number = static_cast<uint32_t>(channel.receives.size());
  used = static_cast<uint32_t>(transfers_.size());
  transfers_.push_back(transfer);
  channel.receives.push_back(used);
  return match(transfer.channel, transfer.number) ? Outcome::done : Outcome::failed;
}

/// Nothing is buffered: both transfers end when both are posted.
bool Verifier::Machine::match(uint32_t channel_index, size_t number) {
  Channel& channel = channels_[channel_index];
  if (number >= channel.sent.size() || number >= channel.receives.size()) return true;
  Transfer& sent = transfers_[channel.sent[number].transfer];
  Transfer& received = transfers_[channel.receives[number]];
  if (sent.length != received.length) {
    fault(fmt::format("rank {} sends {} elements where rank {} expects {}", processes_[channel.sender].rank, sent.length,
                      processes_[channel.receiver].rank, received.length));
    return false;
  }
  sent.done = received.done = true;
  wake(channel.sender);
  wake(channel.receiver);
  return true;
}

Verifier::Machine::Outcome Verifier::Machine::drain(Process& process, uint32_t pending) {
  for (uint32_t& used : tickets_[ranks_[process.rank].first_ticket_ring + pending]) {
    if (used == kNone) continue;
    if (const Outcome outcome = settle(process, used); outcome != Outcome::done) return outcome;
  }
  return Outcome::done;
}

Verifier::Machine::Outcome Verifier::Machine::settle(Process& process, uint32_t& used) {
  Transfer& transfer = transfers_[used];
  Channel& channel = channels_[transfer.channel];
  if (!transfer.done) {
    const uint32_t peer = transfer.receives ? channel.sender : channel.receiver;
    process.waits_for = peer == kNone ? kNone : processes_[peer].rank;
    return Outcome::blocked;
  }
  used = kNone;
  if (transfer.receives) hear(process, channel.sent[transfer.number]);
  for (uint32_t n = 0; n < transfer.length; ++n) {
    Cell& cell = cells_[transfer.first_cell + n];
    if (transfer.receives) {
      cell.receiving = false;
      cell.value = values_[channel.sent[transfer.number].first_value + n];
    } else {
      --cell.sending;
    }
  }
  return Outcome::done;
}

}  // namespace tutti
