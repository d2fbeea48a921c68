// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "collectives.hpp"
#include "layout.hpp"
#include "sizes.hpp"
#include "tutti/tutti.h"

namespace tutti_perf {

enum class Mode : uint8_t { blocking, nonblocking, persistent, group };
std::string_view name(Mode mode);

enum class Roots : uint8_t { one, each, rotate };

struct Options {
  std::string print_text;  // not empty: print this and exit with 0

  std::vector<Collective> collectives;
  bool summary = false;  // "all": the table has a line for each collective; what cannot be run is left out, with a note
  std::vector<std::string> notes;
  Sweep sweep;
  bool end_given = false;        // -e on the command line: with a model, larger tensors are left out
  const Model* model = nullptr;  // --sizes-from
  uint64_t iterations = 0;       // 0: as many as fit into kAutoTimeMs
  uint64_t warm_up = 5;
  std::vector<tutti_dtype_t> dtypes = {TUTTI_FLOAT32};
  std::vector<tutti_op_t> ops = {TUTTI_SUM};
  bool every_dtype = false;  // "all": combinations that are not defined are left out
  bool every_op = false;
  Roots roots = Roots::one;
  uint32_t root = 0;
  Counts counts;
  uint64_t check_runs = 1;  // 0: results are not checked
  Injection injection = Injection::none;
  Mode mode = Mode::blocking;
  bool overlap = false;
  uint32_t threads = 1;   // ranks in each process
  uint32_t parallel = 1;  // threads of each rank that call, each on communicators of its own
  uint32_t communicators = 1;
  uint32_t outstanding = 0;                                   // 0: 1, of message_rate kDefaultWindow
  std::vector<std::pair<std::string, std::string>> settings;  // --set
  std::string json;                                           // file; "-": standard output; "": none
  std::string csv;
  bool counters = false;
};

inline constexpr uint64_t kAutoTimeMs = 100;
inline constexpr uint64_t kAutoMinIterations = 20;
inline constexpr uint64_t kAutoMaxIterations = 1000;
inline constexpr uint32_t kDefaultWindow = 64;

/// Arguments without the program's name. Throws UsageError.
Options parse_command_line(std::vector<std::string> arguments);

}  // namespace tutti_perf
