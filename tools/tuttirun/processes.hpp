// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::launch {

struct Process {
  pid_t parent = 0;
  pid_t group = 0;
};
/// Every process that /proc shows. Zombies are left out: they are only a matter of their parent's manners.
using ProcessMap = std::map<pid_t, Process>;
ProcessMap read_processes(const std::string& proc = "/proc");
/// Everything that descends from `root`, `root` itself not included, nearest first.
std::vector<pid_t> descendants(const ProcessMap& processes, pid_t root);
bool has_group(const ProcessMap& processes, pid_t group);

/// A line of /proc/<pid>/stat, whose second field, the program's name, may hold blanks and brackets. nullopt: a zombie,
/// or not such a line.
std::optional<Process> parse_stat(std::string_view line);

/// Whether the process group still has a member, zombies included.
bool group_alive(pid_t group);

}  // namespace tutti::launch
