// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "collectives.hpp"
#include "errors.hpp"
#include "models.hpp"
#include "results.hpp"
#include "sizes.hpp"

using namespace tutti_perf;

TEST_CASE("sizes in bytes") {
  CHECK(parse_bytes("-b", "0") == 0);
  CHECK(parse_bytes("-b", "4096") == 4096);
  CHECK(parse_bytes("-b", "64K") == 65536);
  CHECK(parse_bytes("-b", "1m") == 1048576);
  CHECK(parse_bytes("-b", "2GiB") == 2147483648);
  CHECK(parse_bytes("-b", "3TB") == 3298534883328);
  CHECK(parse_bytes("-b", "8B") == 8);
  CHECK(parse_bytes("-b", "9223372036854775807") == INT64_MAX);
  for (const char* bad : {"", "K", "-1", "1.5M", "1X", "1KX", "1 K", "8388608T", "9223372036854775808", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_bytes("-b", bad), UsageError);
  }
  CHECK_THROWS_WITH(parse_bytes("-e", "12Q"), Catch::StartsWith("-e: '12Q' is not a size"));
}

TEST_CASE("counts") {
  CHECK(parse_count("-n", "20", 1, 100) == 20);
  for (const char* bad : {"", "0", "101", "-3", "1e3", "7x", " 7"}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(parse_count("-n", bad, 1, 100), UsageError);
  }
}

TEST_CASE("a sweep by a factor") {
  CHECK(sweep_bytes({8, 64, 2, 0}) == std::vector<uint64_t>{8, 16, 32, 64});
  CHECK(sweep_bytes({8, 100, 2, 0}) == std::vector<uint64_t>{8, 16, 32, 64});
  CHECK(sweep_bytes({100, 100, 2, 0}) == std::vector<uint64_t>{100});
  CHECK(sweep_bytes({0, 32, 2, 0}) == std::vector<uint64_t>{0, 8, 16, 32});
  CHECK(sweep_bytes({0, 0, 2, 0}) == std::vector<uint64_t>{0});
  CHECK(sweep_bytes({4, 10, 1.5, 0}) == std::vector<uint64_t>{4, 6, 9});
  CHECK(sweep_bytes({1, 4, 1.0000001, 0}) == std::vector<uint64_t>{1, 2, 3, 4});  // goes on all the same
  const auto huge = sweep_bytes({uint64_t{1} << 61, INT64_MAX, 2, 0});            // does not wrap
  CHECK(huge == std::vector<uint64_t>{uint64_t{1} << 61, uint64_t{1} << 62});
  CHECK(sweep_bytes({8, 64 << 20, 2, 0}).size() == 24);
}

TEST_CASE("a sweep by a step") {
  CHECK(sweep_bytes({0, 10, 2, 4}) == std::vector<uint64_t>{0, 4, 8});
  CHECK(sweep_bytes({8, 24, 2, 8}) == std::vector<uint64_t>{8, 16, 24});
  CHECK(sweep_bytes({INT64_MAX - 1, INT64_MAX, 2, INT64_MAX}) == std::vector<uint64_t>{INT64_MAX - 1});
}

