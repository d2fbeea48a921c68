// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace tutti_perf {

/// Exit codes, as --help lists them.
enum ExitCode : int { kExitOk = 0, kExitWrong = 1, kExitUsage = 2, kExitRuntime = 3 };

/// The command line asks for something that cannot be; what() names the option, the value and what is allowed.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A call failed, memory is short, a file cannot be written.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tutti_perf
