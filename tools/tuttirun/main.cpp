// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "agent.hpp"
#include "host_link.hpp"
#include "options.hpp"
#include "supervise.hpp"

namespace tutti::launch {

namespace {
int complain(std::string_view message, int code) {
  fmt::print(stderr, "tuttirun: {}\n", message);
  return code;
}

/// Descriptors that come later must not become 0, 1 or 2.
void open_standard_streams() {
  int fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDWR);
  if (fd >= 0) close(fd);
}

int be_agent() {
  if (isatty(STDIN_FILENO) != 0)
    return complain("--agent is what tuttirun starts on other hosts, not for use by hand", kExitUsage);
  std::vector<int> signals = {SIGCHLD, SIGTERM, SIGINT, SIGHUP};
  const StartState start = take_over(signals);
  // Copies above the standard streams, which the ranks' children must not find.
  Fd in(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  Fd out(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  close(null);
  run_agent(std::move(in), std::move(out), start, signals);
  return 0;
}

int launch(const Options& options) {
  std::vector<int> signals = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
  const StartState start = take_over(signals);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a killed agent leaves comes to us
  Result<LocalAgent> agent = fork_local_agent(start);
  if (!agent.ok()) return complain(agent.status().message(), kExitLauncher);
  Result<Fd> descriptor = signal_descriptor(signals);
  if (!descriptor.ok()) return complain(descriptor.status().message(), kExitLauncher);
  Loop loop;
  Supervisor supervisor(loop, options, start, std::move(descriptor).value());
  return supervisor.run(std::move(agent).value());
}

int run(const std::vector<std::string>& arguments) {
  open_standard_streams();
  const Result<Options> options = parse_command_line(arguments, getenv);
  if (!options.ok()) return complain(options.status().message(), kExitUsage);
  switch (options.value().action) {
    case Options::Action::print:
      fmt::print("{}", options.value().print_text);
      return 0;
    case Options::Action::agent:
      return be_agent();
    case Options::Action::run:
      break;
  }
  return launch(options.value());
}
}  // namespace

}  // namespace tutti::launch

int main(int argc, char** argv) {
  try {
    return tutti::launch::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& problem) {  // out of memory, or a bug
    fmt::print(stderr, "tuttirun: {}\n", problem.what());
    return tutti::launch::kExitLauncher;
  }
}
