// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Schedules written by hand, good ones and each kind of bad one.
#include <catch2/catch.hpp>

#include "jobs.hpp"

namespace tutti {
namespace {

using Catch::Matchers::Contains;
using jobs::call;
using jobs::fault;

/// An allreduce of two ranks, right: each sends its contribution and folds both, the lower rank's first.
void exchange(ScheduleBuilder& plan, uint32_t rank) {
  const LaneBuilder lane = plan.lane();
  const uint32_t peer = 1 - rank;
  lane.send(peer, input());
  const Operand mine = input();
  const Operand theirs = message(peer);
  lane.fold({rank == 0 ? mine : theirs, rank == 0 ? theirs : mine}, {output()}).finalize();
}

/// The same with rank 1 written by `write`.
template <class Write>
std::vector<Schedule> with_rank_1(Write write) {
  return jobs::job(Collective::allreduce, 2, [&](ScheduleBuilder& plan, uint32_t rank) {
    if (rank == 0) {
      exchange(plan, 0);
    } else {
      write(plan);
    }
  });
}

/// What check() says of a schedule of rank 0 of two.
template <class Write>
std::string form_fault(Write write) {
  const auto job = jobs::job(Collective::allreduce, 2, [&](ScheduleBuilder& plan, uint32_t) { write(plan); });
  return std::string(check(job[0]).message());
}

}  // namespace

TEST_CASE("a right exchange passes, in place and not, for every count") {
  const auto job = jobs::job(Collective::allreduce, 2, exchange);
  for (const uint64_t count : {0u, 1u, 2u, 3u, 100u}) {
    for (const bool in_place : {false, true}) {
      Call ordered = call(count, in_place);
      ordered.rank_ordered = true;
      CHECK(fault(job, ordered) == "");
    }
  }
}

TEST_CASE("a missing contribution is found") {
  const auto job = with_rank_1([](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(0, input());
    lane.recv(0, output()).finalize();
  });
  CHECK_THAT(fault(job, call(4)), Contains("rank 1: element 0 is final(0): a contribution is missing"));
}

TEST_CASE("a contribution that is in twice is found") {
  const auto job = with_rank_1([](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(0, input());
    lane.fold({message(0), input(), input()}, {output()}).finalize();
  });
  CHECK_THAT(fault(job, call(4)), Contains("a contribution is in it twice"));
}

TEST_CASE("results of different association are found: they could differ in their last bits") {
  const auto job = with_rank_1([](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(0, input());
    lane.fold({input(), message(0)}, {output()}).finalize();
  });
  CHECK_THAT(fault(job, call(4)), Contains("rank 1: element 0 is final((1 0)): another rank has final((0 1))"));
}

TEST_CASE("rank order is asked for only when the operation needs it") {
  const auto job = jobs::job(Collective::allreduce, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    const LaneBuilder lane = plan.lane();
    lane.send(1 - rank, input());
    const Operand mine = input();
    const Operand theirs = message(1 - rank);
    lane.fold({rank == 1 ? mine : theirs, rank == 1 ? theirs : mine}, {output()}).finalize();
  });
  CHECK(fault(job, call(4)) == "");
  Call ordered = call(4);
  ordered.rank_ordered = true;
  CHECK_THAT(fault(job, ordered), Contains("not in rank order"));
}

TEST_CASE("a result that is not finalized, or twice, or too early, is found") {
  const auto never = jobs::job(Collective::allreduce, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    const LaneBuilder lane = plan.lane();
    lane.send(1 - rank, input());
    lane.recv_reduce(1 - rank, input(), output());
  });
  CHECK_THAT(fault(never, call(4)), Contains("not finalized exactly once"));
  const auto twice = with_rank_1([](ScheduleBuilder& plan) {
    exchange(plan, 1);
    plan.lane();
  });
  CHECK(fault(twice, call(4)) == "");  // the control: an empty lane changes nothing
  const auto twice_on_rank_1 = with_rank_1([](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(0, input());
    lane.recv_reduce(0, input(), output()).finalize();
    lane.copy(output(), output()).finalize();
  });
  CHECK_THAT(fault(twice_on_rank_1, call(4)), Contains("not finalized exactly once"));
  const auto early = with_rank_1([](ScheduleBuilder& plan) {
    const LaneBuilder lane = plan.lane();
    lane.send(0, input());
    lane.recv(0, scratch()).finalize();
    lane.fold({scratch(), input()}, {output()}).finalize();
  });
  CHECK_THAT(fault(early, call(4)), Contains("not finalized exactly once"));
}

