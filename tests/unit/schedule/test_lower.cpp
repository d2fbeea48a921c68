// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "jobs.hpp"
#include "tutti/transport.h"

namespace tutti {
namespace {

using Kind = ProgramOperand::Kind;

/// The program of rank 0 of three, written by `write`.
template <class Write>
Program lowered(const Capabilities& capabilities, Write write) {
  PlanRequest request;
  request.shape = Shape::flat(3);
  ScheduleBuilder plan(Collective::allreduce, request);
  write(plan);
  return lower(plan.take(), capabilities);
}

Capabilities all(Carrier carrier, uint16_t prefetch = 0) { return {std::vector<Carrier>(3, carrier), 4096, prefetch}; }
/// Rank 1 by messages, rank 2 by slots.
Capabilities mixed() { return {{Carrier::messages, Carrier::messages, Carrier::slots}, 4096, 0}; }

std::vector<Verb> verbs(const Program& program) {
  std::vector<Verb> verbs;
  for (const ProgramStep& step : program.steps) verbs.push_back(step.verb);
  return verbs;
}

const ProgramOperand& operand(const Program& program, size_t step, size_t n = 0) {
  return program.operands[program.steps[step].first_operand + n];
}

Slice slice_of(const Program& program, const ProgramOperand& operand) {
  const Division& division = program.divisions[operand.division];
  return {division.parts, operand.first, operand.last, division.cut};
}

constexpr Verb fold = Verb::fold, post_send = Verb::post_send, await_sent = Verb::await_sent, post_recv = Verb::post_recv,
               await_received = Verb::await_received;

}  // namespace

TEST_CASE("a send by messages is posted from the caller's memory, without a copy") {
  const Program program = lowered(all(Carrier::messages), [](ScheduleBuilder& plan) { plan.lane().send(1, input()); });
  CHECK(verbs(program) == std::vector<Verb>{post_send});
  CHECK(operand(program, 0).kind == Kind::local);
  CHECK(program.channels == std::vector<ProgramChannel>{{1, TUTTI_TP_SEND, Carrier::messages, 0}});
  CHECK(program.stages.empty());
  REQUIRE(program.pendings.size() == 1);
}

TEST_CASE("a send by slots is a fold into the next slot") {
  const Program program = lowered(all(Carrier::slots), [](ScheduleBuilder& plan) { plan.lane().send(1, input()); });
  CHECK(verbs(program) == std::vector<Verb>{fold});
  CHECK(operand(program, 0, 0).kind == Kind::local);
  CHECK(operand(program, 0, 1).kind == Kind::slot);
  CHECK(program.pendings.empty());
}

TEST_CASE("a plain receive by messages goes straight into the destination") {
  const Program program = lowered(all(Carrier::messages), [](ScheduleBuilder& plan) { plan.lane().recv(1, output()); });
  CHECK(verbs(program) == std::vector<Verb>{post_recv, await_received});
  CHECK(operand(program, 0).kind == Kind::local);
  CHECK(operand(program, 0).buffer == BufferId::output);
  CHECK(program.stages.empty());
}

TEST_CASE("receive-and-reduce: a direct read of a slot, or a message through a stage") {
  const auto write = [](ScheduleBuilder& plan) { plan.lane().recv_reduce(1, input(), output()).finalize(); };
  const Program slots = lowered(all(Carrier::slots), write);
  CHECK(verbs(slots) == std::vector<Verb>{fold});
  CHECK(operand(slots, 0, 0).kind == Kind::slot);
  CHECK(slots.steps[0].finalize);
  const Program messages = lowered(all(Carrier::messages), write);
  CHECK(verbs(messages) == std::vector<Verb>{post_recv, await_received, fold});
  CHECK(operand(messages, 2, 0).kind == Kind::staged);
  CHECK(messages.stages == std::vector<Stage>{{0, 1}});
}

TEST_CASE("prefetch posts receives ahead and gives the others the distance") {
  const Program program = lowered(all(Carrier::messages, 2), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(2, input());
    lane.at(1).recv_reduce(1, input(), output());
  });
  // Output may be the memory of input: the fold waits for the send.
  CHECK(verbs(program) == std::vector<Verb>{post_send, post_recv, await_received, await_sent, fold});
  CHECK(program.steps[0].lag == 2);
  CHECK(program.steps[1].lag == 1);
  CHECK(program.steps[2].lag == 3);
  CHECK(program.steps[3].lag == 3);
  CHECK(program.steps[4].lag == 3);
  CHECK(program.loops[0].max_lag == 3);
  CHECK(program.stages == std::vector<Stage>{{0, 4}});  // three in flight, in powers of two
  CHECK(program.pendings[program.steps[1].pending].depth == 4);
}

