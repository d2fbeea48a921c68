// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "select/contenders.hpp"
#include "select/select.hpp"
#include "select/tuning.hpp"

namespace tutti {
namespace {

using Catch::Matchers::Contains;

CostModel network(uint32_t ranks) { return CostModel::uniform(ranks, {2000, 0.2, 100, 1, 0.1}, 100); }

constexpr const char* kFile = R"(# what a person may write
tutti-tuning 1
machine Some processor, 2 cores

use allreduce ranks=4 nodes=1 links=shm type=float bytes=any ring:channels=2   # large ones
use allreduce ranks=4 nodes=1 links=shm type=float bytes<=4K flat
use allreduce ranks=4 nodes=1 links=shm bytes<=64K recursive_doubling
time allreduce ranks=4 nodes=1 links=shm type=float bytes=4K flat 5.25us
use allreduce ranks=8 nodes=2 links=shm/tcp type=float bytes=any halving
use allreduce ranks=16 nodes=1 links=shm bytes=any tree
use allreduce ranks=4 nodes=1 links=shm type=int bytes=any direct
use broadcast ranks=4 nodes=1 bytes<=1M binomial
)";

TuningTable table_of(std::string_view text) {
  Result<TuningTable> table = TuningTable::parse(text, "file");
  REQUIRE(table.ok());
  return std::move(*table);
}

std::string failure_of(std::string_view lines) {
  const Result<TuningTable> table = TuningTable::parse("tutti-tuning 1\n" + std::string(lines), "file");
  REQUIRE_FALSE(table.ok());
  CHECK(table.status().code() == TUTTI_ERR_CONFIG);
  return std::string(table.status().message());
}

TuningKey key(Collective collective, uint32_t ranks, uint32_t nodes, std::string links, TypeClass type = TypeClass::floats) {
  return {collective, type, ranks, nodes, std::move(links)};
}

/// The choice of a communicator that has this table.
Choice choice(const char* file, Collective collective, uint32_t ranks, uint64_t bytes, Requirements required = {},
              const std::string& force = "") {
  Selector selector(Shape::flat(ranks), network(ranks), {});
  REQUIRE(selector.force(collective, force).ok());
  selector.set_tuning(std::make_shared<TuningTable>(table_of(file)), 1, "shm");
  const auto table = selector.table(collective, required);
  REQUIRE(table.ok());
  return select(*table, bytes).choice;
}

Requirements floats() {
  Requirements required;
  required.type = TypeClass::floats;
  return required;
}

}  // namespace

TEST_CASE("a tuning file is read, whatever the order of its lines") {
  const TuningTable table = table_of(kFile);
  const TuningSection* section = table.find(key(Collective::allreduce, 4, 1, "shm"));
  REQUIRE(section != nullptr);
  REQUIRE(section->rows.size() == 3);
  CHECK(section->rows[0].up_to_bytes == 4096);
  CHECK(section->rows[0].algorithm->name == "flat");
  CHECK(section->rows[1].algorithm->name == "recursive_doubling");
  CHECK(section->rows[2].up_to_bytes == UINT64_MAX);
  CHECK(section->rows[2].parameters == Parameters{0, 2});
  CHECK(section->rows[2].line == 5);
  REQUIRE(section->times.size() == 1);
  CHECK(section->times[0].ns == Approx(5250));
  CHECK(table.machines() == std::vector<std::string>{"Some processor, 2 cores"});
}

TEST_CASE("a table that was written is read back the same") {
  const TuningTable table = table_of(kFile);
  const TuningTable again = table_of(table.text());
  CHECK(again.text() == table.text());
  REQUIRE(again.sections().size() == table.sections().size());
  CHECK_THAT(table.text(),
             Contains("use allreduce ranks=4 nodes=1 links=shm type=float bytes=any ring:segment_bytes=0,channels=2") &&
                 Contains("use broadcast ranks=4 nodes=1 bytes<=1M binomial") && Contains("flat:segment_bytes=0 5.25us"));
}

