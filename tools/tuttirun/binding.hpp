// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "topology/cpus.hpp"

namespace tutti::launch {

/// `automatic` is `core` while there are at least as many allowed cores as local ranks, else `none`.
enum class BindMode : uint8_t { automatic, core, numa, none };
Result<BindMode> parse_bind_mode(std::string_view text);

/// The machine as the kernel tells it, cut down to the CPUs that this process may use.
struct CpuMap {
  std::vector<CpuList> cores;  // hardware threads of one core, cores in order of their first CPU
  std::vector<CpuList> numa;   // CPUs of one NUMA node
};

/// Reads `<root>/devices/system/{cpu,node}`; CPUs without topology files count as a core of their own.
CpuMap read_cpu_map(const CpuList& allowed, const std::string& root = "/sys");

struct Binding {
  std::vector<CpuList> by_local_rank;  // empty: nobody is bound
  std::string remark;                  // why the wish was not met, or ""
};
/// Which CPUs each of `local_ranks` ranks gets.
Binding plan_binding(BindMode mode, const CpuMap& map, uint32_t local_ranks);

}  // namespace tutti::launch
