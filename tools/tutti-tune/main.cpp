// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "commands.hpp"
#include "errors.hpp"

namespace tutti::tune {
namespace {

int complain(const std::string& message, int code) {
  fmt::print(stderr, "tutti-tune: {}\n", message);
  return code;
}

/// The first signal asks, the second is obeyed at once.
void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int run_job(const Options& options) {
  const Job job;
  catch_interrupts();
  int code = kExitOk;
  try {
    code = options.judge ? judge(job, options) : tune(job, options);
  } catch (const UsageError& problem) {
    // All ranks see the same: once is enough. The others wait until it is said, since a launcher ends the job with the first that
    // leaves.
    if (job.rank() == 0) complain(problem.what(), kExitUsage);
    code = kExitUsage;
  } catch (const std::exception& problem) {
    job.abort();
    return complain(fmt::format("rank {}: {}", job.rank(), problem.what()), kExitRuntime);
  }
  job.barrier();
  return code;
}

int run(int argc, char** argv) {
  try {
    std::string print;
    const Options options = parse_command_line(argc, argv, &print);
    if (print.empty()) return run_job(options);
    fmt::print("{}", print);
    return std::fflush(stdout) == 0 ? kExitOk : kExitRuntime;
  } catch (const UsageError& problem) {
    return complain(problem.what(), kExitUsage);
  } catch (const std::exception& problem) {
    return complain(problem.what(), kExitRuntime);
  }
}

}  // namespace
}  // namespace tutti::tune

int main(int argc, char** argv) { return tutti::tune::run(argc, argv); }
