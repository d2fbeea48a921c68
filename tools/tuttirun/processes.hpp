// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::launch {

/// Parent of every process that /proc shows (zombies are left out).
using ParentMap = std::map<pid_t, pid_t>;
ParentMap read_parents(const std::string& proc = "/proc");
/// Everything that descends from `root`, `root` itself not included, nearest first.
std::vector<pid_t> descendants(const ParentMap& parents, pid_t root);

/// The parent in a line of /proc/<pid>/stat whose second field, the program's name, may hold blanks and brackets.
/// -1: a zombie, or not such a line.
pid_t parent_in_stat(std::string_view line);

/// Whether the process group still has a member that is not a zombie of ours.
bool group_alive(pid_t group);

}  // namespace tutti::launch
