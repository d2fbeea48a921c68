// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Small cases against times worked out by hand.
#include <catch2/catch.hpp>

#include "machines.hpp"
#include "schedule/builder.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

double no_cost(const Shape&, uint64_t, const Parameters&, const CostModel&) { return 0; }

AlgorithmInfo made_of(Schedule (*build)(const PlanRequest&)) {
  AlgorithmInfo info{};
  info.collective = Collective::broadcast;
  info.name = "made for a test";
  info.max_ranks = UINT32_MAX;
  info.cost_ns = no_cost;
  info.build = build;
  return info;
}

/// Ranks of the lower half send to those of the upper half.
Schedule halves(const PlanRequest& request) {
  const uint32_t half = request.shape.size / 2;
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane();
  if (request.rank < half) {
    lane.send(request.rank + half, output());
  } else {
    lane.recv(request.rank - half, output());
  }
  return plan.take();
}

Schedule nobody_sends(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::broadcast, request);
  if (request.rank == 1) plan.lane().recv(0, output());
  return plan.take();
}

/// Each waits for the other first.
Schedule both_wait(const PlanRequest& request) {
  const uint32_t other = 1 - request.rank;
  ScheduleBuilder plan(Collective::broadcast, request);
  const LaneBuilder lane = plan.lane();
  lane.recv(other, output());
  lane.send(other, output());
  return plan.take();
}

/// Rank 0 sends on two lanes at once.
Schedule two_lanes(const PlanRequest& request) {
  ScheduleBuilder plan(Collective::broadcast, request);
  for (uint32_t share = 0; share < 2; ++share) {
    const LaneBuilder lane = plan.lane();
    request.rank == 0 ? lane.send(1, output(part(share, 2))) : lane.recv(0, output(part(share, 2)));
  }
  return plan.take();
}

Prediction predict(NetworkSpec spec, uint32_t ranks, const SimulationRequest& request) {
  const Result<Network> network = Network::make(std::move(spec), ranks);
  REQUIRE(network.ok());
  const Result<Prediction> prediction = simulate(*network, request);
  INFO(prediction.status().message());
  REQUIRE(prediction.ok());
  return *prediction;
}

const AlgorithmInfo& algorithm(Collective collective, std::string_view name) {
  const AlgorithmInfo* info = find_algorithm(collective, name);
  REQUIRE(info != nullptr);
  return *info;
}

}  // namespace

TEST_CASE("one message: step, overhead, cable, latency, overhead, step") {
  const AlgorithmInfo info = made_of(halves);
  const Prediction seen = predict(plain_spec(), 2, request_for(info, 1000));
  CHECK(seen.time_ns == 110 + 1000 + 1000 + 110);
  CHECK(seen.method == WalkMethod::every_event);
  CHECK(seen.rounds == 1);
  CHECK(seen.messages == 1);
  CHECK(seen.max_sent_bytes == 1000);
  REQUIRE(seen.busiest);
  CHECK(seen.busiest->busy_ns == 1000);
  CHECK(seen.busiest->bytes == 1000);
  REQUIRE(seen.ranks.size() == 2);
  CHECK(seen.ranks[0].end_ns == 110);
  CHECK(seen.ranks[1].busy_ns == 110);
}

TEST_CASE("within a node the processors copy, at either end") {
  const AlgorithmInfo info = made_of(halves);
  const Prediction seen = predict(plain_spec(2), 2, request_for(info, 1000));
  CHECK(seen.time_ns == (110 + 1000) + 200 + (110 + 1000));
  CHECK_FALSE(seen.busiest);
}

TEST_CASE("two flows share one link: it takes twice as long") {
  const AlgorithmInfo info = made_of(halves);
  // Ranks 0 and 1 have one node's cable, and so have ranks 2 and 3.
  CHECK(predict(plain_spec(2), 4, request_for(info, 1000)).time_ns == 110 + 2000 + 1000 + 110);
  SECTION("a switch with half as many cables upwards") {
    NetworkSpec spec = plain_spec();
    spec.fabric = FatTree{{{2, 2, 0}, {2, 1, 0}}};
    CHECK(predict(spec, 4, request_for(info, 1000)).time_ns == 110 + 2000 + 1000 + 110);
    spec.fabric = FatTree{{{2, 1, 0}, {2, 1, 0}}};
    CHECK(predict(spec, 4, request_for(info, 1000)).time_ns == 110 + 1000 + 1000 + 110);
  }
  SECTION("a rank that may not use all of its cable") {
    NetworkSpec spec = plain_spec();
    spec.rank_gbytes_per_s = 0.5;
    CHECK(predict(spec, 2, request_for(info, 1000)).time_ns == 110 + 2000 + 1000 + 110);
  }
  SECTION("a node's memory") {
    NetworkSpec spec = plain_spec(4);
    spec.memory_gbytes_per_s = 1;
    CHECK(predict(spec, 4, request_for(info, 1000)).time_ns == 1110 + 2000 + 200 + 1110);
  }
}

