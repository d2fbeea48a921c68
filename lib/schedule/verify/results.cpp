// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// What every rank must hold at the end.
#include <fmt/format.h>

#include "machine.hpp"

namespace tutti {

/// Everything has arrived: what was not awaited within the program is by the engine, at the end.
Status Verifier::Machine::settle_all() {
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    for (size_t ring = 0; ring < job_[rank].pendings.size(); ++ring) {
      for (uint32_t& ticket : tickets_[ranks_[rank].first_ticket_ring + ring]) {
        if (ticket == kNone) continue;
        const Channel& channel = channels_[transfers_[ticket].channel];
        const uint32_t owner = transfers_[ticket].receives ? channel.receiver : channel.sender;
        if (settle(processes_[owner], ticket) != Outcome::done) return error(TUTTI_ERR_INTERNAL, "a transfer never ends");
      }
    }
  }
  return Status();
}

Status Verifier::Machine::judge_results() {
  TUTTI_TRY(settle_all());
  if (job_[0].collective == Collective::barrier) return judge_barrier();
  first_terms_.clear();
  for (uint32_t rank = 0; rank < job_.size(); ++rank) TUTTI_TRY(judge_rank(rank));
  return Status();
}

Status Verifier::Machine::judge_rank(uint32_t rank) {
  const Collective collective = job_[rank].collective;
  if (collective == Collective::exscan && rank == 0) return Status();
  const Memory& output = memory(rank, BufferId::output);
  for (uint32_t n = 0; n < output.length; ++n) {
    const uint64_t element = output.origin + n;
    const Value& value = cells_[output.first + n].value;
    if (value.term == Terms::kUndefined) return error(TUTTI_ERR_INTERNAL, "rank {}: element {} has no result", rank, element);
    if (reduces(collective)) {
      TUTTI_TRY(judge_reduction(rank, element, value));
      continue;
    }
    const Value wanted = moved_here(rank, element);
    if (value == wanted) continue;
    return error(TUTTI_ERR_INTERNAL, "rank {}: element {} is element {} of {}, not element {} of {}", rank, element,
                 value.element, terms_.text(value.term), wanted.element, terms_.text(wanted.term));
  }
  return Status();
}

/// Data movement: which rank's element is to be at `element` of this rank's output.
Verifier::Machine::Value Verifier::Machine::moved_here(uint32_t rank, uint64_t element) const {
  const Collective collective = job_[rank].collective;
  if (collective == Collective::broadcast || collective == Collective::scatter) {
    // A rank that does not know the other blocks counts its own from 0.
    const Memory& output = memory(rank, BufferId::output);
    uint64_t at_root = element - output.origin;
    for (uint32_t r = 0; collective == Collective::scatter && r < rank; ++r) {
      at_root += call_.counts.empty() ? call_.count : call_.counts[r];
    }
    return {Terms::leaf(call_.root), static_cast<uint32_t>(at_root)};
  }
  const auto count = [&](uint32_t from, uint32_t to) {
    if (call_.counts.empty()) return call_.count;
    return collective == Collective::alltoall ? call_.counts[size_t{from} * job_.size() + to] : call_.counts[from];
  };
  uint32_t source = 0;
  uint64_t offset = element;
  for (; offset >= count(source, rank); ++source) offset -= count(source, rank);
  // Its place in the source's own vector.
  uint64_t place = offset;
  if (collective == Collective::alltoall) {
    for (uint32_t to = 0; to < rank; ++to) place += count(source, to);
  } else {
    place += memory(source, BufferId::input).origin;
  }
  return {Terms::leaf(source), static_cast<uint32_t>(place)};
}

Status Verifier::Machine::judge_reduction(uint32_t rank, uint64_t element, const Value& value) {
  const auto wrong = [&](std::string_view why) {
    return error(TUTTI_ERR_INTERNAL, "rank {}: element {} is {}: {}", rank, element, terms_.text(value.term), why);
  };
  if (value.element != element) return wrong(fmt::format("it holds element {}", value.element));
  const Collective collective = job_[rank].collective;
  const bool prefix = collective == Collective::scan || collective == Collective::exscan;
  const uint32_t contributions =
      !prefix ? static_cast<uint32_t>(job_.size()) : collective == Collective::scan ? rank + 1 : rank;
  const Terms::Facts& facts = terms_.facts(value.term);
  if (facts.repeated) return wrong("a contribution is in it twice");
  if (facts.contributions < contributions) return wrong("a contribution is missing");
  if (facts.contributions > contributions || facts.highest >= contributions) return wrong("it has a contribution too many");
  if (!facts.finalized || facts.misfinalized) return wrong("it is not finalized exactly once, at the end");
  if (call_.rank_ordered && !facts.in_order) return wrong("it is not in rank order");
  if (call_.canonical && value.term != terms_.finalize(terms_.canonical(contributions))) {
    return wrong("it is not the association of deterministic mode");
  }
  if (prefix) return Status();
  if (first_terms_.size() <= element) first_terms_.resize(element + 1, Terms::kUndefined);
  uint32_t& first = first_terms_[element];
  if (first == Terms::kUndefined) first = value.term;
  return first == value.term ? Status() : wrong(fmt::format("another rank has {}", terms_.text(first)));
}

Status Verifier::Machine::judge_barrier() const {
  for (uint32_t rank = 0; rank < job_.size(); ++rank) {
    for (uint32_t other = 0; other < job_.size(); ++other) {
      bool heard = rank == other;
      for (size_t lane = 0; lane < job_[rank].lanes.size(); ++lane) {
        const size_t process = ranks_[rank].first_process + lane;
        heard |= (heard_[process * heard_words_ + other / 64] >> (other % 64) & 1) != 0;
      }
      if (!heard) return error(TUTTI_ERR_INTERNAL, "rank {} may end before rank {} begins", rank, other);
    }
  }
  return Status();
}

}  // namespace tutti
