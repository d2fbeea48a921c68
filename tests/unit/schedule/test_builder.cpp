// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "schedule/builder.hpp"
#include "schedule/verify.hpp"

namespace tutti {
namespace {

PlanRequest request(uint32_t rank, uint32_t size) {
  PlanRequest request;
  request.shape = Shape::flat(size);
  request.rank = rank;
  return request;
}

}  // namespace

TEST_CASE("the builder's words are cases of the one verb") {
  ScheduleBuilder plan(Collective::allreduce, request(1, 3));
  const LaneBuilder lane = plan.lane(64);
  const Slice third = part(2, 3);
  lane.send(2, input(third));
  lane.recv(0, output(third));
  lane.recv_reduce(0, input(third), output(third)).finalize();
  lane.reduce_forward(0, input(third), 2);
  lane.forward(0, output(third), {2});
  lane.signal(2);
  lane.await_signal(0);
  const Schedule schedule = plan.take();

  CHECK(schedule.collective == Collective::allreduce);
  CHECK(schedule.rank == 1);
  CHECK(schedule.size == 3);
  REQUIRE(schedule.lanes.size() == 1);
  CHECK(schedule.lanes[0].segment_bytes == 64);
  const std::vector<Step> expected = {
      {{input(third)}, {message(2, third)}, 0, 0, false},
      {{message(0, third)}, {output(third)}, 0, 0, false},
      {{message(0, third), input(third)}, {output(third)}, 0, 0, true},
      {{message(0, third), input(third)}, {message(2, third)}, 0, 0, false},
      {{message(0, third)}, {output(third), message(2, third)}, 0, 0, false},
      {{input(kSignal)}, {message(2, kSignal)}, 0, 0, false},
      {{message(0, kSignal)}, {output(kSignal)}, 0, 0, false},
  };
  CHECK(schedule.lanes[0].steps == expected);
}

TEST_CASE("then() begins a loop behind all steps so far") {
  ScheduleBuilder plan(Collective::allreduce, request(0, 2));
  const LaneBuilder lane = plan.lane();
  const LaneBuilder first = lane.then();  // of an empty lane: no loop before
  first.at(2).send(1, input());
  const LaneBuilder second = lane.then();
  second.recv(1, output());
  second.at(1).send(1, output());
  lane.then().recv(1, output());
  const Schedule schedule = plan.take();
  std::vector<std::pair<uint16_t, uint16_t>> places;  // (loop, lag)
  for (const Step& step : schedule.lanes[0].steps) places.emplace_back(step.loop, step.lag);
  CHECK(places == std::vector<std::pair<uint16_t, uint16_t>>{{0, 2}, {1, 0}, {1, 1}, {2, 0}});
  CHECK(check(schedule).ok());
}

TEST_CASE("a step of an earlier loop behind one of a later is refused") {
  ScheduleBuilder plan(Collective::allreduce, request(0, 2));
  const LaneBuilder lane = plan.lane();
  lane.send(1, input());
  lane.then().recv(1, output());
  lane.send(1, input());
  CHECK(check(plan.take()).message().find("stands after a later loop") != std::string::npos);
}

TEST_CASE("at() lags a step and leaves the lane as it is") {
  ScheduleBuilder plan(Collective::allreduce, request(0, 2));
  const LaneBuilder lane = plan.lane();
  lane.at(3).send(1, input());
  lane.copy(input(), output());
  const Schedule schedule = plan.take();
  CHECK(schedule.lanes[0].steps[0].lag == 3);
  CHECK(schedule.lanes[0].steps[1].lag == 0);
}

TEST_CASE("lanes stay valid while others are added") {
  ScheduleBuilder plan(Collective::allreduce, request(0, 2));
  const LaneBuilder first = plan.lane();
  for (int n = 0; n < 20; ++n) plan.lane();
  first.copy(input(), output()).finalize();
  const Schedule schedule = plan.take();
  REQUIRE(schedule.lanes.size() == 21);
  REQUIRE(schedule.lanes[0].steps.size() == 1);
  CHECK(schedule.lanes[0].steps[0].finalize);
}

}  // namespace tutti
