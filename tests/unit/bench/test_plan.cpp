// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "dtypes.hpp"
#include "errors.hpp"
#include "plan.hpp"

using namespace tutti_perf;

TEST_CASE("series: every type with every operation that exists, and each root") {
  Options options;
  options.dtypes = parse_dtypes("all");
  options.ops = parse_ops("all");
  options.every_dtype = options.every_op = true;
  // 8 integer types with 11 operations, 4 + 2 floats with 6, 2 complex with 4, bool 7, byte 3, 5 pairs with 2.
  const size_t combinations = 8 * 11 + 6 * 6 + 2 * 4 + 7 + 3 + 5 * 2;
  CHECK(series_of(options, Collective::allreduce, 3).size() == combinations);
  CHECK(series_of(options, Collective::scan, 3).size() == combinations - 8 - 6 - 2);  // no avg
  CHECK(series_of(options, Collective::allgather, 3).size() == 23);
  CHECK(series_of(options, Collective::barrier, 3).size() == 1);
  options.roots = Roots::each;
  CHECK(series_of(options, Collective::gather, 3).size() == 23 * 3);
  CHECK(series_of(options, Collective::allreduce, 3).size() == combinations);
  options.roots = Roots::rotate;
  CHECK(series_of(options, Collective::gather, 3).at(0).rotate);
  CHECK_FALSE(series_of(options, Collective::allgather, 3).at(0).rotate);
}

TEST_CASE("rows: blocks are whole, and a whole model is not cut into blocks") {
  Options options;
  options.sweep = {8, 64, 2, 0};
  uint64_t left_out = 0;
  for (const Workload& one : work_of(options, {Collective::alltoall}, 3, &left_out)) CHECK(one.counts.at(0) % 3 == 0);
  CHECK(work_of(options, {Collective::barrier}, 3, &left_out).size() == 1);
  options.model = &find_model("vgg16");
  CHECK(work_of(options, {Collective::allreduce}, 3, &left_out).back().whole_model);
  const auto blocks = work_of(options, {Collective::allgather}, 3, &left_out);
  CHECK_FALSE(blocks.back().whole_model);
  for (const Workload& one : blocks) CHECK(one.counts.at(0) % 3 == 0);
}

TEST_CASE("the window of message_rate fits into memory") {
  Options options;
  CHECK(window_of(options, 0) == kDefaultWindow);
  CHECK(window_of(options, 8) == kDefaultWindow);
  CHECK(window_of(options, kWindowBytes / 4) == 4);
  CHECK(window_of(options, 8 * kWindowBytes) == 1);
  options.outstanding = 200;
  CHECK(window_of(options, 8 * kWindowBytes) == 200);
}

TEST_CASE("the cycle of calls: everything with everything, within a limit") {
  Options options;
  options.communicators = 4;
  CHECK(cycle_of(options, {Collective::gather}, 6, 5) == 12);
  Series rotating{Collective::gather};
  rotating.rotate = true;
  CHECK(cycle_of(options, rotating, 6, 5) == 60);
  CHECK_THROWS_WITH(cycle_of(options, rotating, 4001, 5), Catch::Contains("80020 different calls"));
  options.outstanding = 9;
  CHECK(batch_of(options, Collective::gather) == 9);
  CHECK(batch_of(options, Collective::message_rate) == 1);
}
