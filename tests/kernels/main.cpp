// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// test_kernels scalar|sse4|avx2 [Catch2 arguments]: the level under test. 77 if this machine does not have it.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdio>
#include <string_view>

#include "level_under_test.hpp"

namespace {
tutti::CpuLevel level_under_test_ = tutti::CpuLevel::scalar;
}

tutti::CpuLevel level_under_test() { return level_under_test_; }

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "scalar") {
    level_under_test_ = tutti::CpuLevel::scalar;
  } else if (name == "sse4") {
    level_under_test_ = tutti::CpuLevel::sse4;
  } else if (name == "avx2") {
    level_under_test_ = tutti::CpuLevel::avx2;
  } else {
    std::fprintf(stderr, "usage: %s scalar|sse4|avx2 [Catch2 arguments]\n", argv[0]);
    return 2;
  }
  if (level_under_test_ > tutti::detected_cpu_level()) {
    std::fprintf(stderr, "this machine has no %s: skipped\n", argv[1]);
    return 77;
  }
  argv[1] = argv[0];
  return Catch::Session().run(argc - 1, argv + 1);
}
