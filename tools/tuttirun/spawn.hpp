// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "binding.hpp"
#include "loop.hpp"
#include "wire.hpp"

namespace tutti::launch {

/// What a child reports when it could not become the program. Written whole into a shared pipe.
struct SpawnFailure {
  uint32_t rank;
  int error_number;
  char step[48];
};

/// One rank to start. Everything is prepared before fork, the child only makes system calls.
struct SpawnPlan {
  uint32_t rank = 0;
  bool with_stdin = false;
  CpuList cpus;  // empty: not bound
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::string secret;           // "": none to pass
  std::string secret_variable;  // name of the variable that gets the descriptor's number
};

struct Spawned {
  pid_t pid = -1;
  Fd pid_fd;  // not valid on kernels without pidfds
  Fd stdin_end;
  Fd stdout_end;
  Fd stderr_end;
};

/// Starts a rank: a process group of its own, killed by the kernel if this process dies; no terminal; pipes for its
/// output. `failures` is the writing end for a SpawnFailure.
Result<Spawned> spawn_rank(const SpawnPlan& plan, const StartState& start, int failures);

/// Starts a command in a session of its own with pipes for all three streams (ssh and the like).
Result<Spawned> spawn_command(const std::vector<std::string>& command, const StartState& start);

/// An anonymous file with `bytes`, sealed, from position 0; every call gives a position of its own.
Result<Fd> make_secret_file(const std::string& bytes);

/// This process's environment as NAME=value.
std::vector<std::string> current_environment();

/// "NAME=value" list in which later entries win and `unset` names are dropped.
std::vector<std::string> merge_environment(const std::vector<std::string>& base,
                                           const std::vector<std::string>& additions,
                                           const std::vector<std::string>& unset);

}  // namespace tutti::launch