TEST_CASE("what goes to the other ranks chooses the same and keeps its line numbers") {
  const std::string text = without_evidence(kFile);
  CHECK_THAT(text, !Contains("time ") && !Contains("#") && !Contains("machine"));
  const TuningTable table = table_of(text);
  const TuningTable whole = table_of(kFile);
  for (const TuningSection& section : whole.sections()) {
    const TuningSection* other = table.find(section.key);
    REQUIRE(other != nullptr);
    REQUIRE(other->rows.size() == section.rows.size());
    for (size_t n = 0; n < section.rows.size(); ++n) CHECK(other->rows[n].line == section.rows[n].line);
  }
}

TEST_CASE("a bad tuning file is told with line, word and remedy") {
  const std::string begin = "use allreduce ranks=4 nodes=1 bytes=any ";
  CHECK_THAT(failure_of(begin + "rign\n"), Contains("file:2: ") && Contains("'rign'") && Contains("did you mean 'ring'?"));
  CHECK_THAT(failure_of("\n" + begin + "ring:chanels=2\n"),
             Contains("file:3: ") && Contains("'chanels'") && Contains("channels"));
  CHECK_THAT(failure_of("use allreduc ranks=4 nodes=1 bytes=any ring\n"), Contains("'allreduc'") && Contains("'allreduce'"));
  CHECK_THAT(failure_of("use allreduce rank=4 nodes=1 bytes=any ring\n"), Contains("'rank'") && Contains("'ranks'"));
  CHECK_THAT(failure_of("use allreduce ranks=four nodes=1 bytes=any ring\n"), Contains("ranks=four"));
  CHECK_THAT(failure_of("use allreduce ranks=4 nodes=5 bytes=any ring\n"), Contains("nodes=5 is more than ranks=4"));
  CHECK_THAT(failure_of("use allreduce ranks=4 ranks=4 nodes=1 bytes=any ring\n"), Contains("ranks is given twice"));
  CHECK_THAT(failure_of("use allreduce ranks=4 bytes=any ring\n"), Contains("lacks nodes="));
  CHECK_THAT(failure_of("use allreduce ranks=4 nodes=1 type=flaot bytes=any ring\n"), Contains("flaot") && Contains("'float'"));
  CHECK_THAT(failure_of("use broadcast ranks=4 nodes=1 type=float bytes=any binomial\n"), Contains("drop type="));
  CHECK_THAT(failure_of("use allreduce ranks=4 nodes=1 bytes=64K ring\n"), Contains("bytes<=SIZE"));
  CHECK_THAT(failure_of("use allreduce ranks=4 nodes=1 bytes<=64Q ring\n"), Contains("64Q"));
  CHECK_THAT(failure_of("use allreduce ranks=4 nodes=1 bytes=any\n"), Contains("an algorithm is missing"));
  CHECK_THAT(failure_of(begin + "ring tree\n"), Contains("'tree' is too much"));
  CHECK_THAT(failure_of(begin + "ring\n" + begin + "tree\n"), Contains("file:3: line 2 says already"));
  CHECK_THAT(failure_of("time allreduce ranks=4 nodes=1 bytes=4K ring 5ms\n"), Contains("'5ms'") && Contains("5.2us"));
  CHECK_THAT(failure_of("usw allreduce\n"), Contains("'usw'") && Contains("'use'"));
  CHECK_THAT(failure_of("use\n"), Contains("lacks a collective"));
  for (const char* text : {"", "# nothing\n", "{}\n", "tutti-tuning\n"}) {
    CHECK_THAT(std::string(TuningTable::parse(text, "file").status().message()),
               Contains("begins with the line 'tutti-tuning 1'"));
  }
  CHECK_THAT(std::string(TuningTable::parse("tutti-tuning 2\n", "file").status().message()), Contains("version 2"));
}

