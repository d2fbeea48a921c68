// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "options.hpp"

namespace tutti::launch {

namespace {
std::string cell(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text + "  ";
}
}  // namespace

bool failed(const RankRecord& rank) {
  return rank.state == RankRecord::State::lost ||
         (rank.state == RankRecord::State::ended && rank.exit.wait_status != 0);
}

std::string signal_text(int signal) {
  const char* const abbreviation = sigabbrev_np(signal);
  const char* const description = sigdescr_np(signal);
  if (abbreviation == nullptr || description == nullptr) return fmt::format("signal {}", signal);
  return fmt::format("SIG{}, {}", abbreviation, description);
}

std::string describe_end(const RankRecord& rank, const std::string& command) {
  switch (rank.state) {
    case RankRecord::State::not_started:
      return "was not started";
    case RankRecord::State::running:
      return "was still running";
    case RankRecord::State::lost:
      return "was lost with its host";
    case RankRecord::State::ended:
      break;
  }
  if (rank.exit.start_errno != 0) {
    if (rank.exit.start_step == "run")
      return fmt::format("cannot run '{}': {}", command, strerror(rank.exit.start_errno));
    return fmt::format("could not {}: {}", rank.exit.start_step, strerror(rank.exit.start_errno));
  }
  const int status = rank.exit.wait_status;
  if (!WIFSIGNALED(status)) return fmt::format("exited with {}", WEXITSTATUS(status));
  return fmt::format("was killed by signal {} ({}){}", WTERMSIG(status), signal_text(WTERMSIG(status)),
                     WCOREDUMP(status) ? ", core dumped" : "");
}

int exit_code(const Outcome& outcome, const std::vector<RankRecord>& ranks) {
  const bool all_good = std::none_of(ranks.begin(), ranks.end(), [](const RankRecord& rank) {
    return failed(rank) || rank.state != RankRecord::State::ended;
  });
  switch (outcome.cause) {
    case Outcome::Cause::none:
      return all_good ? 0 : kExitLauncher;
    case Outcome::Cause::signal:
      return all_good ? 0 : 128 + outcome.signal;  // ranks that end well when told to are no failure
    case Outcome::Cause::timeout:
      return kExitTimeout;
    case Outcome::Cause::launcher:
      return kExitLauncher;
    case Outcome::Cause::output_closed:
      return 128 + SIGPIPE;
    case Outcome::Cause::rank:
      break;
  }
  const RankRecord& first = ranks[outcome.rank];
  if (first.state != RankRecord::State::ended) return kExitLauncher;
  if (first.exit.start_errno != 0) return first.exit.start_errno == ENOENT ? kExitNotFound : kExitCannotRun;
  const int status = first.exit.wait_status;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string make_table(const Outcome& outcome, const std::vector<RankRecord>& ranks, const std::string& command,
                       size_t limit) {
  size_t host_width = 4;
  for (const RankRecord& rank : ranks) host_width = std::max(host_width, rank.host.size());
  std::string table = "  " + cell("rank", 6) + cell("host", host_width) + cell("pid", 8) + "end\n";
  size_t left_out = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankRecord& rank = ranks[i];
    const bool first = outcome.cause == Outcome::Cause::rank && outcome.rank == i;
    if (ranks.size() > limit && !first && (!failed(rank) || rank.ended_by_us)) {
      ++left_out;
      continue;
    }
    const std::string pid = rank.pid == 0 ? "-" : fmt::format("{}", rank.pid);
    const char* const mark = first                              ? "   <- first failure"
                             : rank.ended_by_us && failed(rank) ? "   (while the job was ended)"
                                                                : "";
    table += "  " + cell(fmt::format("{}", i), 6) + cell(rank.host, host_width) + cell(pid, 8) +
             describe_end(rank, command) + mark + "\n";
  }
  if (left_out > 0) table += fmt::format("  {} more ranks ended well or while the job was ended\n", left_out);
  return table;
}

std::string last_line(const Outcome& outcome, const std::vector<RankRecord>& ranks, const std::string& command,
                      const std::string& output_file) {
  switch (outcome.cause) {
    case Outcome::Cause::none:
      return "";
    case Outcome::Cause::signal:
      return fmt::format("ended by signal {} ({})", outcome.signal, signal_text(outcome.signal));
    case Outcome::Cause::output_closed:
      return "whoever read the output has closed it: the job was ended";
    case Outcome::Cause::timeout:
    case Outcome::Cause::launcher:
      return outcome.text;
    case Outcome::Cause::rank:
      break;
  }
  const RankRecord& rank = ranks[outcome.rank];
  return fmt::format("rank {} {} (host {}, pid {}{})", outcome.rank, describe_end(rank, command), rank.host, rank.pid,
                     output_file.empty() ? "" : "; its stderr is in " + output_file);
}

}  // namespace tutti::launch
