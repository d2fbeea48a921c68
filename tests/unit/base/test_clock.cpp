// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "base/clock.hpp"

using tutti::Deadline;

namespace {

class HandClock final : public tutti::Clock {
 public:
  uint64_t now_ns() const noexcept override { return now; }
  uint64_t now = 0;
};

}  // namespace

TEST_CASE("a deadline passes at its nanosecond, and never does not come") {
  HandClock clock;
  clock.now = 1000;
  const Deadline deadline = Deadline::after(clock, 500);
  CHECK_FALSE(deadline.passed(clock));
  clock.now = 1499;
  CHECK_FALSE(deadline.passed(clock));
  clock.now = 1500;
  CHECK(deadline.passed(clock));
  clock.now = UINT64_MAX;
  CHECK_FALSE(Deadline().passed(clock));
  clock.now = 1000;
  CHECK(Deadline::after(clock, UINT64_MAX).at_ns == Deadline::kNever);
  CHECK(Deadline::after(clock, UINT64_MAX - 1000).at_ns == Deadline::kNever);
}

TEST_CASE("poll times are rounded up, so that nobody wakes just before a deadline and spins") {
  HandClock clock;
  clock.now = 10;
  CHECK(Deadline().poll_ms(clock) == -1);
  CHECK(Deadline::after(clock, 0).poll_ms(clock) == 0);
  CHECK(Deadline::after(clock, 1).poll_ms(clock) == 1);
  CHECK(Deadline::after(clock, 1'000'000).poll_ms(clock) == 1);
  CHECK(Deadline::after(clock, 1'000'001).poll_ms(clock) == 2);
  CHECK(Deadline::after(clock, uint64_t{1} << 62).poll_ms(clock) == 1'000'000);  // fits an int, wakes to look again
}

TEST_CASE("the system's clock does not go back, its random bytes are not the same twice") {
  const tutti::SystemClock clock;
  uint64_t last = clock.now_ns();
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now = clock.now_ns();
    REQUIRE(now >= last);
    last = now;
  }
  tutti::SystemRandom random;
  std::array<std::byte, 32> first{};
  std::array<std::byte, 32> second{};
  random.fill(first);
  random.fill(second);
  CHECK(first != second);
  random.fill({});
}