TEST_CASE("the exact numbers of ranks and nodes come first, then the nearest within a factor of two") {
  const TuningTable table = table_of(kFile);
  const auto match = [&](uint32_t ranks, uint32_t nodes, const char* links, TypeClass type = TypeClass::floats) {
    return table.match(key(Collective::allreduce, ranks, nodes, links, type));
  };
  CHECK(match(4, 1, "shm").section->key.ranks == 4);
  CHECK_THAT(match(4, 1, "shm").how, Contains("measured on 4 ranks on 1 node") && !Contains("nearest"));
  CHECK(match(2, 1, "shm").section->key.ranks == 4);
  CHECK(match(7, 1, "shm").section->key.ranks == 4);
  CHECK_THAT(match(7, 1, "shm").how, Contains("the nearest to 7 ranks"));
  CHECK(match(9, 1, "shm").section->key.ranks == 16);
  // As far from 4 as from 16: the fewer.
  CHECK(match(8, 1, "shm").section->key.ranks == 4);
  CHECK(match(33, 1, "shm").section == nullptr);
  CHECK_THAT(match(33, 1, "shm").how, Contains("file has nothing near 33 ranks on 1 node over shm"));
  CHECK(match(4, 1, "tcp").section == nullptr);
  CHECK(match(8, 2, "shm/tcp").section->key.nodes == 2);
  CHECK(match(8, 3, "shm/tcp").section->key.nodes == 2);
  // A rank a node, or all on one, is another matter than several on each.
  CHECK(match(4, 4, "shm/tcp").section == nullptr);
  CHECK(match(8, 1, "shm/tcp").section == nullptr);
}

TEST_CASE("a class of types that was not measured takes what floats take") {
  const TuningTable table = table_of(kFile);
  const auto type_of = [&](TypeClass type) {
    return table.match(key(Collective::allreduce, 4, 1, "shm", type)).section->key.type;
  };
  CHECK(type_of(TypeClass::integers) == TypeClass::integers);
  CHECK(type_of(TypeClass::floats) == TypeClass::floats);
  CHECK(type_of(TypeClass::small_floats) == TypeClass::floats);
  CHECK(type_of(TypeClass::user) == TypeClass::floats);
  CHECK_THAT(table.match(key(Collective::allreduce, 4, 1, "shm", TypeClass::user)).how, Contains("with type float"));
}

TEST_CASE("a line without links holds for all") {
  const TuningTable table = table_of(kFile);
  CHECK(table.match(key(Collective::broadcast, 4, 1, "anything", TypeClass::integers)).section != nullptr);
}

TEST_CASE("a communicator takes what was measured, with the place where it says so") {
  const Choice small = choice(kFile, Collective::allreduce, 4, 4096, floats());
  CHECK(small.algorithm->name == "flat");
  CHECK_THAT(small.reason, Contains("measured on 4 ranks on 1 node (file:6)"));
  CHECK(choice(kFile, Collective::allreduce, 4, 4097, floats()).algorithm->name == "recursive_doubling");
  CHECK(choice(kFile, Collective::allreduce, 4, UINT64_MAX, floats()).parameters == Parameters{0, 2});
  CHECK(choice(kFile, Collective::allreduce, 4, 8).algorithm->name == "direct");  // integers
}

TEST_CASE("where a file says nothing the model does") {
  const Choice beyond = choice(kFile, Collective::broadcast, 4, 2 << 20);
  CHECK_THAT(beyond.reason, Contains("predicted") && Contains("beyond what file says"));
  CHECK(choice(kFile, Collective::broadcast, 4, 1 << 20).algorithm->name == "binomial");
  CHECK_THAT(choice(kFile, Collective::allgather, 4, 8).reason, Contains("predicted") && Contains("nothing near"));
}

TEST_CASE("what cannot be used gives way to the model, for its sizes alone") {
  constexpr const char* kSwing =
      "tutti-tuning 1\n"
      "use allreduce ranks=4 nodes=1 bytes<=64K swing\n"
      "use allreduce ranks=4 nodes=1 bytes=any tree\n";
  CHECK(choice(kSwing, Collective::allreduce, 4, 64).algorithm->name == "swing");
  const Choice five = choice(kSwing, Collective::allreduce, 5, 64);
  CHECK_THAT(five.reason, Contains("not swing, which file:2 says: it needs a power of two ranks") && Contains("predicted"));
  CHECK(choice(kSwing, Collective::allreduce, 5, 64 << 10).algorithm->name != "swing");
  CHECK(choice(kSwing, Collective::allreduce, 5, (64 << 10) + 1).algorithm->name == "tree");
  Requirements canonical = floats();
  canonical.canonical = true;
  const Choice deterministic = choice(kSwing, Collective::allreduce, 4, 1 << 20, canonical);
  CHECK_THAT(deterministic.reason, Contains("not tree, which file:3 says: it is not deterministic"));
  CHECK(deterministic.algorithm->has(kCanonical));
}