TEST_CASE("lanes take turns on the processor, and their messages on the cable") {
  const AlgorithmInfo info = made_of(two_lanes);
  // The second lane's message leaves at 220 and finds the cable busy until 610.
  CHECK(predict(plain_spec(), 2, request_for(info, 1000)).time_ns == 110 + 500 + 500 + 1000 + 110);
}

TEST_CASE("ring of two: a formula") {
  const double block = 4000;
  const double hop = 110 + block + 1000 + 110;
  const Prediction seen = predict(plain_spec(), 2, request_for(algorithm(Collective::allreduce, "ring"), 8000));
  CHECK(seen.time_ns == 2 * hop + block * 2);
  CHECK(seen.rounds == 2);
  CHECK(seen.max_sent_bytes == 8000);
}

TEST_CASE("trees of depth log2 p") {
  for (const uint32_t ranks : {2u, 8u, 64u, 256u}) {
    const auto log2 = static_cast<uint64_t>(std::bit_width(ranks) - 1);
    CHECK(predict(plain_spec(), ranks, request_for(algorithm(Collective::broadcast, "binomial"), 8)).rounds == log2);
    const Prediction doubling =
        predict(plain_spec(), ranks, request_for(algorithm(Collective::allreduce, "recursive_doubling"), 8));
    CHECK(doubling.rounds == log2);
    // Each round: send, then receive and fold what left at the same time.
    CHECK(doubling.time_ns == static_cast<double>(log2) * (110 + 8 + 1000 + 110 + 2 * 8));
  }
}

TEST_CASE("a pipelined chain: all hops for the first chunk, one cable's time for each other") {
  const AlgorithmInfo& chain = algorithm(Collective::broadcast, "chain");
  const uint32_t ranks = 6;
  const uint64_t chunks = 40;
  SimulationRequest request = request_for(chain, chunks * 1000);
  request.parameters[0] = 1000;
  REQUIRE(chain.parameters[0].name == "segment_bytes");
  const Prediction seen = predict(plain_spec(), ranks, request);
  const double first = 110 + 2000;  // to the second rank
  const double hop = 210 + 2000;    // received and sent on
  const double last = 110;
  CHECK(seen.time_ns == first + (ranks - 2) * hop + last + (chunks - 1) * 1000);
}

