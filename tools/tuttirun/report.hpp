// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire.hpp"

namespace tutti::launch {

/// What is known of one rank.
struct RankRecord {
  enum class State : uint8_t { not_started, running, ended, lost };
  std::string host;
  uint32_t pid = 0;
  State state = State::not_started;
  ExitReport exit;
  bool ended_by_us = false;  // it ended after tuttirun had begun to end the job
};

/// Why a job ended before its ranks had all ended with 0. The first reason stays.
struct Outcome {
  enum class Cause : uint8_t { none, rank, signal, timeout, launcher, output_closed };
  Cause cause = Cause::none;
  uint32_t rank = 0;  // Cause::rank
  int signal = 0;     // Cause::signal
  std::string text;   // timeout, launcher: the whole sentence
};

bool failed(const RankRecord& rank);
/// "exited with 3", "was killed by signal 11 (SIGSEGV, Segmentation fault)", "cannot run './x': No such file or
/// directory".
std::string describe_end(const RankRecord& rank, const std::string& command);
/// The exit code of tuttirun.
int exit_code(const Outcome& outcome, const std::vector<RankRecord>& ranks);
/// One line per rank: rank, host, pid, how it ended; the first failure marked. In jobs of more than `limit` ranks those
/// that tuttirun ended itself are only counted.
std::string make_table(const Outcome& outcome, const std::vector<RankRecord>& ranks, const std::string& command,
                       size_t limit = 256);
/// The last line: what ended the job. `output_file` is where that rank's stderr went, or "".
std::string last_line(const Outcome& outcome, const std::vector<RankRecord>& ranks, const std::string& command,
                      const std::string& output_file);
/// "SIGTERM, Terminated".
std::string signal_text(int signal);

}  // namespace tutti::launch