TEST_CASE("a part of the output that nobody writes is found") {
  const auto job = jobs::job(Collective::allreduce, 1, [](ScheduleBuilder& plan, uint32_t) {
    plan.lane().copy(input(part(0, 2)), output(part(0, 2))).finalize();
  });
  CHECK_THAT(fault(job, call(2)), Contains("element 1 has no result"));
  CHECK(fault(job, call(0)) == "");
}

TEST_CASE("elements at the wrong place are found") {
  const auto job = jobs::job(Collective::allreduce, 1, [](ScheduleBuilder& plan, uint32_t) {
    const LaneBuilder lane = plan.lane();
    lane.copy(input(part(0, 2)), output(part(1, 2))).finalize();
    lane.copy(input(part(1, 2)), output(part(0, 2))).finalize();
  });
  CHECK_THAT(fault(job, call(2)), Contains("it holds element 1"));
}

TEST_CASE("a send without a receive, and a receive without a send, are found") {
  const auto send = with_rank_1([](ScheduleBuilder& plan) {
    exchange(plan, 1);
    plan.lane();
  });
  CHECK(fault(send, call(4)) == "");
  const auto extra_send = jobs::job(Collective::allreduce, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    exchange(plan, rank);
    if (rank == 0) plan.lane().send(1, input());
  });
  CHECK_THAT(fault(extra_send, call(4)), Contains("sends 1 messages, rank"));
  const auto extra_receive = jobs::job(Collective::allreduce, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    exchange(plan, rank);
    if (rank == 0) plan.lane().recv(1, scratch());
  });
  CHECK_THAT(fault(extra_receive, call(4)), Contains("deadlock") && Contains("rank 0 lane 1"));
}

TEST_CASE("messages of another length are found") {
  const auto job = jobs::job(Collective::allreduce, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    exchange(plan, rank);
    const LaneBuilder lane = plan.lane();
    if (rank == 0) lane.send(1, input(part(0, 2)));
    if (rank == 1) lane.recv(0, scratch(part(0, 3)));
  });
  CHECK_THAT(fault(job, call(6)), Contains("rank 0 sends 3 elements where rank 1 expects 2"));
  CHECK(fault(job, call(0)) == "");
  CHECK(fault(job, call(1)) == "");
}

TEST_CASE("ranks that all receive first are in a deadlock") {
  const auto job = jobs::job(Collective::allreduce, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    const LaneBuilder lane = plan.lane();
    lane.recv(1 - rank, scratch());
    lane.send(1 - rank, input());
    lane.fold({rank == 0 ? input() : scratch(), rank == 0 ? scratch() : input()}, {output()}).finalize();
  });
  CHECK_THAT(fault(job, call(4)), Contains("deadlock of 2 lanes"));
}

TEST_CASE("a schedule that needs three messages of credit is found, though two would do for messages") {
  const auto write = [](uint32_t ahead) {
    return jobs::job(Collective::allreduce, 2, [ahead](ScheduleBuilder& plan, uint32_t rank) {
      exchange(plan, rank);
      const LaneBuilder lane = plan.lane();
      for (uint32_t n = 0; n < ahead; ++n) lane.send(1 - rank, input());
      for (uint32_t n = 0; n < ahead; ++n) lane.recv(1 - rank, scratch());
    });
  };
  CHECK(fault(write(2), call(1)) == "");
  CHECK_THAT(fault(write(3), call(1)), Contains("deadlock"));
}

TEST_CASE("reading what nobody wrote is found") {
  const auto job = jobs::job(Collective::allreduce, 1, [](ScheduleBuilder& plan, uint32_t) {
    const LaneBuilder lane = plan.lane();
    lane.copy(scratch(), output());
    lane.copy(input(), output()).finalize();
  });
  CHECK_THAT(fault(job, call(1)), Contains("reads bytes that nobody wrote"));
}

TEST_CASE("lanes that use the same bytes are found, whatever the order") {
  for (const bool second_reads : {false, true}) {
    const auto job = jobs::job(Collective::allreduce, 1, [second_reads](ScheduleBuilder& plan, uint32_t) {
      plan.lane().copy(input(), output()).finalize();
      plan.lane().copy(second_reads ? output() : input(), second_reads ? scratch() : output()).finalize();
    });
    const std::string text = fault(job, call(1));
    CHECK((text.find("another lane uses the same bytes") != std::string::npos || text.find("nobody wrote") != std::string::npos));
  }
  const auto readers = jobs::job(Collective::allreduce, 1, [](ScheduleBuilder& plan, uint32_t) {
    plan.lane().copy(input(), output()).finalize();
    plan.lane().copy(input(), scratch());
  });
  CHECK(fault(readers, call(1)) == "");
  // In place the first lane writes what the second reads.
  CHECK_THAT(fault(readers, call(1, true)), Contains("another lane uses the same bytes"));
}

