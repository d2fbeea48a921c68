// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "processes.hpp"

#include <dirent.h>
#include <signal.h>

#include <charconv>
#include <cstring>
#include <fstream>

namespace tutti::launch {

pid_t parent_in_stat(std::string_view line) {
  const size_t close = line.rfind(')');
  if (close == std::string_view::npos || close + 4 >= line.size()) return -1;
  const char state = line[close + 2];
  if (state == 'Z' || state == 'X') return -1;
  const std::string_view rest = line.substr(close + 4);
  pid_t parent = -1;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), parent);
  return parsed.ec == std::errc() ? parent : -1;
}

ParentMap read_parents(const std::string& proc) {
  ParentMap parents;
  DIR* const directory = opendir(proc.c_str());
  if (directory == nullptr) return parents;
  while (const dirent* const entry = readdir(directory)) {
    const char* const name = entry->d_name;
    pid_t pid = 0;
    const auto parsed = std::from_chars(name, name + strlen(name), pid);
    if (parsed.ec != std::errc() || *parsed.ptr != '\0') continue;
    std::ifstream file(proc + "/" + name + "/stat");
    std::string line;
    std::getline(file, line, '\0');
    if (const pid_t parent = parent_in_stat(line); parent >= 0) parents[pid] = parent;
  }
  closedir(directory);
  return parents;
}

std::vector<pid_t> descendants(const ParentMap& parents, pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, parent] : parents) children.emplace(parent, pid);
  std::vector<pid_t> found;
  pid_t next = root;
  for (size_t i = 0;; ++i) {
    const auto [first, last] = children.equal_range(next);
    for (auto child = first; child != last; ++child) {
      if (child->second != root) found.push_back(child->second);
    }
    if (i == found.size() || found.size() > parents.size()) return found;
    next = found[i];
  }
}

bool group_alive(pid_t group) { return group > 0 && kill(-group, 0) == 0; }

}  // namespace tutti::launch