TEST_CASE("rows of a tuned table ascend and cover every size") {
  for (uint32_t ranks = 1; ranks <= 40; ++ranks) {
    Selector selector(Shape::flat(ranks), network(ranks), {});
    selector.set_tuning(std::make_shared<TuningTable>(table_of(kFile)), 1, "shm");
    for (const Collective collective : {Collective::allreduce, Collective::broadcast}) {
      const auto table = selector.table(collective, floats());
      REQUIRE(table.ok());
      for (size_t row = 1; row < table->size(); ++row) CHECK((*table)[row - 1].up_to_bytes < (*table)[row].up_to_bytes);
      CHECK(table->back().up_to_bytes == UINT64_MAX);
    }
  }
}

TEST_CASE("what is forced comes before what was measured") {
  CHECK(choice(kFile, Collective::allreduce, 4, 8, floats(), "double_tree").algorithm->name == "double_tree");
  Selector selector(Shape::flat(4), network(4), {});
  CHECK(selector.force(Collective::allreduce, "rign").code() == TUTTI_ERR_CONFIG);
  CHECK(selector.force(Collective::allreduce, "ring").ok());
  CHECK((*selector.table(Collective::allreduce, {}))[0].choice.algorithm->name == "ring");
  CHECK(selector.force(Collective::allreduce, "").ok());
  CHECK((*selector.table(Collective::allreduce, {}))[0].choice.algorithm->name != "ring");
}

TEST_CASE("rows with the same algorithm and parameters have the same number, in all tables") {
  Selector selector(Shape::flat(4), network(4), {});
  selector.set_tuning(std::make_shared<TuningTable>(table_of(kFile)), 1, "shm");
  std::vector<const SelectionRow*> rows;
  std::vector<std::vector<SelectionRow>> tables;
  for (const TypeClass type : {TypeClass::integers, TypeClass::floats, TypeClass::small_floats}) {
    Requirements required;
    required.type = type;
    const auto table = selector.table(Collective::allreduce, required);
    tables.emplace_back(table->begin(), table->end());
  }
  for (const auto& table : tables) {
    for (const SelectionRow& row : table) rows.push_back(&row);
  }
  for (const SelectionRow* a : rows) {
    for (const SelectionRow* b : rows) {
      const bool same = a->choice.algorithm == b->choice.algorithm && a->choice.parameters == b->choice.parameters;
      CHECK(same == (a->number == b->number));
    }
  }
}

TEST_CASE("contenders are ranked, and those that cannot be taken say why") {
  const auto all = rank_contenders(Collective::allreduce, Shape::flat(6), 1 << 20, network(6), floats());
  double before = 0;
  bool excluded = false;
  for (const Contender& one : all) {
    excluded |= !one.excluded.empty();
    CHECK(excluded == !one.excluded.empty());
    if (excluded) continue;
    CHECK(one.predicted_ns >= before);
    before = one.predicted_ns;
  }
  CHECK(excluded);
}

TEST_CASE("the grid has every algorithm that can be taken, and parameters one at a time") {
  const auto grid = contender_grid(Collective::allreduce, Shape::flat(6), floats());
  size_t defaults = 0;
  for (const Contender& one : grid) {
    CHECK(one.algorithm->name != "swing");
    size_t changed = 0;
    bool at_any_size = true;
    for (size_t n = 0; n < one.parameters.size(); ++n) {
      const ParameterInfo& info = one.algorithm->parameters[n];
      if (one.parameters[n] == info.default_value) continue;
      ++changed;
      at_any_size = info.name == "radix";
      CHECK((one.parameters[n] >= info.min && one.parameters[n] <= info.max));
    }
    CHECK(changed <= 1);
    defaults += changed == 0 ? 1 : 0;
    CHECK(differs_at(one, uint64_t{1} << 30));
    CHECK(differs_at(one, 0) == at_any_size);
  }
  CHECK(defaults > 5);
  CHECK(grid.size() > 2 * defaults);
}

}  // namespace tutti
