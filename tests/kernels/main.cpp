// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// test_kernels scalar|sse4|avx2|neon [Catch2 arguments]: the level under test. 77 if this machine does not have it.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <string_view>
#include <utility>

#include "level_under_test.hpp"

namespace {
tutti::CpuLevel level_under_test_ = tutti::CpuLevel::scalar;
}

tutti::CpuLevel level_under_test() { return level_under_test_; }

int main(int argc, char** argv) {
  constexpr std::pair<std::string_view, tutti::CpuLevel> kLevels[] = {
      {"scalar", tutti::CpuLevel::scalar},
      {"sse4", tutti::CpuLevel::sse4},
      {"avx2", tutti::CpuLevel::avx2},
      {"neon", tutti::CpuLevel::neon},
  };
  const std::string_view name = argc > 1 ? argv[1] : "";
  bool known = false;
  for (const auto& [level_name, level] : kLevels) {
    if (name != level_name) continue;
    known = true;
    level_under_test_ = level;
  }
  if (!known) {
    std::fprintf(stderr, "usage: %s scalar|sse4|avx2|neon [Catch2 arguments]\n", argv[0]);
    return 2;
  }
  if (level_under_test_ > tutti::detected_cpu_level()) {
    std::fprintf(stderr, "this machine has no %s: skipped\n", argv[1]);
    return 77;
  }
  argv[1] = argv[0];
  return Catch::Session().run(argc - 1, argv + 1);
}
