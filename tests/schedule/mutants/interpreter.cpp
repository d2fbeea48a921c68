// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter.hpp"

#include <algorithm>
#include <bit>

#include "tutti/transport.h"

namespace tutti::mutants {
namespace {

constexpr size_t kNoTicket = SIZE_MAX;

uint64_t scrambled(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccd;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

}  // namespace

Interpreter::Interpreter(std::span<const Program> job, const Call& call, uint64_t seed)
    : job_(job),
      call_(call),
      random_(seed),
      slowest_(static_cast<uint32_t>(seed % job.size())),
      buffers_(random_() % 2 == 0),
      ranks_(job.size()) {
  for (uint32_t rank = 0; rank < job.size(); ++rank) set_up_rank(rank);
}

void Interpreter::set_up_rank(uint32_t rank) {
  const Program& program = job_[rank];
  Rank& own = ranks_[rank];
  set_up_memory(rank);
  for (const ProgramLane& lane : program.lanes) set_up_lane(rank, lane);
  for (const Stage& stage : program.stages) {
    const Lane& lane = own.lanes[stage.lane];
    own.stages.emplace_back(std::min(lane.segment, lane.longest) * stage.depth);
    for (Number& number : own.stages.back()) number = random_number();
  }
  for (const PendingRing& ring : program.pendings) own.tickets.emplace_back(ring.depth, kNoTicket);
  for (const ProgramChannel& channel : program.channels) {
    const bool sends = channel.direction == TUTTI_TP_SEND;
    own.channels.push_back(channel_index(channel.lane, sends ? rank : channel.peer, sends ? channel.peer : rank));
  }
}

void Interpreter::set_up_memory(uint32_t rank) {
  const Program& program = job_[rank];
  Rank& own = ranks_[rank];
  for (size_t n = 0; n < kBufferCount; ++n) {
    const ProgramWindow& held = program.windows[n];
    if (held.division == ProgramOperand::kNoData) continue;
    const uint64_t origin = bound(rank, held.division, held.first);
    own.memory[n] = {&own.store[n], 0, origin, bound(rank, held.division, held.last) - origin};
    own.store[n].resize(own.memory[n].length);
    for (Number& number : own.store[n]) number = random_number();
  }
  Memory& input = own.memory[0];
  Memory& output = own.memory[1];
  if (call_.in_place && program.collective != Collective::alltoall && input.numbers != nullptr && output.numbers != nullptr) {
    Memory& larger = input.length >= output.length ? input : output;
    Memory& smaller = input.length >= output.length ? output : input;
    smaller.numbers = larger.numbers;
    smaller.first = smaller.origin - larger.origin;
  }
  Memory& given = own.memory[program.collective == Collective::broadcast ? 1 : 0];
  for (uint64_t n = 0; n < given.length; ++n) {
    (*given.numbers)[given.first + n] = contribution(rank, given.origin + n);
  }
}

void Interpreter::set_up_lane(uint32_t rank, const ProgramLane& lane) {
  Lane state;
  state.segment = std::max<uint64_t>(1, lane.segment_bytes / call_.element_bytes);
  for (uint32_t n = 0; n < lane.loop_count; ++n) set_up_loop(rank, state, job_[rank].loops[lane.first_loop + n]);
  ranks_[rank].lanes.push_back(std::move(state));
}

void Interpreter::set_up_loop(uint32_t rank, Lane& lane, const ProgramLoop& loop) {
  const Program& program = job_[rank];
  uint64_t longest = 0;
  bool signals = false;
  for (uint32_t n = loop.first_step; n < loop.first_step + loop.step_count; ++n) {
    for (uint32_t o = 0; o < operand_count(program.steps[n]); ++o) {
      const ProgramOperand& operand = program.operands[program.steps[n].first_operand + o];
      if (operand.division == ProgramOperand::kNoData) {
        signals = true;
      } else {
        longest = std::max(longest, length_of(rank, operand));
      }
    }
  }
  lane.iterations.push_back(std::max<uint64_t>((longest + lane.segment - 1) / lane.segment, signals ? 1 : 0));
  lane.longest = std::max(lane.longest, longest);
}

uint32_t Interpreter::channel_index(uint16_t lane, uint32_t from, uint32_t to) {
  for (uint32_t n = 0; n < channels_.size(); ++n) {
    if (channels_[n].lane == lane && channels_[n].from == from && channels_[n].to == to) return n;
  }
  channels_.push_back({lane, from, to, {}, {}, 0});
  return static_cast<uint32_t>(channels_.size() - 1);
}

Interpreter::Number Interpreter::random_number() { return {random_(), random_(), random_(), random_()}; }

Interpreter::Number Interpreter::contribution(uint32_t rank, uint64_t element) {
  const uint64_t seed = scrambled(element * 1000003 + rank + 1);
  return {scrambled(seed + 1), scrambled(seed + 2) | 1, scrambled(seed + 3), scrambled(seed + 4)};
}

Interpreter::Number Interpreter::fold(const Number& a, const Number& b) {
  return {a.sum + b.sum, a.scale * b.scale, a.scale * b.offset + a.offset, scrambled(a.hash * 3 + scrambled(b.hash))};
}

/// Neither twice the same as once, nor the same before a fold as after it.
Interpreter::Number Interpreter::finalized(Number number) {
  return {number.sum * 0x9e3779b97f4a7c15 + 1, number.scale, number.offset, scrambled(number.hash + 5)};
}

Interpreter::Progress Interpreter::wrong(std::string why) {
  why_ = std::move(why);
  return Progress::wrong;
}

std::string Interpreter::run() {
  std::vector<Actor> actors;
  std::vector<Actor> slowest;  // act only when nobody else can
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    std::vector<Actor>& group = rank == slowest_ ? slowest : actors;
    for (uint32_t lane = 0; lane < ranks_[rank].lanes.size(); ++lane) group.push_back({rank, lane});
    group.push_back({rank, kEnd});
  }
  for (uint32_t n = 0; n < channels_.size(); ++n) actors.push_back({n, kChannel});
  while (true) {
    Progress progress = act_one_of(actors);
    if (progress == Progress::blocked) progress = act_one_of(slowest);
    if (progress == Progress::wrong) return why_;
    if (progress == Progress::blocked) break;
  }
  for (const Rank& rank : ranks_) {
    if (!rank.ended) return "deadlock";
  }
  for (const Channel& channel : channels_) {
    if (channel.next != channel.sent.size()) return "a message is left over";
  }
  return judge();
}

/// The first that can act, in random order.
Interpreter::Progress Interpreter::act_one_of(std::vector<Actor>& actors) {
  for (size_t left = actors.size(); left > 0; --left) {
    std::swap(actors[left - 1], actors[random_.below(left)]);
    const Progress progress = act(actors[left - 1]);
    if (progress != Progress::blocked) return progress;
  }
  return Progress::blocked;
}

Interpreter::Progress Interpreter::act(const Actor& actor) {
  if (actor.lane == kChannel) return move_channel(channels_[actor.rank]);
  if (actor.lane == kEnd) return end_rank(actor.rank);
  Rank& own = ranks_[actor.rank];
  if (own.lanes[actor.lane].done) return Progress::blocked;
  own.begun = true;
  return step_lane(actor.rank, own.lanes[actor.lane], job_[actor.rank].lanes[actor.lane]);
}

Interpreter::Progress Interpreter::step_lane(uint32_t rank, Lane& lane, const ProgramLane& program_lane) {
  for (; lane.loop < program_lane.loop_count; ++lane.loop) {
    if (const Progress progress = step_loop(rank, lane, job_[rank].loops[program_lane.first_loop + lane.loop]); !lane.done) {
      return progress;
    }
    lane.done = false;
    lane.iteration = lane.step = 0;
  }
  lane.done = true;
  return Progress::moved;
}

/// lane.done: there was nothing left of the loop.
Interpreter::Progress Interpreter::step_loop(uint32_t rank, Lane& lane, const ProgramLoop& loop) {
  const uint64_t iterations = lane.iterations[lane.loop];
  const uint64_t end = iterations == 0 ? 0 : iterations + loop.max_lag;
  while (lane.iteration < end) {
    for (; lane.step < loop.step_count; ++lane.step) {
      const ProgramStep& step = job_[rank].steps[loop.first_step + lane.step];
      if (lane.iteration < step.lag || lane.iteration - step.lag >= iterations) continue;
      const Progress progress = run_step(rank, lane, step, lane.iteration - step.lag);
      if (progress == Progress::moved) ++lane.step;
      return progress;
    }
    lane.step = 0;
    ++lane.iteration;
  }
  lane.done = true;
  return Progress::moved;
}

Interpreter::Progress Interpreter::end_rank(uint32_t rank) {
  Rank& own = ranks_[rank];
  if (own.ended) return Progress::blocked;
  if (own.lanes.empty()) own.begun = true;
  for (const Lane& lane : own.lanes) {
    if (!lane.done) return Progress::blocked;
  }
  for (std::vector<size_t>& ring : own.tickets) {
    for (size_t& ticket : ring) {
      if (ticket != kNoTicket && settle(rank, ticket) == Progress::blocked) return Progress::blocked;
    }
  }
  own.ended = true;
  if (job_[rank].collective != Collective::barrier) return Progress::moved;
  for (const Rank& other : ranks_) {
    if (!other.begun) return wrong("a rank left the barrier before another came");
  }
  return Progress::moved;
}

/// The length of a block, as far as the rank knows.
uint64_t Interpreter::count_of(uint32_t rank, Cut cut, uint32_t block) const {
  if (call_.counts.empty()) return call_.count;
  const Collective collective = job_[rank].collective;
  const size_t size = job_.size();
  if (collective == Collective::alltoall) {
    return call_.counts[cut == Cut::blocks ? rank * size + block : block * size + rank];
  }
  const bool hidden = collective == Collective::gather || collective == Collective::scatter;
  return hidden && block != rank && rank != call_.root ? 0 : call_.counts[block];
}

uint64_t Interpreter::bound(uint32_t rank, uint16_t division, uint32_t part) const {
  const Division& cut = job_[rank].divisions[division];
  const auto even = [](uint64_t count, uint64_t parts, uint64_t index) {
    return index * (count / parts) + std::min(index, count % parts);
  };
  if (cut.cut == Cut::even) return even(call_.count, cut.parts, part);
  const auto shares = static_cast<uint32_t>(cut.parts / job_.size());
  uint64_t start = 0;
  for (uint32_t block = 0; block < part / shares; ++block) start += count_of(rank, cut.cut, block);
  return part % shares == 0 ? start : start + even(count_of(rank, cut.cut, part / shares), shares, part % shares);
}

uint64_t Interpreter::chunk_length(uint32_t rank, const Lane& lane, const ProgramOperand& operand, uint64_t chunk) const {
  const uint64_t length = length_of(rank, operand);
  const uint64_t from = chunk * lane.segment;
  return from >= length ? 0 : std::min(lane.segment, length - from);
}

Interpreter::Number* Interpreter::place(uint32_t rank, const Lane& lane, const ProgramOperand& operand, uint64_t chunk,
                                        uint64_t length) {
  Rank& own = ranks_[rank];
  if (operand.kind == ProgramOperand::Kind::staged) {
    const uint64_t depth = job_[rank].stages[operand.index].depth;
    std::vector<Number>& stage = own.stages[operand.index];
    const uint64_t stride = stage.size() / depth;
    return length <= stride ? stage.data() + (chunk % depth) * stride : nullptr;
  }
  const Memory& memory = own.memory[static_cast<size_t>(operand.buffer)];
  const uint64_t from = bound(rank, operand.division, operand.first) + chunk * lane.segment;
  if (from < memory.origin || from + length > memory.origin + memory.length) return nullptr;
  return memory.numbers->data() + memory.first + (from - memory.origin);
}

Interpreter::Progress Interpreter::run_step(uint32_t rank, Lane& lane, const ProgramStep& step, uint64_t chunk) {
  if (step.verb == Verb::await_sent || step.verb == Verb::await_received) {
    std::vector<size_t>& ring = ranks_[rank].tickets[step.pending];
    size_t& ticket = ring[chunk % ring.size()];
    return ticket == kNoTicket ? Progress::moved : settle(rank, ticket);
  }
  if (step.verb == Verb::drain_sent) {
    for (size_t& ticket : ranks_[rank].tickets[step.pending]) {
      if (chunk == 0 && ticket != kNoTicket && settle(rank, ticket) == Progress::blocked) return Progress::blocked;
    }
    return Progress::moved;
  }
  return step.verb == Verb::fold ? run_fold(rank, lane, step, chunk) : run_post(rank, lane, step, chunk);
}

Interpreter::Progress Interpreter::run_fold(uint32_t rank, Lane& lane, const ProgramStep& step, uint64_t chunk) {
  const ProgramOperand* operands = job_[rank].operands.data() + step.first_operand;
  const bool signal = operands[0].division == ProgramOperand::kNoData;
  const uint64_t length = signal ? 0 : chunk_length(rank, lane, operands[0], chunk);
  if (signal ? chunk > 0 : length == 0) return Progress::moved;
  std::vector<const Number*> sources;
  for (uint32_t n = 0; n < operand_count(step); ++n) {
    if (operands[n].kind == ProgramOperand::Kind::slot) {
      const Channel& channel = channels_[ranks_[rank].channels[operands[n].index]];
      const size_t waiting = channel.sent.size() - channel.next;
      if (n >= step.source_count ? waiting >= TUTTI_TP_MIN_SLOTS : waiting == 0) return Progress::blocked;
      if (n >= step.source_count) continue;
      if (channel.sent[channel.next].payload.size() != length) return wrong("a message of another length");
      sources.push_back(channel.sent[channel.next].payload.data());
    } else if (n < step.source_count) {
      sources.push_back(signal ? nullptr : place(rank, lane, operands[n], chunk, length));
      if (!signal && sources.back() == nullptr) return wrong("out of bounds");
    }
  }
  std::vector<Number> result(length);
  for (uint64_t i = 0; i < length; ++i) {
    result[i] = sources[0][i];
    for (size_t n = 1; n < sources.size(); ++n) result[i] = fold(result[i], sources[n][i]);
    if (step.finalize) result[i] = finalized(result[i]);
  }
  for (uint32_t n = 0; n < operand_count(step); ++n) {
    if (operands[n].kind == ProgramOperand::Kind::slot) {
      Channel& channel = channels_[ranks_[rank].channels[operands[n].index]];
      if (n < step.source_count) {
        ++channel.next;
      } else {
        channel.sent.push_back({result, kNoTicket});
      }
    } else if (n >= step.source_count && !signal) {
      Number* to = place(rank, lane, operands[n], chunk, length);
      if (to == nullptr) return wrong("out of bounds");
      std::copy(result.begin(), result.end(), to);
    }
  }
  return Progress::moved;
}

Interpreter::Progress Interpreter::run_post(uint32_t rank, Lane& lane, const ProgramStep& step, uint64_t chunk) {
  const ProgramOperand& operand = job_[rank].operands[step.first_operand];
  const bool signal = operand.division == ProgramOperand::kNoData;
  const uint64_t length = signal ? 0 : chunk_length(rank, lane, operand, chunk);
  if (signal ? chunk > 0 : length == 0) return Progress::moved;
  std::vector<size_t>& ring = ranks_[rank].tickets[step.pending];
  size_t& ticket = ring[chunk % ring.size()];
  if (ticket != kNoTicket && settle(rank, ticket) == Progress::blocked) return Progress::blocked;
  Transfer transfer;
  transfer.rank = rank;
  transfer.channel = ranks_[rank].channels[step.channel];
  transfer.length = length;
  transfer.receives = step.verb == Verb::post_recv;
  transfer.bytes = signal ? nullptr : place(rank, lane, operand, chunk, length);
  if (!signal && transfer.bytes == nullptr) return wrong("out of bounds");
  Channel& channel = channels_[transfer.channel];
  transfer.number = transfer.receives ? channel.receives.size() : channel.sent.size();
  ticket = transfers_.size();
  if (transfer.receives) {
    channel.receives.push_back(ticket);
    for (uint64_t i = 0; i < length; ++i) transfer.bytes[i] = random_number();
  } else {
    channel.sent.push_back({{}, ticket});
  }
  transfers_.push_back(transfer);
  return Progress::moved;
}

Interpreter::Progress Interpreter::settle(uint32_t, size_t& ticket) {
  if (!transfers_[ticket].done) return Progress::blocked;
  ticket = kNoTicket;
  return Progress::moved;
}

/// Takes bytes out of the sender's memory, or puts them into the receiver's.
Interpreter::Progress Interpreter::move_channel(Channel& channel) {
  if (channel.next >= channel.sent.size() || channel.sent[channel.next].transfer == kNoTicket) return Progress::blocked;
  Message& message = channel.sent[channel.next];
  Transfer& sent = transfers_[message.transfer];
  const bool awaited = channel.next < channel.receives.size();
  if (!awaited && (!buffers_ || sent.captured)) return Progress::blocked;
  if (!sent.captured) {
    message.payload.assign(sent.bytes, sent.bytes + sent.length);
    sent.captured = true;
    sent.done = buffers_;
    return Progress::moved;
  }
  Transfer& received = transfers_[channel.receives[channel.next]];
  if (received.length != message.payload.size()) return wrong("a message of another length");
  std::copy(message.payload.begin(), message.payload.end(), received.bytes);
  sent.done = received.done = true;
  ++channel.next;
  return Progress::moved;
}

std::string Interpreter::judge() const {
  const Collective collective = job_[0].collective;
  for (uint32_t rank = 0; rank < ranks_.size() && collective != Collective::barrier; ++rank) {
    const Memory& input = ranks_[rank].memory[0];
    for (uint64_t n = 0; n < input.length && !call_.in_place; ++n) {
      if (!((*input.numbers)[n] == contribution(rank, input.origin + n))) return "input was written";
    }
    const Memory& output = ranks_[rank].memory[1];
    for (uint64_t n = 0; n < output.length; ++n) {
      if (collective == Collective::exscan && rank == 0) continue;
      const std::string why = judge_element(rank, n, output.origin + n);
      if (!why.empty()) return why;
    }
  }
  return "";
}

std::string Interpreter::judge_element(uint32_t rank, uint64_t place, uint64_t element) const {
  const Collective collective = job_[0].collective;
  const Memory& output = ranks_[rank].memory[1];
  const Number& got = (*output.numbers)[output.first + place];
  const bool prefix = collective == Collective::scan || collective == Collective::exscan;
  const bool folds = prefix || collective == Collective::allreduce || collective == Collective::reduce ||
                     collective == Collective::reduce_scatter;
  if (!folds) return got == moved_here(rank, element) ? "" : "a wrong element";
  const uint32_t last = !prefix ? static_cast<uint32_t>(ranks_.size()) : collective == Collective::scan ? rank + 1 : rank;
  Number expected = contribution(0, element);
  for (uint32_t other = 1; other < last; ++other) expected = fold(expected, contribution(other, element));
  expected = finalized(expected);
  if (got.sum != expected.sum) return "a wrong sum";
  const bool in_order = got.scale == expected.scale && got.offset == expected.offset;
  if (call_.rank_ordered && !in_order) return "a wrong order";
  const Memory& first = ranks_[0].memory[1];
  if (collective == Collective::allreduce && !(got == (*first.numbers)[first.first + place])) return "ranks differ";
  return "";
}

Interpreter::Number Interpreter::moved_here(uint32_t rank, uint64_t element) const {
  const Collective collective = job_[0].collective;
  const auto count = [&](uint32_t from, uint32_t to) {
    if (call_.counts.empty()) return call_.count;
    return collective == Collective::alltoall ? call_.counts[size_t{from} * job_.size() + to] : call_.counts[from];
  };
  if (collective == Collective::broadcast) return contribution(call_.root, element);
  if (collective == Collective::scatter) {
    uint64_t before = element - ranks_[rank].memory[1].origin;
    for (uint32_t other = 0; other < rank; ++other) before += count(other, rank);
    return contribution(call_.root, before);
  }
  uint32_t source = 0;
  for (; element >= count(source, rank); ++source) element -= count(source, rank);
  if (collective != Collective::alltoall) return contribution(source, element + ranks_[source].memory[0].origin);
  for (uint32_t to = 0; to < rank; ++to) element += count(source, to);
  return contribution(source, element);
}

}  // namespace tutti::mutants
