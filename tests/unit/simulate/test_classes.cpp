// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks that are alike, walked as one, against the walk of every event.
#include <bit>
#include <catch2/catch.hpp>
#include <set>

#include "machines.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

bool fits(const AlgorithmInfo& algorithm, const Network& network) {
  const uint32_t ranks = network.rank_count();
  return ranks >= algorithm.min_ranks && ranks <= algorithm.max_ranks &&
         (!algorithm.has(kPowerOfTwoRanks) || std::has_single_bit(ranks)) &&
         (algorithm.fits == nullptr || algorithm.fits(network.shape()));
}

/// The classes of this job, or 0 where its ranks are not alike; checks the walk of classes against that of every event.
uint32_t compare_walks(const Network& network, const AlgorithmInfo& algorithm, uint64_t bytes) {
  SimulationRequest request = request_for(algorithm, bytes);
  request.max_steps_walked = 1'500'000;
  request.method = WalkMethod::classes;
  const Result<Prediction> quick = simulate(network, request);
  REQUIRE(quick.ok());
  if (quick->method != WalkMethod::classes) {
    CHECK(quick->note.find("not alike") != std::string::npos);
    return 0;
  }
  request.method = WalkMethod::every_event;
  const Result<Prediction> full = simulate(network, request);
  REQUIRE(full.ok());
  if (quick->walked_bytes == full->walked_bytes) {
    CHECK(quick->time_ns == full->time_ns);
    CHECK(quick->rounds == full->rounds);
    CHECK(quick->messages == full->messages);
    CHECK(quick->max_sent_bytes == full->max_sent_bytes);
    REQUIRE(quick->busiest.has_value() == full->busiest.has_value());
    if (quick->busiest) CHECK(quick->busiest->busy_ns == full->busiest->busy_ns);
  } else {
    CHECK(quick->time_ns == Approx(full->time_ns).epsilon(0.02));
  }
  CHECK(quick->class_count < network.rank_count());
  return quick->class_count;
}

NetworkSpec spec_of(const std::string& kind, uint32_t ranks) {
  if (kind == "fat tree") return fat_tree_spec();
  if (kind == "dragonfly") return dragonfly_spec(ranks / 64);
  return torus_spec({8, 8, ranks / 64});
}

/// Steps of one rank.
size_t length(const AlgorithmInfo& algorithm, const Network& network) {
  PlanRequest plan;
  plan.shape = network.shape();
  plan.rank = 1;
  plan.parameters = request_for(algorithm, 0).parameters;
  size_t steps = 0;
  const Schedule schedule = algorithm.build(plan);
  for (const Lane& lane : schedule.lanes) steps += lane.steps.size();
  return steps;
}

struct Scope {
  uint32_t ranks;
  size_t longest;  ///< schedules of one rank; those that grow with the ranks take seconds
  std::vector<uint64_t> bytes;
};

/// "ring on torus" for all whose ranks fell into classes.
std::set<std::string> compare_all(const std::vector<Scope>& scopes) {
  std::set<std::string> reduced;
  for (const std::string kind : {"fat tree", "dragonfly", "torus"}) {
    for (const Scope& scope : scopes) {
      const Result<Network> network = Network::make(spec_of(kind, scope.ranks), scope.ranks);
      REQUIRE(network.ok());
      for (const AlgorithmInfo* algorithm : all_algorithms()) {
        if (!fits(*algorithm, *network) || length(*algorithm, *network) > scope.longest) continue;
        for (const uint64_t bytes : scope.bytes) {
          INFO(kind << ", " << scope.ranks << " ranks, " << name(algorithm->collective) << ' ' << algorithm->name << ", "
                    << bytes);
          if (compare_walks(*network, *algorithm, bytes) > 0) reduced.insert(fmt::format("{} on {}", algorithm->name, kind));
        }
      }
    }
  }
  return reduced;
}

}  // namespace

TEST_CASE("classes agree with the walk of every event: all algorithms, all topologies") {
  const std::set<std::string> reduced =
      compare_all({{64, SIZE_MAX, {1 << 20}}, {256, 520, {1 << 20}}, {1024, 100, {8, 1 << 20}}});
  for (const std::string kind : {"fat tree", "dragonfly", "torus"}) {
    for (const std::string symmetric : {"ring", "recursive_doubling", "pairwise", "dissemination"}) {
      INFO(symmetric << " on " << kind);
      CHECK(reduced.count(symmetric + " on " + kind) == 1);
    }
  }
}

TEST_CASE("the same, up to 4096 ranks", "[.long]") {
  compare_all({{256, SIZE_MAX, {8, 1 << 20}}, {1024, SIZE_MAX, {8, 1 << 20}}, {4096, 100, {8, 1 << 20}}});
}

TEST_CASE("many ranks: classes are walked, or it is said what was done in their place") {
  const Result<Network> network = Network::make(fat_tree_spec(), 8192);
  REQUIRE(network.ok());
  const auto predicted = [&](Collective collective, std::string_view algorithm) {
    const Result<Prediction> seen = simulate(*network, request_for(*find_algorithm(collective, algorithm), 1 << 20));
    INFO(seen.status().message());
    REQUIRE(seen.ok());
    CHECK(seen->time_ns > 0);
    return *seen;
  };
  const Prediction doubling = predicted(Collective::allreduce, "recursive_doubling");
  CHECK(doubling.method == WalkMethod::classes);
  CHECK(doubling.class_count < 100);
  CHECK(doubling.rounds >= 13);
  const Prediction chain = predicted(Collective::broadcast, "chain");
  CHECK(chain.method == WalkMethod::every_event);
  CHECK(chain.note.find("not alike") != std::string::npos);
}

TEST_CASE("what is too long to be built or walked is priced by its formula, and says so") {
  const Result<Network> network = Network::make(torus_spec({4, 4}), 16);
  REQUIRE(network.ok());
  const AlgorithmInfo& ring = *find_algorithm(Collective::allreduce, "ring");
  SimulationRequest request = request_for(ring, 1 << 20);
  request.max_steps_built = 100;
  const Result<Prediction> unbuilt = simulate(*network, request);
  REQUIRE(unbuilt.ok());
  CHECK(unbuilt->method == WalkMethod::formula);
  CHECK(unbuilt->note.find("more than 100 steps") != std::string::npos);
  CHECK(unbuilt->time_ns == ring.cost_ns(network->shape(), 1 << 20, request.parameters, network->cost_model()));
  request = request_for(*find_algorithm(Collective::broadcast, "chain"), 1 << 20);
  request.max_steps_walked = 1;
  const Result<Prediction> unwalked = simulate(*network, request);
  REQUIRE(unwalked.ok());
  CHECK(unwalked->method == WalkMethod::formula);
  CHECK(unwalked->note.find("too many to walk") != std::string::npos);
}
