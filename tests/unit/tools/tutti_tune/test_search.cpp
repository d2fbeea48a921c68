// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <cmath>

#include "search.hpp"

namespace tutti::tune {
namespace {

/// Runs rounds in which contender n takes ns[n], and more every so often.
size_t measured_until_found(Search& search, const std::vector<double>& ns, size_t rounds) {
  size_t measured = 0;
  for (const size_t one : search.alive()) search.record_first(one, ns[one] * 1.5);
  search.prune(0);
  for (size_t round = 1; round <= rounds; ++round) {
    for (const size_t one : search.alive()) {
      const bool disturbed = (round * 7 + one * 3) % 5 < 2;
      search.record(one, ns[one] * (disturbed ? 8 : 1));
      ++measured;
    }
    search.prune(round);
  }
  return measured;
}

}  // namespace

TEST_CASE("the fastest is found though what else the machine does disturbs two of five measurements") {
  for (size_t fastest = 0; fastest < 20; ++fastest) {
    std::vector<double> ns;
    for (size_t n = 0; n < 20; ++n) ns.push_back(n == fastest ? 100 : 112 + 9 * static_cast<double>(n));
    Search search(std::vector<bool>(20, true));
    const size_t measured = measured_until_found(search, ns, 20);
    CHECK(search.best() == fastest);
    CHECK(search.ns(fastest) == 100);
    CHECK(measured < 20 * 20 / 2);
    CHECK(search.alive().size() <= 3);
  }
}

TEST_CASE("what is hopeless is measured once") {
  Search search({true, true, true});
  search.record_first(0, 10);
  search.record_first(1, 100);
  search.record_first(2, 30);
  search.prune(0);
  CHECK(search.alive() == std::vector<size_t>{0, 2});
  CHECK(search.ns(1) == 100);
}

TEST_CASE("those that are nearly as fast all stay") {
  Search search(std::vector<bool>(10, true));
  measured_until_found(search, std::vector<double>(10, 50), 20);
  CHECK(search.alive().size() == 10);
}

TEST_CASE("the halves do not know of each other, and who is kept stays however slow") {
  Search search({true, true, true});
  search.keep(2);
  for (size_t round = 1; round <= 6; ++round) {
    search.record(0, 10, 0);
    search.record(1, 20, 0);
    search.record(2, 500, 0);
    search.record(0, 40, 1);
    search.record(1, 30, 1);
    search.record(2, 5, 1);
    search.prune(round);
  }
  CHECK(search.best(0) == 0);
  CHECK(search.ns(0, 1) == 40);
  CHECK(search.ns(2, 1) == 5);
  CHECK(search.alive() == std::vector<size_t>{0, 2});
}

TEST_CASE("who takes no part, or withdraws, has no time") {
  Search search({false, true, true});
  CHECK(search.alive() == std::vector<size_t>{1, 2});
  CHECK(std::isinf(search.ns(0)));
  search.record_first(1, 5);
  search.withdraw(1);
  CHECK(std::isinf(search.ns(1)));
  CHECK(search.alive() == std::vector<size_t>{2});
  search.withdraw(2);
  CHECK(search.best() == SIZE_MAX);
  search.prune(1);
}

TEST_CASE("what slows a whole round down, or one contender in a few, does not count") {
  Search search({true, true});
  const double slow[] = {1, 3, 1, 9, 2, 1, 1, 4};
  for (size_t round = 0; round < std::size(slow); ++round) {
    search.record(0, 100 * slow[round] * (round == 1 || round == 6 ? 5 : 1));
    search.record(1, 110 * slow[round] * (round == 0 ? 7 : 1));
  }
  CHECK(search.best() == 0);
  CHECK(search.ns(0) == 100);
  CHECK(search.ns(1) == Approx(110));
}

TEST_CASE("the mean of the lowest third") {
  CHECK(mean_of_lowest({5}) == 5);
  CHECK(mean_of_lowest({4, 1, 3, 2}) == 1.5);
  CHECK(mean_of_lowest({9, 8, 7, 6, 5, 1, 2, 3}) == 2);
  CHECK(std::isinf(mean_of_lowest({})));
}

TEST_CASE("who was far behind is tried again only if it was catching up") {
  CHECK(worth_a_try({0, 0}));
  CHECK(worth_a_try({2.5, 9}));
  CHECK(worth_a_try({4, 8}));
  CHECK_FALSE(worth_a_try({4, 4}));
  CHECK_FALSE(worth_a_try({8, 0}));
}

}  // namespace tutti::tune