TEST_CASE("the root's buffer of a broadcast is left alone, and reaches everybody") {
  const auto good = [](ScheduleBuilder& plan, uint32_t rank) {
    const LaneBuilder lane = plan.lane();
    if (rank == 0) lane.send(1, output());
    if (rank == 1) lane.recv(0, output());
  };
  const auto job = jobs::job(Collective::broadcast, 2, good);
  CHECK(fault(job, call(3)) == "");
  Call from_1 = call(3);
  from_1.root = 1;
  CHECK_THAT(fault(job, from_1), Contains("writes the buffer of the broadcast's root"));
  const auto altered = jobs::job(Collective::broadcast, 2, [&](ScheduleBuilder& plan, uint32_t rank) {
    good(plan, rank);
    const LaneBuilder lane = plan.lane();
    if (rank == 1) lane.send(0, output());
    if (rank == 0) lane.recv(1, output());
  });
  CHECK(fault(altered, call(3)) != "");
  const auto finalized = jobs::job(Collective::broadcast, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    const LaneBuilder lane = plan.lane();
    if (rank == 0) lane.send(1, output());
    if (rank == 1) lane.recv(0, output()).finalize();
  });
  CHECK_THAT(fault(finalized, call(3)), Contains("not element 0 of 0"));
}

TEST_CASE("a barrier that a rank can leave too early is found") {
  // Each hears of its neighbour only: enough for two ranks, not for three.
  const auto round = [](ScheduleBuilder& plan, uint32_t size, uint32_t rank) {
    const LaneBuilder lane = plan.lane();
    lane.signal((rank + 1) % size);
    lane.await_signal((rank + size - 1) % size);
  };
  CHECK(fault(jobs::job(Collective::barrier, 2, [&](auto& plan, uint32_t rank) { round(plan, 2, rank); }), call(0)) == "");
  const auto job = jobs::job(Collective::barrier, 3, [&](auto& plan, uint32_t rank) { round(plan, 3, rank); });
  CHECK_THAT(fault(job, call(0)), Contains("rank 0 may end before rank 1 begins"));
}

TEST_CASE("the form of a schedule is checked") {
  CHECK(form_fault([](ScheduleBuilder& plan) { plan.lane().send(1, input()); }) == "");
  CHECK_THAT(form_fault([](ScheduleBuilder& plan) { plan.lane().send(0, input()); }), Contains("a message to rank 0"));
  CHECK_THAT(form_fault([](ScheduleBuilder& plan) { plan.lane().send(2, input()); }), Contains("a message to rank 2"));
  CHECK_THAT(form_fault([](ScheduleBuilder& plan) { plan.lane().send(1, input({2, 1, 3})); }), Contains("slice 1..3 of 2 parts"));
  CHECK_THAT(form_fault([](ScheduleBuilder& plan) { plan.lane().copy(output(), input()); }),
             Contains("writes the caller's input"));
  CHECK_THAT(form_fault([](ScheduleBuilder& plan) { plan.lane().fold({}, {output()}); }), Contains("no source"));
  CHECK_THAT(form_fault([](ScheduleBuilder& plan) {
               plan.lane().fold({message(1), message(1)}, {output()});
             }),
             Contains("rank 1 twice in one step"));
  CHECK_THAT(form_fault([](ScheduleBuilder& plan) {
               plan.lane().fold({message(1), input(kSignal)}, {output()});
             }),
             Contains("a signal among data"));
}

TEST_CASE("every registered algorithm passes for some ranks (all cases: the schedule suite)") {
  for (const AlgorithmInfo* algorithm : all_algorithms()) {
    for (const uint32_t ranks : {1u, 2u, algorithm->has(kPowerOfTwoRanks) ? 4u : 5u}) {
      Call one = call(ranks + 1);
      one.rank_ordered = algorithm->has(kRankOrdered);
      CAPTURE(algorithm->name, ranks);
      CHECK(fault(jobs::job(*algorithm, ranks), one) == "");
    }
  }
}

}  // namespace tutti
