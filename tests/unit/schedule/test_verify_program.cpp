// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs that were lowered and then broken.
#include <catch2/catch.hpp>

#include <functional>

#include "jobs.hpp"

namespace tutti {
namespace {

using Catch::Matchers::Contains;
using jobs::call;
using jobs::fault;

std::vector<Program> ring(Carrier carrier, uint16_t prefetch = 0) {
  const std::vector<Schedule> job = jobs::job(*find_algorithm(Collective::allreduce, "ring"), 3);
  return lower_job(job, uniform_pairs(3, carrier, 8, prefetch));
}

size_t find_step(const Program& program, Verb verb) {
  for (size_t n = 0; n < program.steps.size(); ++n) {
    if (program.steps[n].verb == verb) return n;
  }
  return SIZE_MAX;
}

std::vector<Program> without(std::vector<Program> job, Verb verb) {
  for (Program& program : job) {
    for (size_t n = find_step(program, verb); n != SIZE_MAX; n = find_step(program, verb)) {
      program.steps.erase(program.steps.begin() + static_cast<std::ptrdiff_t>(n));
      --program.loops[0].step_count;
    }
  }
  return job;
}

std::string broken(Carrier carrier, const std::function<void(Program&)>& change, uint16_t prefetch = 0) {
  std::vector<Program> job = ring(carrier, prefetch);
  change(job[1]);
  return fault(job, call(20));
}

}  // namespace

TEST_CASE("the unbroken programs pass") {
  for (const Carrier carrier : {Carrier::messages, Carrier::slots}) {
    for (uint16_t prefetch = 0; prefetch <= 3; ++prefetch) CHECK(fault(ring(carrier, prefetch), call(20)) == "");
  }
}

TEST_CASE("sends that are not awaited before their bytes are written are found") {
  const auto job = without(ring(Carrier::messages), Verb::await_sent);
  CHECK_THAT(fault(job, call(20)), Contains("writes bytes that a posted send may still read"));
  // One chunk: its ticket is never used again, so nothing else waits for the send.
  CHECK_THAT(fault(job, call(3, true)), Contains("writes bytes that a posted send may still read"));
}

TEST_CASE("received bytes that are used before they were awaited are found") {
  for (uint16_t prefetch = 0; prefetch <= 2; ++prefetch) {
    const auto job = without(ring(Carrier::messages, prefetch), Verb::await_received);
    CHECK_THAT(fault(job, call(20)), Contains("bytes that a posted receive may still write"));
  }
}

TEST_CASE("a stage that is too shallow for the receives posted ahead is found") {
  const auto shallow = [](Program& program) {
    for (Stage& stage : program.stages) stage.depth = 1;
  };
  CHECK(broken(Carrier::messages, shallow, 0) == "");
  CHECK_THAT(broken(Carrier::messages, shallow, 1), Contains("a posted receive may still write"));
}

TEST_CASE("tickets too few for the receives posted ahead are found") {
  const auto few = [](Program& program) {
    for (PendingRing& ring : program.pendings) ring.depth = 1;
  };
  CHECK(broken(Carrier::messages, few, 2) != "");
}

TEST_CASE("a step that is too late for its lane would not finish its chunks") {
  CHECK_THAT(broken(Carrier::messages, [](Program& program) { program.loops[0].max_lag = 0; }), Contains("its loop at most 0"));
}

TEST_CASE("segments must hold an element and suit both ends") {
  CHECK_THAT(broken(Carrier::slots, [](Program& program) { program.lanes[0].segment_bytes = 0; }),
             Contains("segments of 0 bytes"));
  CHECK_THAT(broken(Carrier::slots, [](Program& program) { program.lanes[0].segment_bytes = 3; }), Contains("does not fit"));
  CHECK_THAT(broken(Carrier::slots, [](Program& program) { program.lanes[0].segment_bytes = 4; }), Contains("are expected"));
}

TEST_CASE("indices out of their arrays are found before anything runs") {
  using Change = std::function<void(Program&)>;
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](Program& p) { p.divisions[0].parts = 0; }, "into 0 parts"},
      {[](Program& p) { p.rank = 2; }, "stands at place"},
      {[](Program& p) { p.steps[0].first_operand = 10000; }, "operand 10000"},
      {[](Program& p) { p.operands[0].division = 77; }, "division 77"},
      {[](Program& p) { p.operands[0].last = 4; }, "slice"},
      {[](Program& p) { p.channels[0].peer = 1; }, "a channel to rank 1"},
      {[](Program& p) { p.channels[0].direction = 7; }, "direction 7"},
      {[](Program& p) { p.channels[0].lane = 9; }, "a channel of lane 9"},
      {[](Program& p) { p.channels[0].carrier = Carrier::slots; }, "carries slots"},
      {[](Program& p) { p.channels.push_back(p.channels[0]); }, "two channels"},
      {[](Program& p) { p.pendings[0].depth = 3; }, "not a power of two"},
      {[](Program& p) { p.stages[0].depth = 0; }, "0 deep"},
      {[](Program& p) { p.steps[find_step(p, Verb::post_send)].pending = 99; }, "ticket ring 99"},
      {[](Program& p) { p.steps[find_step(p, Verb::post_send)].channel = 99; }, "channel 99"},
      {[](Program& p) { p.steps[find_step(p, Verb::post_send)].verb = Verb::post_recv; }, "writes the caller's input"},
      {[](Program& p) { p.steps[find_step(p, Verb::fold)].source_count = 0; }, "a fold of nothing"},
      {[](Program& p) { p.steps[find_step(p, Verb::fold)].destination_count = 0; }, "a fold into nothing"},
      {[](Program& p) { p.loops[0].step_count -= 1; }, "stand in no loop"},
      {[](Program& p) { p.loops[0].step_count += 1; }, "has steps"},
      {[](Program& p) { p.collective = Collective::broadcast; }, "another collective"},
  };
  for (const auto& [change, expected] : cases) CHECK_THAT(broken(Carrier::messages, change), Contains(expected));
}

TEST_CASE("both ends must use the same carrier") {
  const std::vector<Schedule> job = jobs::job(*find_algorithm(Collective::allreduce, "ring"), 3);
  std::vector<Program> programs = lower_job(job, uniform_pairs(3, Carrier::messages, 8, 0));
  programs[1] = lower(job[1], uniform_pairs(3, Carrier::slots, 8, 0)[1]);
  CHECK_THAT(fault(programs, call(20)), Contains("different carriers"));
}

TEST_CASE("operands that overlap in part, or differ in length, are found") {
  const auto job = [](Slice from, Slice to) {
    return jobs::job(Collective::allreduce, 1, [=](ScheduleBuilder& plan, uint32_t) {
      const LaneBuilder lane = plan.lane();
      lane.copy(input(), output()).finalize();
      lane.copy(output(from), output(to));
    });
  };
  CHECK_THAT(fault(job({4, 0, 2}, {4, 1, 3}), call(4)), Contains("operands overlap"));
  CHECK_THAT(fault(job({4, 0, 1}, {4, 1, 3}), call(4)), Contains("operands of 1 and 2 elements"));
}

TEST_CASE("a job of no ranks and a root that is no rank are refused") {
  CHECK_FALSE(verify(std::span<const Program>(), call(1)).ok());
  const std::vector<Program> job = ring(Carrier::slots);
  Call wrong_root = call(1);
  wrong_root.root = 3;
  CHECK_THAT(fault(job, wrong_root), Contains("root 3 of 3 ranks"));
}

}  // namespace tutti