TEST_CASE("rows of a sweep are whole elements, each count once") {
  const auto rows = workloads_of_sweep({0, 64, 2, 4}, 8);
  std::vector<uint64_t> counts;
  for (const Workload& row : rows) counts.push_back(row.counts.at(0));
  CHECK(counts == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(rows[3].total_count() == 3);
  // At least one element, and one for each of three ranks, however small the size is.
  CHECK(workloads_of_sweep({4, 4, 2, 0}, 16).at(0).counts == std::vector<uint64_t>{1});
  const auto blocks = workloads_of_sweep({0, 64, 2, 0}, 4, 3);
  REQUIRE(blocks.size() == 4);
  CHECK(blocks[0].counts[0] == 0);
  CHECK(blocks[1].counts[0] == 3);
  CHECK(blocks[3].counts[0] == 15);
  CHECK_FALSE(rows[3].whole_model);
}

TEST_CASE("the networks have the numbers of parameters that are published") {
  struct Known {
    const char* name;
    size_t tensors;
    uint64_t elements;
    uint64_t largest;
  };
  const Known known[] = {
      {"resnet50", 161, 25'557'032, 512ull * 512 * 9},   {"resnet101", 314, 44'549'160, 512ull * 512 * 9},
      {"vgg16", 32, 138'357'544, 4096ull * 25088},       {"bert-base", 199, 109'482'240, 30522ull * 768},
      {"bert-large", 391, 335'141'888, 30522ull * 1024}, {"gpt2", 148, 124'439'808, 50257ull * 768},
      {"gpt2-xl", 580, 1'557'611'200, 50257ull * 1600},
  };
  CHECK(all_models().size() == std::size(known));
  for (const Known& expected : known) {
    CAPTURE(expected.name);
    const Model& model = find_model(expected.name);
    CHECK(model.tensors.size() == expected.tensors);
    CHECK(model.element_count() == expected.elements);
    uint64_t largest = 0;
    for (const Tensor& tensor : model.tensors) largest = std::max(largest, tensor.element_count);
    CHECK(largest == expected.largest);
  }
  CHECK(find_model("resnet50").tensors.front().name == "conv1.weight");
  CHECK_THROWS_WITH(find_model("resnet"), Catch::Contains("'resnet'") && Catch::Contains("resnet50, resnet101"));
}

TEST_CASE("rows of a network: each size once, then all of it") {
  uint64_t left_out = 7;
  const Model& model = find_model("vgg16");
  const auto rows = workloads_of_model(model, 4, UINT64_MAX, &left_out);
  CHECK(left_out == 0);
  REQUIRE(rows.size() > 2);
  CHECK(rows[0].counts == std::vector<uint64_t>{64 * 3 * 3 * 3});
  CHECK(rows[1].counts == std::vector<uint64_t>{64});
  CHECK(rows[1].tensor_count == 2);
  CHECK(rows.back().whole_model);
  CHECK(rows.back().counts.size() == 32);
  CHECK(rows.back().tensor_count == 32);
  CHECK(rows.back().total_count() == 138'357'544);
  CHECK(rows.back().longest_count() == 4096ull * 25088);
  uint64_t tensors = 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i) tensors += rows[i].tensor_count;
  CHECK(tensors == 32);
}

TEST_CASE("rows of a network below a largest size") {
  uint64_t left_out = 0;
  const auto rows = workloads_of_model(find_model("vgg16"), 4, 16 << 20, &left_out);
  CHECK(left_out == 2);  // the first two fully connected layers
  CHECK(rows.back().tensor_count == 30);
  CHECK(rows.back().total_count() == 138'357'544 - 4096ull * 25088 - 4096ull * 4096);
  CHECK(workloads_of_model(find_model("vgg16"), 4, 8, &left_out).empty());
  CHECK(left_out == 32);
}

TEST_CASE("percentiles are values that were measured") {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);
  CHECK(percentile(values, 50) == 50);
  CHECK(percentile(values, 99) == 99);
  CHECK(percentile(values, 100) == 100);
  std::vector<double> few = {3, 1, 2};
  CHECK(percentile(few, 50) == 2);
  CHECK(percentile(few, 99) == 3);
  std::vector<double> one = {5};
  CHECK(percentile(one, 50) == 5);
  std::vector<double> none;
  CHECK(percentile(none, 50) == 0);
}

TEST_CASE("overlap: all of it, none, and never beyond") {
  CHECK(overlap_percent(100, 100, 100) == 100);
  CHECK(overlap_percent(100, 100, 200) == 0);
  CHECK(overlap_percent(100, 120, 170) == Approx(50));
  CHECK(overlap_percent(100, 100, 250) == 0);
  CHECK(overlap_percent(100, 100, 90) == 100);
  CHECK(overlap_percent(0, 100, 100) == 0);
}

TEST_CASE("bandwidths") {
  CHECK(algorithm_bandwidth(1'000'000, 1000) == Approx(1.0));
  CHECK(algorithm_bandwidth(0, 10) == 0);
  CHECK(algorithm_bandwidth(8, 0) == 0);
  CHECK(bus_factor(Collective::allreduce, 1) == 0);
  CHECK(bus_factor(Collective::allreduce, 4) == Approx(1.5));
  CHECK(bus_factor(Collective::broadcast, 4) == 1);
  CHECK(bus_factor(Collective::sendrecv, 4) == 1);
  CHECK(bus_factor(Collective::barrier, 4) == 0);
  CHECK(bus_factor(Collective::reduce, 4) == 1);
  for (const Collective one : {Collective::allgather, Collective::gatherv, Collective::scatter, Collective::reduce_scatter,
                               Collective::alltoall, Collective::alltoallw}) {
    CHECK(bus_factor(one, 4) == Approx(0.75));
  }
}
