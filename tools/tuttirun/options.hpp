// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "binding.hpp"
#include "hostlist.hpp"

namespace tutti::launch {

/// Exit codes of tuttirun's own; all others are those of the ranks (128 + signal for a signal).
inline constexpr int kExitUsage = 2;
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitLauncher = 125;
inline constexpr int kExitCannotRun = 126;
inline constexpr int kExitNotFound = 127;

/// What the command line asks for.
struct Options {
  enum class Action : uint8_t { run, agent, print };
  Action action = Action::run;
  std::string print_text;  // --help, --version

  std::vector<HostRanks> hosts;
  uint32_t ranks = 0;
  std::vector<std::string> command;
  std::vector<std::string> rsh;  // words; "{host}" is replaced, else the host is appended
  std::string agent_path;        // "": the path of this very program
  std::string interface;         // "": chosen
  std::string directory;         // "": the current one
  std::string output_directory;
  std::vector<std::string> environment;  // NAME=value additions
  BindMode bind = BindMode::automatic;
  uint64_t grace_ns = 0;
  uint64_t timeout_ns = 0;  // 0: none
  uint64_t launch_timeout_ns = 0;
  bool tag_output = false;
  bool keep_going = false;
  bool verbose = false;
};

/// `get_variable` looks into the environment. Errors are one line that names the value and the remedy.
Result<Options> parse_command_line(const std::vector<std::string>& arguments,
                                   const std::function<const char*(const char*)>& get_variable);

/// Splits like a shell does: blanks, '…', "…" and backslash; nothing is expanded.
Result<std::vector<std::string>> split_words(const std::string& text);

}  // namespace tutti::launch
