// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "dtypes.hpp"
#include "report.hpp"

using namespace tutti_perf;

namespace {

Row sample() {
  Row row;
  row.collective = Collective::allreduce;
  row.bytes = 4'000'000;
  row.count = 1'000'000;
  row.has_in_place = true;
  row.out_of_place = {1000, 990, 1100, 20, 0, 500, 1200, 30};
  row.in_place = {2000, 1990, 2100, 20, 3, 500, 2500, 0};
  return row;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::string> lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> result;
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

}  // namespace

TEST_CASE("a line of the table has the columns of nccl-tests, then the percentiles") {
  const Options options;
  CHECK(words(table_row(options, 4, sample())) == std::vector<std::string>{"4000000", "1000000", "float32", "sum", "-1", "1000.0",
                                                                           "4.00", "6.00", "0", "2000.0", "2.00", "3.00", "3",
                                                                           "990.0", "1100.0", "1990.0", "2100.0"});
}

TEST_CASE("the heading is as wide as the lines, and names each column") {
  Options options;
  for (const Model* model : {static_cast<const Model*>(nullptr), &find_model("gpt2")}) {
    options.model = model;
    const auto heading = lines(table_header(options, Collective::allreduce));
    REQUIRE(heading.size() == 3);
    const std::string row = table_row(options, 4, sample());
    for (const std::string& line : heading) {
      CHECK(line.front() == '#');
      CHECK(line.size() + 1 == row.size());
    }
    const auto names = words(heading[1].substr(1));
    CHECK(names.size() == words(row).size());
    CHECK(names.front() == "size");
    CHECK(names.back() == "p99");
  }
}

TEST_CASE("what does not exist is N/A") {
  Options options;
  options.check_runs = 0;
  Row row = sample();
  row.collective = Collective::broadcast;
  row.root = 2;
  row.has_in_place = false;
  const auto columns = words(table_row(options, 4, row));
  REQUIRE(columns.size() == 17);
  CHECK(columns[3] == "none");
  CHECK(columns[4] == "2");
  CHECK(columns[8] == "N/A");
  CHECK(columns[9] == "N/A");
  CHECK(columns[16] == "N/A");
}

TEST_CASE("with computation the columns are those of overlap") {
  Options options;
  options.overlap = true;
  options.mode = Mode::nonblocking;
  const auto heading = lines(table_header(options, Collective::allreduce));
  const std::string row = table_row(options, 4, sample());
  for (const std::string& line : heading) CHECK(line.size() + 1 == row.size());
  CHECK(words(heading[1].substr(1)).size() == words(row).size());
  CHECK(words(row) == std::vector<std::string>{"4000000", "1000000", "float32", "sum", "-1", "1000.0", "500.0", "1200.0", "30.0",
                                               "0", "2000.0", "500.0", "2500.0", "0.0", "3"});
  CHECK_THAT(lines(csv_row(options, 4, sample()))[0], Catch::EndsWith(",nonblocking,500.000,1200.000,30.00"));
}

TEST_CASE("the lines of several threads count the bytes of all") {
  Options options;
  options.parallel = 2;
  CHECK(words(table_row(options, 4, sample()))[6] == "8.00");
}

TEST_CASE("the summary: one line for all rows of a collective") {
  const Options options;
  Row small = sample();
  small.bytes = 8;
  small.out_of_place.mean_us = 2;
  const std::string line = summary_row(options, 4, {small, sample()});
  CHECK(words(line) == std::vector<std::string>{"allreduce", "2", "8", "2.00", "4000000", "1000.0", "6.00", "6.00", "6"});
  CHECK(words(lines(summary_header())[0].substr(1)).size() == words(line).size());
}

TEST_CASE("roots that rotate, and names that are too long for a column") {
  const Options options;
  Row row = sample();
  row.collective = Collective::reduce;
  row.rotate = true;
  row.dtype = TUTTI_FLOAT64_INT32;
  row.op = TUTTI_MINLOC;
  const std::string text = table_row(options, 4, row);
  CHECK(words(text)[2] == "f64_i32");
  CHECK(words(text)[4] == "rotate");
  CHECK(text.size() == table_row(options, 4, sample()).size());
  CHECK_THAT(csv_row(options, 4, row), Catch::Contains(",float64_int32,minloc,rotate,"));
}

TEST_CASE("CSV: a line for each variant, as many fields as the heading") {
  const Options options;
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  const auto rows = lines(csv_row(options, 4, sample()));
  REQUIRE(rows.size() == 2);
  CHECK(commas(rows[0]) == commas(csv_header()));
  CHECK(commas(rows[1]) == commas(csv_header()));
  CHECK(rows[0] ==
        "allreduce,4000000,1000000,float32,sum,-1,1,out_of_place,20,1000.000,990.000,1100.000,4.000000,6.000000,0,"
        "blocking,,,");
  CHECK_THAT(rows[1], Catch::Contains(",in_place,") && Catch::EndsWith(",3,blocking,,,"));
}

TEST_CASE("JSON holds the rows, the environment and the verdict") {
  Options options;
  Environment environment;
  environment.library_version = "0.1.0";
  environment.rank_count = 4;
  environment.transports = "shm";
  environment.algorithms = {{"allreduce", "ring"}};
  environment.counters = {{"sleeps", 12}};
  Row barrier;
  barrier.collective = Collective::barrier;
  barrier.out_of_place.mean_us = 5;
  const auto json = nlohmann::json::parse(json_document(options, environment, {sample(), barrier}, {"a note"}));
  CHECK(json["format"] == "tutti-perf 1");
  CHECK(json["ranks"] == 4);
  CHECK(json["algorithms"]["allreduce"] == "ring");
  CHECK(json["wrong"] == 3);
  CHECK(json["notes"][0] == "a note");
  CHECK(json["counters"]["sleeps"] == 12);
  REQUIRE(json["rows"].size() == 2);
  CHECK(json["rows"][0]["bytes"] == 4'000'000);
  CHECK(json["rows"][0]["dtype"] == "float32");
  CHECK(json["rows"][0]["root"].is_null());
  CHECK(json["rows"][0]["out_of_place"]["busbw_gb_per_s"] == Approx(6.0));
  CHECK(json["rows"][0]["in_place"]["wrong"] == 3);
  CHECK(json["rows"][1]["dtype"].is_null());
  CHECK(json["rows"][1]["in_place"].is_null());
  CHECK(json["average_busbw_gb_per_s"] == Approx(4.5));  // of 6 and 3; a barrier moves nothing

  options.check_runs = 0;
  const auto unchecked = nlohmann::json::parse(json_document(options, environment, {sample()}, {}));
  CHECK(unchecked["wrong"].is_null());
  CHECK(unchecked["rows"][0]["out_of_place"]["wrong"].is_null());
}

TEST_CASE("words for types and operations") {
  CHECK(parse_dtypes("float32,f32,float") == std::vector<tutti_dtype_t>{TUTTI_FLOAT32});
  CHECK(parse_dtypes("all").size() == 23);
  CHECK(parse_ops("avg,sum") == std::vector<tutti_op_t>{TUTTI_AVG, TUTTI_SUM});
  for (const DTypeInfo& type : all_dtypes()) {
    CHECK(parse_dtypes(type.name) == std::vector<tutti_dtype_t>{type.dtype});
    CHECK(parse_dtypes(type.brief) == std::vector<tutti_dtype_t>{type.dtype});
    CHECK(info(type.dtype).name == type.name);
  }
  for (const OpInfo& op : all_ops()) CHECK(op_name(op.op) == op.name);
}