TEST_CASE("a receive is not posted before a step that still uses the old contents") {
  const Program program = lowered(all(Carrier::messages, 2), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    plan.hold(BufferId::scratch, kWhole);
    lane.copy(output(), scratch());
    lane.recv(1, output());
  });
  for (const ProgramStep& step : program.steps) CHECK(step.lag == 0);
  CHECK(program.windows[static_cast<size_t>(BufferId::scratch)].division != ProgramOperand::kNoData);
}

TEST_CASE("a loop that writes what an earlier one sent waits for all of it, once") {
  const Program program = lowered(all(Carrier::messages, 1), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(1, output(Slice{4, 0, 2}));
    lane.send(2, output(Slice{4, 2, 4}));
    lane.then().recv(1, output(part(0, 4)));  // of the first half
    lane.then().recv(1, output(part(1, 4)));
    lane.then().recv(1, output(part(2, 4)));
  });
  REQUIRE(program.lanes.size() == 1);
  REQUIRE(program.loops.size() == 4);
  CHECK(program.lanes[0].loop_count == 4);
  CHECK(verbs(program) == std::vector<Verb>{post_send, post_send,                         //
                                            Verb::drain_sent, post_recv, await_received,  //
                                            post_recv, await_received,                    //
                                            Verb::drain_sent, post_recv, await_received});
  CHECK(program.steps[2].pending == program.steps[0].pending);
  CHECK(program.steps[7].pending == program.steps[1].pending);
  CHECK(operand_count(program.steps[2]) == 0);
}

TEST_CASE("loops that receive what they fold share a stage; one that sends from its own keeps it") {
  const Program program = lowered(all(Carrier::messages, 0), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.recv_reduce(1, input(part(0, 2)), output(part(0, 2)));
    lane.then().recv_reduce(2, input(part(1, 2)), output(part(1, 2)));
    lane.then().reduce_forward(1, input(), 2);
  });
  CHECK(operand(program, 2, 0).index == operand(program, 5, 0).index);
  CHECK(program.stages == std::vector<Stage>{{0, 1}, {0, 4}});
}

TEST_CASE("what arrives by message is passed on by both carriers from where it arrived") {
  const Program program = lowered(mixed(), [](ScheduleBuilder& plan) { plan.lane().forward(1, output(), {2}); });
  CHECK(verbs(program) == std::vector<Verb>{post_recv, await_received, fold});
  CHECK(operand(program, 2, 0) == operand(program, 0));
  CHECK(operand(program, 2, 1).kind == Kind::slot);
}

TEST_CASE("what arrives in a slot and leaves by message goes through a stage") {
  const Program program = lowered(mixed(), [](ScheduleBuilder& plan) { plan.lane().reduce_forward(2, input(), 1); });
  CHECK(verbs(program) == std::vector<Verb>{await_sent, fold, post_send});
  CHECK(operand(program, 1, 0).kind == Kind::slot);
  CHECK(operand(program, 1, 2).kind == Kind::staged);
  // The stage's segment comes round again after its depth: then it must have been sent.
  CHECK(program.steps[0].lag == program.stages[0].depth);
}

TEST_CASE("bytes that a posted send may read are awaited before they are written") {
  const Program program = lowered(all(Carrier::messages), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(1, output());
    lane.at(1).copy(input(), output());
  });
  CHECK(verbs(program) == std::vector<Verb>{post_send, await_sent, fold});
  CHECK(program.steps[1].lag == 1);
  CHECK(program.steps[1].pending == program.steps[0].pending);
}

// The ticket of chunk k is used again by chunk k + 4, which awaits it; but the last chunks have none after them.
TEST_CASE("a write long after the send is guarded as well") {
  const Program program = lowered(all(Carrier::messages), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(1, output());
    lane.at(9).copy(input(), output());
  });
  CHECK(verbs(program) == std::vector<Verb>{await_sent, post_send, fold});
  CHECK(program.steps[0].lag == 4);
}

