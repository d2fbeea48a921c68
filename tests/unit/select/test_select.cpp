// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <new>

#include "select/contenders.hpp"
#include "select/select.hpp"

namespace {

size_t g_allocations = 0;

}  // namespace

// Counts what the hot path may not do. Not inlined: gcc would take malloc's array for one of the caller's type.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++g_allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// A sanitizer's own would not match the operators below.
[[gnu::noinline]] void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes == 0 ? 1 : bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace tutti {
namespace {

CostModel network(uint32_t ranks) { return CostModel::uniform(ranks, {2000, 0.2, 100, 1, 0.1}, 100); }

std::vector<SelectionRow> table_of(Collective collective, uint32_t ranks, std::string_view text = "") {
  Result<std::vector<SelectionRow>> table = selection_table(collective, Shape::flat(ranks), text, network(ranks));
  REQUIRE(table.ok());
  return std::move(*table);
}

std::string failure_of(Collective collective, uint32_t ranks, std::string_view text) {
  const Result<std::vector<SelectionRow>> table = selection_table(collective, Shape::flat(ranks), text, network(ranks));
  REQUIRE_FALSE(table.ok());
  CHECK(table.status().code() == TUTTI_ERR_CONFIG);
  return std::string(table.status().message());
}

double cost_ns(const Choice& choice, uint32_t ranks, uint64_t bytes) {
  return choice.algorithm->cost_ns(Shape::flat(ranks), bytes, choice.parameters, network(ranks));
}

using Catch::Matchers::Contains;

}  // namespace

TEST_CASE("small allreduces take few rounds, large ones move few bytes") {
  const auto few = table_of(Collective::allreduce, 8);
  CHECK(select(few, 8).choice.algorithm->name == "flat");
  CHECK(select(few, uint64_t{1} << 30).choice.algorithm->name == "direct");
  const auto many = table_of(Collective::allreduce, 1000);
  CHECK(select(many, 0).choice.algorithm->name == "recursive_multiplying");
  CHECK(select(many, 8).choice.algorithm->name == "recursive_multiplying");
  CHECK(select(many, uint64_t{1} << 40).choice.algorithm->name == "ring");
  CHECK(select(many, UINT64_MAX).choice.algorithm->name == "ring");
}

// Tests of the whole stack take their sizes from these thresholds (case B017): they must be exact.
TEST_CASE("thresholds are exported: rows ascend, cover every size, and change where the costs cross") {
  for (const Collective collective : {Collective::allreduce, Collective::broadcast, Collective::barrier}) {
    for (uint32_t ranks = 1; ranks <= 17; ++ranks) {
      CAPTURE(name(collective), ranks);
      const auto table = table_of(collective, ranks);
      REQUIRE_FALSE(table.empty());
      CHECK(table.back().up_to_bytes == UINT64_MAX);
      for (size_t row = 0; row + 1 < table.size(); ++row) {
        const uint64_t threshold = table[row].up_to_bytes;
        CHECK(threshold < table[row + 1].up_to_bytes);
        const Choice& one = table[row].choice;
        const Choice& next = table[row + 1].choice;
        CHECK((one.algorithm != next.algorithm || one.parameters != next.parameters));
        CHECK(&select(table, threshold) == &table[row]);
        CHECK(&select(table, threshold + 1) == &table[row + 1]);
        CHECK(cost_ns(table[row].choice, ranks, threshold) <= cost_ns(table[row + 1].choice, ranks, threshold));
        CHECK(cost_ns(table[row].choice, ranks, threshold + 1) >= cost_ns(table[row + 1].choice, ranks, threshold + 1));
      }
    }
  }
}

TEST_CASE("no registered algorithm is predicted to be faster than the chosen one") {
  for (const uint32_t ranks : {2u, 3u, 8u, 100u, 10000u}) {
    const auto table = table_of(Collective::allreduce, ranks);
    for (uint64_t bytes = 1; bytes <= uint64_t{1} << 32; bytes *= 2) {
      const double chosen_ns = cost_ns(select(table, bytes).choice, ranks, bytes);
      for (const AlgorithmInfo* other : all_algorithms()) {
        if (other->collective != Collective::allreduce || ranks > other->max_ranks || other->has(kNested)) continue;
        if (other->has(kPowerOfTwoRanks) && (ranks & (ranks - 1)) != 0) continue;
        Choice choice{other, {}, ""};
        for (const ParameterInfo& info : other->parameters) choice.parameters.push_back(info.default_value);
        CAPTURE(ranks, bytes, other->name);
        CHECK(chosen_ns <= cost_ns(choice, ranks, bytes));
      }
    }
  }
}

TEST_CASE("the ring is not chosen beyond its largest number of ranks") {
  for (const SelectionRow& row : table_of(Collective::allreduce, 10000)) CHECK(row.choice.algorithm->name != "ring");
}

TEST_CASE("reasons name the winner, its time, and the next best") {
  const auto table = table_of(Collective::allreduce, 8);
  for (const SelectionRow& row : table) {
    CHECK_THAT(row.choice.reason, Contains(std::string(row.choice.algorithm->name) + ": "));
    CHECK_THAT(row.choice.reason, Contains(" predicted at "));
    CHECK_THAT(row.choice.reason, Contains(", next best "));
  }
  CHECK_THAT(table_of(Collective::barrier, 8)[0].choice.reason, Contains("the only one"));
}

TEST_CASE("where ranks share processors, what all do at once takes longer, and what two do does not") {
  const std::vector<uint32_t> one_node(8, 0);
  const Price price{100, 0.1, 50, 2, 0.01};
  const CostModel roomy(one_node, price, price, 20, {1, 600, 2000});
  const CostModel crowded(one_node, price, price, 20, {0.25, 600, 2000});
  CHECK(roomy.exchange(0).exchange_ns(1000) == 100 + 2 * 50 + 1000 * 0.1 * 2);
  CHECK(roomy.tree_edge(2).one_way_ns(1000) == 100 + 2 * 50 + 1000 * 0.1);
  // 8 ranks on 2: each processor does the work of 4, and turns to 3 more.
  CHECK(crowded.exchange(0).exchange_ns(1000) == 2100 + 3 * 600 + 4 * (2 * 50 + 1000 * 0.1 * 2));
  CHECK(crowded.tree_edge(2).one_way_ns(1000) == 2100 + 2 * 50 + 1000 * 0.1);
  CHECK(crowded.exchange_of(2, 0).exchange_ns(1000) == 2100 + 2 * 50 + 1000 * 0.1 * 2);
  CHECK(crowded.stream_ns_per_byte(2) == 0.1 * 7);  // 7 messages with two ends each, on 2 processors
  CHECK(roomy.stream_ns_per_byte(2) == 0.1 * 2);
}

TEST_CASE("few processors for many ranks change the choice") {
  const std::vector<uint32_t> one_node(8, 0);
  const auto choices = [&](double cpus_per_rank) {
    const auto table = selection_table(Collective::allreduce, Shape::flat(8), "", cost_model(one_node, true, cpus_per_rank));
    std::string text;
    for (const SelectionRow& row : *table) text += describe(*row.choice.algorithm, row.choice.parameters) + "\n";
    return text;
  };
  CHECK(choices(1) == choices(INFINITY));
  CHECK(choices(0.25) != choices(1));
}

TEST_CASE("a long vector down a chain goes in longer segments") {
  const CostModel model = cost_model(std::vector<uint32_t>(8, 0), false, 0.25);
  const auto cost_of = [&](uint64_t segment_bytes) {
    const auto forced = selection_table(Collective::broadcast, Shape::flat(8), "chain", model);
    return (*forced)[0].choice.algorithm->cost_ns(Shape::flat(8), 64 << 20, {segment_bytes}, model);
  };
  CHECK(cost_of(256 << 10) < cost_of(64 << 10));
  bool longer = false;
  for (const Collective collective : {Collective::broadcast, Collective::reduce, Collective::scan}) {
    const auto table = selection_table(collective, Shape::flat(8), "", model);
    for (const SelectionRow& row : *table) longer = longer || row.choice.parameters[0] == 256 << 10;
  }
  CHECK(longer);
}

TEST_CASE("contenders that are the same program at a size") {
  const auto grid = contender_grid(Collective::broadcast, Shape::flat(4), {});
  const auto find = [&](std::string_view text) {
    const auto at = std::find_if(grid.begin(), grid.end(),
                                 [&](const Contender& one) { return describe(*one.algorithm, one.parameters) == text; });
    REQUIRE(at != grid.end());
    return *at;
  };
  const Contender chain = find("chain:segment_bytes=64K");
  const Contender longer = find("chain:segment_bytes=256K");
  CHECK(alike_at(chain, longer, 64 << 10));
  CHECK_FALSE(alike_at(chain, longer, 256 << 10));
  CHECK(differs_at(longer, 256 << 10));
  CHECK_FALSE(differs_at(longer, 64 << 10));
  CHECK_FALSE(alike_at(chain, find("binomial:segment_bytes=64K"), 8));
  CHECK_FALSE(alike_at(find("knomial:segment_bytes=0,radix=4"), find("knomial:segment_bytes=0,radix=2"), 8));
}

TEST_CASE("the same arguments give the same table") {
  const auto one = table_of(Collective::broadcast, 12);
  const auto other = table_of(Collective::broadcast, 12);
  REQUIRE(one.size() == other.size());
  for (size_t row = 0; row < one.size(); ++row) {
    CHECK(one[row].up_to_bytes == other[row].up_to_bytes);
    CHECK(one[row].choice.algorithm == other[row].choice.algorithm);
    CHECK(one[row].choice.reason == other[row].choice.reason);
  }
}

TEST_CASE("select allocates nothing") {
  const auto table = table_of(Collective::allreduce, 8);
  const size_t before = g_allocations;
  size_t found = 0;
  for (uint64_t bytes = 1; bytes != 0; bytes *= 2) found += select(table, bytes).choice.algorithm != nullptr;
  CHECK(g_allocations == before);
  CHECK(found == 64);
}

TEST_CASE("an override forces an algorithm and its parameters") {
  const auto table = table_of(Collective::allreduce, 8, "ring:segment_bytes=256K,channels=2");
  REQUIRE(table.size() == 1);
  CHECK(table[0].up_to_bytes == UINT64_MAX);
  CHECK(table[0].choice.algorithm->name == "ring");
  CHECK(table[0].choice.parameters == Parameters{256 * 1024, 2});
  CHECK_THAT(table[0].choice.reason, Contains("ring:segment_bytes=256K,channels=2") && Contains("setting allreduce"));
  CHECK(table_of(Collective::allreduce, 8, "ring")[0].choice.parameters == Parameters{0, 1});
  CHECK(table_of(Collective::allreduce, 8, "ring:channels=3")[0].choice.parameters == Parameters{0, 3});
  // The default is allowed although it lies outside the range.
  CHECK(table_of(Collective::allreduce, 8, "ring:segment_bytes=0")[0].choice.parameters == Parameters{0, 1});
}

TEST_CASE("a description is an override that gives the same choice") {
  const Choice choice = table_of(Collective::allreduce, 8, "ring:channels=3")[0].choice;
  const Choice again = table_of(Collective::allreduce, 8, describe(*choice.algorithm, choice.parameters))[0].choice;
  CHECK(again.algorithm == choice.algorithm);
  CHECK(again.parameters == choice.parameters);
}

TEST_CASE("bad overrides say what is wrong and what there is") {
  CHECK_THAT(failure_of(Collective::allreduce, 8, "rign"), Contains("'rign'") && Contains("recursive_doubling, ring, tree, "));
  CHECK_THAT(failure_of(Collective::broadcast, 8, "ring"), Contains("'ring'") && Contains("binomial, chain, hierarchical"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:chanels=2"),
             Contains("'chanels'") && Contains("channels (1..16, default 1)"));
  CHECK_THAT(failure_of(Collective::barrier, 8, "dissemination:x=1"), Contains("'x'") && Contains("radix (2..64, default 4)"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:channels=17"), Contains("channels=17") && Contains("1..16"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:segment_bytes=7"), Contains("segment_bytes=7") && Contains("8..1G"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:segment_bytes=2X"), Contains("segment_bytes") && Contains("2X"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:channels=two"), Contains("channels") && Contains("two"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:channels"), Contains("channels=VALUE"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:channels=1,channels=2"), Contains("twice"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:"), Contains("no parameter ''"));
  CHECK_THAT(failure_of(Collective::allreduce, 8, "ring:channels=2,"), Contains("no parameter ''"));
  CHECK_THAT(failure_of(Collective::allreduce, 10000, "ring"), Contains("10000 ranks"));
}

}  // namespace tutti
