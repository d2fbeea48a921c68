// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology/place.hpp"

#include <fmt/format.h>

#include "sysfs.hpp"

namespace tutti {
namespace {

/// Kernels before 5.3 know the list by the older name.
CpuList package_cpus(const std::string& cpu) {
  const CpuList cpus = parse_cpu_list(read_line(cpu + "/topology/package_cpus_list"));
  return cpus.empty() ? parse_cpu_list(read_line(cpu + "/topology/core_siblings_list")) : cpus;
}

int package_of(const CpuList& cpus, const std::string& cpu) {
  const std::optional<long long> number = read_number(cpu + "/topology/physical_package_id");
  return number && *number >= 0 && is_within(cpus, package_cpus(cpu)) ? static_cast<int>(*number) : kSpread;
}

int numa_of(const CpuList& cpus, const std::string& cpu, const std::string& system) {
  for (const std::string& name : names_in(cpu)) {
    if (!name.starts_with("node") || name.size() == 4) continue;
    const CpuList number = parse_cpu_list(name.substr(4));
    if (number.size() != 1) continue;
    const CpuList all = parse_cpu_list(read_line(fmt::format("{}/node/{}/cpulist", system, name)));
    return is_within(cpus, all) ? number.front() : kSpread;
  }
  return kSpread;
}

int l3_of(const CpuList& cpus, const std::string& cpu) {
  for (int index = 0;; ++index) {
    const std::string cache = fmt::format("{}/cache/index{}", cpu, index);
    const std::optional<long long> level = read_number(cache + "/level");
    if (!level) return kSpread;
    if (*level != 3) continue;
    const CpuList all = parse_cpu_list(read_line(cache + "/shared_cpu_list"));
    return is_within(cpus, all) ? all.front() : kSpread;
  }
}

}  // namespace

Place find_place(CpuList cpus, const std::string& sys_root) {
  Place place;
  if (!cpus.empty()) {
    const std::string system = sys_root + "/devices/system";
    const std::string cpu = fmt::format("{}/cpu/cpu{}", system, cpus.front());
    place.package = package_of(cpus, cpu);
    place.numa = numa_of(cpus, cpu, system);
    place.l3 = l3_of(cpus, cpu);
  }
  place.cpus = std::move(cpus);
  return place;
}

std::string boot_id() { return read_line("/proc/sys/kernel/random/boot_id"); }

}  // namespace tutti