TEST_CASE("a write to a different division of the same buffer waits for all sends so far") {
  const Program program = lowered(all(Carrier::messages), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(1, output(part(0, 3)));
    lane.copy(input(part(0, 2)), output(part(0, 2)));
  });
  CHECK(verbs(program) == std::vector<Verb>{post_send, await_sent, fold});
  CHECK(program.steps[1].lag == 0);
}

TEST_CASE("sends of bytes that nobody writes are left to the end") {
  const Program program = lowered(all(Carrier::messages), [](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(1, output(part(0, 2)));
    lane.copy(input(part(1, 2)), output(part(1, 2)));
  });
  CHECK(verbs(program) == std::vector<Verb>{post_send, fold});
}

TEST_CASE("segments are what the lane asks for, cut to what the transport takes") {
  const Program program = lowered(all(Carrier::slots), [](ScheduleBuilder& plan) {
    plan.lane().send(1, input());
    plan.lane(64).send(1, input());
    plan.lane(1 << 20).send(1, input());
  });
  REQUIRE(program.lanes.size() == 3);
  CHECK(program.lanes[0].segment_bytes == 4096);
  CHECK(program.lanes[1].segment_bytes == 64);
  CHECK(program.lanes[2].segment_bytes == 4096);
  CHECK(program.channels.size() == 3);  // one a lane
}

TEST_CASE("signals carry no data and need no memory") {
  for (const Carrier carrier : {Carrier::messages, Carrier::slots}) {
    const Program program = lowered(all(carrier), [](ScheduleBuilder& plan) {
      const LaneBuilder lane = plan.lane();
      lane.signal(1);
      lane.await_signal(2);
    });
    for (const ProgramOperand& each : program.operands) CHECK(each.division == ProgramOperand::kNoData);
    CHECK(program.stages.empty());
  }
}

TEST_CASE("lowering keeps the order of each channel's messages, whatever the carrier and the prefetch") {
  for (const AlgorithmInfo* algorithm : all_algorithms()) {
    const std::vector<Schedule> job = jobs::job(*algorithm, 7);
    for (const Schedule& schedule : job) {
      std::vector<std::pair<uint32_t, Slice>> expected;  // sends, by peer
      for (const Lane& lane : schedule.lanes) {
        for (const Step& step : lane.steps) {
          for (const Operand& to : step.destinations) {
            if (to.kind == Operand::Kind::message) expected.emplace_back(to.peer, to.slice);
          }
        }
      }
      for (uint16_t prefetch = 0; prefetch <= 3; ++prefetch) {
        const Program program = lower(schedule, {std::vector<Carrier>(7, Carrier::messages), 4096, prefetch});
        std::vector<std::pair<uint32_t, Slice>> sent;
        for (const ProgramStep& step : program.steps) {
          if (step.verb != Verb::post_send) continue;
          const ProgramOperand& from = program.operands[step.first_operand];
          const bool signal = from.division == ProgramOperand::kNoData;
          sent.emplace_back(program.channels[step.channel].peer, signal ? kSignal : slice_of(program, from));
        }
        CHECK(sent == expected);
      }
    }
  }
}

// With work that grows as the square of the steps this would take minutes.
TEST_CASE("a ring of very many ranks has a ticket ring for each message of a rank") {
  constexpr uint32_t kRanks = 20'000;
  const AlgorithmInfo& ring = *find_algorithm(Collective::allreduce, "ring");
  PlanRequest request;
  request.shape = Shape::flat(kRanks);
  request.rank = 7;
  for (const ParameterInfo& parameter : ring.parameters) request.parameters.push_back(parameter.default_value);
  const Program program = lower(ring.build(request), {std::vector<Carrier>(kRanks, Carrier::messages), 4096, 1});
  std::vector<uint32_t> posts(program.pendings.size(), 0);
  for (const ProgramStep& step : program.steps) {
    if (step.verb == Verb::post_send || step.verb == Verb::post_recv) ++posts.at(step.pending);
  }
  CHECK(posts == std::vector<uint32_t>(size_t{4} * (kRanks - 1), 1));
}

TEST_CASE("lowering is pure") {
  const Schedule schedule = jobs::job(*find_algorithm(Collective::allreduce, "tree"), 7)[3];
  const Capabilities capabilities = random_pairs(7, 4096, 1)[3];
  CHECK(lower(schedule, capabilities) == lower(schedule, capabilities));
}

}  // namespace tutti
