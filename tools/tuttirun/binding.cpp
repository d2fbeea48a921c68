// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "binding.hpp"

#include <fstream>
#include <set>

namespace tutti::launch {

namespace {
std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

CpuList intersect(const CpuList& some, const std::set<int>& allowed) {
  CpuList both;
  for (const int cpu : some) {
    if (allowed.count(cpu) != 0) both.push_back(cpu);
  }
  return both;
}
}  // namespace

Result<BindMode> parse_bind_mode(std::string_view text) {
  if (text == "auto") return BindMode::automatic;
  if (text == "core") return BindMode::core;
  if (text == "numa") return BindMode::numa;
  if (text == "none") return BindMode::none;
  return error(TUTTI_ERR_ARGUMENT, "--bind: '{}' is none of core, numa, none, auto", text);
}

CpuMap read_cpu_map(const CpuList& allowed, const std::string& root) {
  CpuMap map;
  const std::set<int> set(allowed.begin(), allowed.end());
  std::set<int> seen;
  for (const int cpu : set) {
    if (seen.count(cpu) != 0) continue;
    const std::string path = fmt::format("{}/devices/system/cpu/cpu{}/topology/thread_siblings_list", root, cpu);
    CpuList core = intersect(parse_cpu_list(read_line(path)), set);
    if (core.empty()) core = {cpu};
    seen.insert(core.begin(), core.end());
    map.cores.push_back(std::move(core));
  }
  for (const int node : parse_cpu_list(read_line(root + "/devices/system/node/online"))) {
    const std::string path = fmt::format("{}/devices/system/node/node{}/cpulist", root, node);
    if (CpuList cpus = intersect(parse_cpu_list(read_line(path)), set); !cpus.empty())
      map.numa.push_back(std::move(cpus));
  }
  if (map.numa.empty()) map.numa.emplace_back(set.begin(), set.end());
  return map;
}

Binding plan_binding(BindMode mode, const CpuMap& map, uint32_t local_ranks) {
  Binding plan;
  if (mode == BindMode::none || local_ranks == 0) return plan;
  if (mode == BindMode::numa) {
    // Consecutive ranks share a node: neighbours in a ring are mostly neighbours in memory.
    const size_t nodes = map.numa.size();
    for (uint32_t i = 0; i < local_ranks; ++i) plan.by_local_rank.push_back(map.numa[i * nodes / local_ranks]);
    return plan;
  }
  if (map.cores.size() < local_ranks) {
    if (mode == BindMode::core) {
      plan.remark = fmt::format("--bind core: {} ranks but only {} cores here, so no rank is bound", local_ranks,
                                map.cores.size());
    }
    return plan;
  }
  plan.by_local_rank.assign(map.cores.begin(), map.cores.begin() + local_ranks);
  return plan;
}

}  // namespace tutti::launch
