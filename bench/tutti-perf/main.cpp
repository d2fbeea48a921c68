// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "errors.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "ranks.hpp"

namespace {

int run(std::vector<std::string> arguments) {
  using namespace tutti_perf;
  try {
    const Options options = parse_command_line(std::move(arguments));
    if (!options.print_text.empty()) {
      fmt::print("{}", options.print_text);
      return std::fflush(stdout) == 0 ? kExitOk : kExitRuntime;
    }
    return run_ranks(options, [&](const Member& member) { return measure_all(options, member); });
  } catch (const UsageError& problem) {
    fmt::print(stderr, "tutti-perf: {}\n", problem.what());
    return kExitUsage;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "tutti-perf: {}\n", problem.what());
    return kExitRuntime;
  }
}

}  // namespace

int main(int argc, char** argv) { return run(std::vector<std::string>(argv + 1, argv + argc)); }
