// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "processes.hpp"

#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

namespace tutti::launch {

std::optional<Process> parse_stat(std::string_view line) {
  const size_t close = line.rfind(')');
  if (close == std::string_view::npos || close + 4 >= line.size()) return std::nullopt;
  const char state = line[close + 2];
  if (state == 'Z' || state == 'X') return std::nullopt;
  const char* const end = line.data() + line.size();
  Process process;
  const auto parent = std::from_chars(line.data() + close + 4, end, process.parent);
  if (parent.ec != std::errc() || parent.ptr == end) return std::nullopt;
  const auto group = std::from_chars(parent.ptr + 1, end, process.group);
  if (group.ec != std::errc()) return std::nullopt;
  return process;
}

ProcessMap read_processes(const std::string& proc) {
  ProcessMap processes;
  DIR* const directory = opendir(proc.c_str());
  if (directory == nullptr) return processes;
  while (const dirent* const entry = readdir(directory)) {
    const char* const name = entry->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name, name + strlen(name), pid);
    if (parsed.ec != std::errc() || *parsed.ptr != '\0') continue;
    std::ifstream file(proc + "/" + name + "/stat");
    std::string line;
    std::getline(file, line, '\0');
    if (const std::optional<Process> process = parse_stat(line)) processes[pid] = *process;
  }
  closedir(directory);
  return processes;
}

std::vector<pid_t> descendants(const ProcessMap& processes, pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, process] : processes) children.emplace(process.parent, pid);
  std::vector<pid_t> found;
  pid_t next = root;
  for (size_t i = 0;; ++i) {
    const auto [first, last] = children.equal_range(next);
    for (auto child = first; child != last; ++child) {
      if (child->second != root) found.push_back(child->second);
    }
    if (i == found.size() || found.size() > processes.size()) return found;
    next = found[i];
  }
}

bool has_group(const ProcessMap& processes, pid_t group) {
  return std::any_of(processes.begin(), processes.end(),
                     [group](const auto& entry) { return entry.second.group == group; });
}

bool group_alive(pid_t group) { return group > 0 && kill(-group, 0) == 0; }

}  // namespace tutti::launch
