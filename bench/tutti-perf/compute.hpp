// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tutti_perf {

/// Arithmetic that touches no memory and takes as long as it is told, the same work every time: on a busy machine it takes
/// longer, as an application's would.
class Computation {
 public:
  /// About `wanted_us` of it, by a measurement on this thread.
  static Computation lasting(double wanted_us);
  void run() const;
  uint64_t rounds() const { return rounds_; }

 private:
  explicit Computation(uint64_t rounds) : rounds_(rounds) {}
  uint64_t rounds_;
};

}  // namespace tutti_perf
