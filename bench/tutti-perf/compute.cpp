// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "compute.hpp"

#include <algorithm>
#include <chrono>

namespace tutti_perf {

void Computation::run() const {
  // A chain: each round waits for the one before. Through a volatile, so that the compiler knows neither end.
  volatile double kept = 2;
  double value = kept;
  for (uint64_t round = 0; round < rounds_; ++round) value = value * 0.999 + 0.001;
  kept = value;
}

Computation Computation::lasting(double wanted_us) {
  using SteadyClock = std::chrono::steady_clock;
  constexpr uint64_t kTrialRounds = 20000;
  double fastest_us = 1e9;  // the one that nothing else disturbed
  for (int trial = 0; trial < 5; ++trial) {
    const SteadyClock::time_point begin = SteadyClock::now();
    Computation(kTrialRounds).run();
    fastest_us = std::min(fastest_us, std::chrono::duration<double, std::micro>(SteadyClock::now() - begin).count());
  }
  const double rounds = wanted_us / std::max(fastest_us, 0.001) * static_cast<double>(kTrialRounds);
  return Computation(static_cast<uint64_t>(std::clamp(rounds, 1.0, 1e15)));
}

}  // namespace tutti_perf