TEST_CASE("too few slots hold a pipeline up") {
  const AlgorithmInfo info = made_of(halves);
  NetworkSpec spec = plain_spec();
  spec.prices.segment_bytes = 1000;
  const double with_enough = predict(spec, 2, request_for(info, 20'000)).time_ns;
  CHECK(with_enough == 110 + 20'000 + 1000 + 110);
  spec.prices.network.slots = 2;
  // A slot is back 1000 (cable) + 1000 + 110 + 1000 after its message left, and 110 later the next one leaves.
  const double round_trip = 1000 + 1000 + 110 + 1000 + 110;
  CHECK(predict(spec, 2, request_for(info, 20'000)).time_ns > 9 * round_trip);
}

TEST_CASE("long vectors are extrapolated to what the walk of all would give") {
  const AlgorithmInfo& chain = algorithm(Collective::broadcast, "chain");
  SimulationRequest request = request_for(chain, 64 << 20);
  const Prediction all = predict(plain_spec(), 8, request);
  CHECK(all.walked_bytes == request.bytes);
  request.max_steps_walked = 1000;
  const Prediction part = predict(plain_spec(), 8, request);
  CHECK(part.walked_bytes < request.bytes);
  CHECK(part.note.find("extrapolated") != std::string::npos);
  CHECK(part.time_ns == Approx(all.time_ns).epsilon(0.001));
  CHECK(part.max_sent_bytes == all.max_sent_bytes);
}

TEST_CASE("a deep pipeline is filled before it is extrapolated") {
  for (const std::string_view name : {"tree", "ring"}) {
    SimulationRequest request = request_for(algorithm(Collective::allreduce, name), 32 << 20);
    const double all_ns = predict(plain_spec(), 64, request).time_ns;
    request.max_steps_walked = 100;
    request.method = WalkMethod::every_event;
    INFO(name);
    CHECK(predict(plain_spec(), 64, request).time_ns == Approx(all_ns).epsilon(0.02));
  }
}

TEST_CASE("nothing to send takes no time") {
  const AlgorithmInfo info = made_of(halves);
  CHECK(predict(plain_spec(), 2, request_for(info, 0)).time_ns == 0);
}

TEST_CASE("steps of one rank are traced") {
  SimulationRequest request = request_for(algorithm(Collective::allreduce, "ring"), 8000);
  request.traced_rank = 1;
  const Prediction seen = predict(plain_spec(), 2, request);
  REQUIRE(seen.steps.size() == 4);  // two sends, two receives
  CHECK(seen.steps[0].first_start_ns == 0);
  CHECK(seen.steps[0].last_end_ns == 110);
  CHECK(seen.steps.back().last_end_ns == seen.ranks[1].end_ns);
}

TEST_CASE("a loop begins when the rank has done all chunks of the one before") {
  // Two chunks there; then the second rank, which has both, sends its answer.
  const AlgorithmInfo info = made_of([](const PlanRequest& request) {
    ScheduleBuilder plan(Collective::broadcast, request);
    const LaneBuilder lane = plan.lane(500);
    request.rank == 0 ? lane.send(1, output()) : lane.recv(0, output());
    const LaneBuilder answer = lane.then();
    request.rank == 0 ? answer.recv(1, output(part(0, 2))) : answer.send(0, output(part(0, 2)));
    return plan.take();
  });
  SimulationRequest request = request_for(info, 1000);
  request.traced_rank = 1;
  const Prediction seen = predict(plain_spec(), 2, request);
  REQUIRE(seen.steps.size() == 2);
  CHECK(seen.steps[0].chunks == 2);
  CHECK(seen.steps[1].chunks == 1);
  // The second chunk leaves after two steps, behind the first on the cable.
  CHECK(seen.steps[0].last_end_ns == 110 + 1000 + 1000 + 110);
  CHECK(seen.steps[1].first_start_ns == seen.steps[0].last_end_ns);
  CHECK(seen.time_ns == 2220 + 110 + 500 + 1000 + 110);
}

TEST_CASE("ranks that share a processor take turns, and pay for each") {
  const AlgorithmInfo info = made_of(halves);
  NetworkSpec spec = plain_spec(4);
  spec.cores_per_node = 1;
  spec.prices.switch_ns = 1000;
  // A step with a message and 100 bytes is 210 ns. Two senders, then two receivers: three turns change hands.
  CHECK(predict(spec, 4, request_for(info, 100)).time_ns == 4 * 210 + 3 * 1000);
  spec.cores_per_node = 4;
  CHECK(predict(spec, 4, request_for(info, 100)).time_ns == 210 + 200 + 210);
  spec.cores_per_node = 2;
  // Both senders at once. Each receiver takes the place of one.
  CHECK(predict(spec, 4, request_for(info, 100)).time_ns == 210 + 200 + 210 + 1000);
}

TEST_CASE("what cannot be walked is an error with a name") {
  const Result<Network> network = Network::make(plain_spec(), 2);
  REQUIRE(network.ok());
  const AlgorithmInfo one_ended = made_of(nobody_sends);
  const Status no_sender = simulate(*network, request_for(one_ended, 8)).status();
  CHECK(no_sender.code() == TUTTI_ERR_INTERNAL);
  CHECK(std::string(no_sender.message()).find("rank 0 and rank 1 do not agree") != std::string::npos);
  const AlgorithmInfo stuck = made_of(both_wait);
  const Status deadlock = simulate(*network, request_for(stuck, 8)).status();
  CHECK(deadlock.code() == TUTTI_ERR_INTERNAL);
  CHECK(std::string(deadlock.message()).find("stands still") != std::string::npos);
  SimulationRequest no_root = request_for(one_ended, 8);
  no_root.root = 2;
  CHECK(simulate(*network, no_root).status().code() == TUTTI_ERR_RANK);
}
