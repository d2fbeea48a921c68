// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "rows.hpp"

namespace tutti::tune {
namespace {

TuningTime time(uint64_t bytes, const char* algorithm, double ns) {
  const AlgorithmInfo* info = find_algorithm(Collective::allreduce, algorithm);
  REQUIRE(info != nullptr);
  Parameters parameters;
  for (const ParameterInfo& one : info->parameters) parameters.push_back(one.default_value);
  return {bytes, info, parameters, ns};
}

std::vector<std::string_view> names_of(const std::vector<TuningRow>& rows) {
  std::vector<std::string_view> names;
  for (const TuningRow& row : rows) names.push_back(row.algorithm->name);
  return names;
}

}  // namespace

TEST_CASE("rows name the fastest at each size, and change in the middle between two") {
  const std::vector<TuningTime> times = {time(64, "flat", 10),   time(64, "ring", 30),   time(256, "flat", 12),
                                         time(256, "ring", 31),  time(4096, "flat", 90), time(4096, "ring", 40),
                                         time(16384, "ring", 50)};
  const std::vector<TuningRow> rows = rows_of(times);
  CHECK(names_of(rows) == std::vector<std::string_view>{"flat", "ring"});
  CHECK(rows[0].up_to_bytes == 1024);
  CHECK(rows[1].up_to_bytes == UINT64_MAX);
}

TEST_CASE("a change that wins next to nothing is not made") {
  std::vector<TuningTime> times;
  for (uint64_t bytes = 8; bytes <= 1 << 20; bytes *= 4) {
    const bool other = bytes == 512;
    times.push_back(time(bytes, "flat", 100));
    times.push_back(time(bytes, "ring", other ? 98 : 130));
  }
  CHECK(names_of(rows_of(times)) == std::vector<std::string_view>{"flat"});
  times.push_back(time(512, "tree", 80));
  CHECK(names_of(rows_of(times)) == std::vector<std::string_view>{"flat", "tree", "flat"});
}

TEST_CASE("what was not measured at a size is not taken there") {
  const std::vector<TuningTime> times = {time(64, "flat", 10), time(64, "ring", 10.1), time(256, "ring", 12),
                                         time(1024, "flat", 9)};
  CHECK(names_of(rows_of(times)) == std::vector<std::string_view>{"ring", "flat"});
}

TEST_CASE("one size, no size") {
  CHECK(rows_of({}).empty());
  const std::vector<TuningTime> one = {time(64, "flat", 10)};
  CHECK(names_of(rows_of(one)) == std::vector<std::string_view>{"flat"});
}

TEST_CASE("new times replace those of the same size") {
  TuningSection section;
  put_times(section, std::vector<TuningTime>{time(64, "flat", 10), time(64, "ring", 20)});
  put_times(section, std::vector<TuningTime>{time(4096, "flat", 50)});
  put_times(section, std::vector<TuningTime>{time(64, "ring", 5)});
  REQUIRE(section.times.size() == 2);
  CHECK(section.times[0].algorithm->name == "ring");
  CHECK(section.times[1].bytes == 4096);
  CHECK(names_of(section.rows) == std::vector<std::string_view>{"ring", "flat"});
}

}  // namespace tutti::tune
