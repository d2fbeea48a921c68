// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "sizes.hpp"
#include "tutti/tutti.h"

namespace tutti_perf {

enum class Collective : uint8_t { allreduce, broadcast, barrier, sendrecv };
std::string_view name(Collective collective);

struct Options {
  std::string print_text;  // not empty: print this and exit with 0

  std::vector<Collective> collectives;
  Sweep sweep;
  bool end_given = false;        // -e on the command line: with a model, larger tensors are left out
  const Model* model = nullptr;  // --sizes-from
  uint64_t iterations = 0;       // 0: as many as fit into kAutoTimeMs
  uint64_t warm_up = 5;
  std::vector<tutti_dtype_t> dtypes = {TUTTI_FLOAT32};
  std::vector<tutti_op_t> ops = {TUTTI_SUM};
  uint32_t root = 0;
  uint64_t check_runs = 1;  // 0: results are not checked
  Injection injection = Injection::none;
  uint32_t threads = 1;
  std::vector<std::pair<std::string, std::string>> settings;  // --set
  std::string json;                                           // file; "-": standard output; "": none
  std::string csv;
  bool counters = false;
};

inline constexpr uint64_t kAutoTimeMs = 100;
inline constexpr uint64_t kAutoMinIterations = 20;
inline constexpr uint64_t kAutoMaxIterations = 1000;

/// Arguments without the program's name. Throws UsageError.
Options parse_command_line(std::vector<std::string> arguments);

}  // namespace tutti_perf
