// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace tutti::tune {

/// Exit codes, as --help lists them.
enum ExitCode : int { kExitOk = 0, kExitUsage = 2, kExitRuntime = 3, kExitInterrupted = 130 };

/// The command line, or a file that it names, asks for something that cannot be.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A call failed, memory is short, a file cannot be written.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tutti::tune
