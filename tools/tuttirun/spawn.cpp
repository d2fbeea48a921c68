// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "spawn.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace tutti::launch {

namespace {
constexpr int kLowestSecretFd = 20;  // above what scripts redirect by hand, below small limits of descriptors

[[noreturn]] void fail_child(int failures, uint32_t rank, const char* step, int error_number) {
  SpawnFailure failure{};
  failure.rank = rank;
  failure.error_number = error_number;
  snprintf(failure.step, sizeof failure.step, "%s", step);
  // Smaller than PIPE_BUF, so records of several ranks do not mix.
  (void)!write(failures, &failure, sizeof failure);
  _exit(error_number == ENOENT ? 127 : 126);
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

bool bind_to(const CpuList& cpus) {
  if (cpus.empty()) return true;
  const size_t count = static_cast<size_t>(*std::max_element(cpus.begin(), cpus.end())) + 1;
  cpu_set_t* const set = CPU_ALLOC(count);
  if (set == nullptr) return false;
  const size_t bytes = CPU_ALLOC_SIZE(count);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
  const bool bound = sched_setaffinity(0, bytes, set) == 0;
  CPU_FREE(set);
  return bound;
}

struct ChildEnds {
  int input, output, errors;
};

bool take_streams(const ChildEnds& ends) {
  return dup2(ends.input, STDIN_FILENO) >= 0 && dup2(ends.output, STDOUT_FILENO) >= 0 &&
         dup2(ends.errors, STDERR_FILENO) >= 0;
}

struct Pipes {
  std::pair<Fd, Fd> input, output, errors;
};

Result<Pipes> make_pipes(bool with_stdin) {
  Pipes pipes;
  if (with_stdin) {
    Result<std::pair<Fd, Fd>> input = make_pipe();
    TUTTI_TRY(input.status());
    pipes.input = std::move(input).value();
  } else {
    pipes.input.first = Fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!pipes.input.first.valid()) return system_error("open /dev/null", errno);
  }
  for (std::pair<Fd, Fd>* pair : {&pipes.output, &pipes.errors}) {
    Result<std::pair<Fd, Fd>> made = make_pipe();
    TUTTI_TRY(made.status());
    *pair = std::move(made).value();
  }
  return pipes;
}

Spawned parent_ends(pid_t pid, Pipes pipes) {
  Spawned spawned;
  spawned.pid = pid;
  spawned.pid_fd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (spawned.pid_fd.valid()) fcntl(spawned.pid_fd.get(), F_SETFD, FD_CLOEXEC);
  spawned.stdin_end = std::move(pipes.input.second);
  spawned.stdout_end = std::move(pipes.output.first);
  spawned.stderr_end = std::move(pipes.errors.first);
  return spawned;
}

[[noreturn]] void run_rank(const SpawnPlan& plan, const StartState& start, int failures, const ChildEnds& ends,
                           pid_t parent, int secret_fd) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before the kernel was told to watch it.
  if (getppid() != parent) _exit(125);
  if (!take_streams(ends)) fail_child(failures, plan.rank, "set up its standard streams", errno);
  if (!bind_to(plan.cpus)) fail_child(failures, plan.rank, "bind to its CPUs (try --bind none)", errno);
  if (secret_fd >= 0) fcntl(secret_fd, F_SETFD, 0);
  give_back(start);
  std::vector<char*> arguments = pointers(plan.command);
  std::vector<char*> variables = pointers(plan.environment);
  environ = variables.data();  // execvp looks for the program in this PATH
  execvp(arguments[0], arguments.data());
  fail_child(failures, plan.rank, "run", errno);
}
}  // namespace

Result<Fd> make_secret_file(const std::string& bytes) {
  Fd file(memfd_create("tutti-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return system_error("memfd_create", errno);
  if (pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return system_error("pwrite", errno);
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  Fd high(fcntl(file.get(), F_DUPFD_CLOEXEC, kLowestSecretFd));
  return high.valid() ? std::move(high) : std::move(file);
}

Result<Spawned> spawn_rank(const SpawnPlan& plan, const StartState& start, int failures) {
  Result<Pipes> pipes = make_pipes(plan.with_stdin);
  TUTTI_TRY(pipes.status());
  SpawnPlan full = plan;
  Fd secret;
  if (!plan.secret.empty()) {
    Result<Fd> file = make_secret_file(plan.secret);
    TUTTI_TRY(file.status());
    secret = std::move(file).value();
    full.environment.push_back(fmt::format("{}={}", plan.secret_variable, secret.get()));
  }
  const ChildEnds ends{pipes->input.first.get(), pipes->output.second.get(), pipes->errors.second.get()};
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork", errno);
  if (pid == 0) run_rank(full, start, failures, ends, parent, secret.get());
  setpgid(pid, pid);  // on both sides: whoever comes first, the group exists before it is signalled
  return parent_ends(pid, std::move(pipes).value());
}

Result<Spawned> spawn_command(const std::vector<std::string>& command, const StartState& start) {
  Result<Pipes> pipes = make_pipes(true);
  TUTTI_TRY(pipes.status());
  std::vector<char*> arguments = pointers(command);
  const ChildEnds ends{pipes->input.first.get(), pipes->output.second.get(), pipes->errors.second.get()};
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork", errno);
  if (pid == 0) {
    setsid();
    if (!take_streams(ends)) _exit(126);
    give_back(start);
    execvp(arguments[0], arguments.data());
    const int why = errno;
    dprintf(STDERR_FILENO, "cannot run %s: %s\n", arguments[0], strerror(why));
    _exit(why == ENOENT ? 127 : 126);
  }
  return parent_ends(pid, std::move(pipes).value());
}

std::vector<std::string> current_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::vector<std::string> merge_environment(const std::vector<std::string>& base,
                                           const std::vector<std::string>& additions,
                                           const std::vector<std::string>& unset) {
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  std::unordered_set<std::string> dropped(unset.begin(), unset.end());
  for (const std::string& entry : additions) dropped.insert(name_of(entry));
  std::vector<std::string> merged;
  for (const std::string& entry : base) {
    if (dropped.count(name_of(entry)) == 0) merged.push_back(entry);
  }
  std::unordered_map<std::string, size_t> places;
  for (const std::string& entry : additions) {
    const auto [place, fresh] = places.emplace(name_of(entry), merged.size());
    if (fresh) {
      merged.push_back(entry);
    } else {
      merged[place->second] = entry;
    }
  }
  return merged;
}

}  // namespace tutti::launch
