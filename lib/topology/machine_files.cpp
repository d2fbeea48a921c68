// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine by what Linux shows in /sys and /proc.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <set>

#include "base/types.hpp"
#include "machine_parts.hpp"
#include "sysfs.hpp"

namespace tutti {
namespace {

/// A line like "MemTotal:  16384 kB", of /proc/meminfo or (with "Node 0 " before it) of a NUMA node's.
uint64_t total_memory_bytes(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find("MemTotal:");
    if (at == std::string::npos) continue;
    const size_t digits = line.find_first_of("0123456789", at);
    uint64_t kib = 0;
    if (digits != std::string::npos) std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    return kib * 1024;
  }
  return 0;
}

/// "model name : ..." of the first CPU; machines whose packages differ are rare enough.
std::string cpu_model(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t at = line.find(": ");
    return at == std::string::npos ? std::string() : line.substr(at + 2);
  }
  return {};
}

void read_caches(Machine& machine, const std::string& cpu, std::set<std::pair<uint32_t, CpuList>>& known) {
  for (int index = 0;; ++index) {
    const std::string folder = fmt::format("{}/cache/index{}", cpu, index);
    const std::optional<long long> level = read_number(folder + "/level");
    if (!level) return;
    if (*level < 2 || read_line(folder + "/type") == "Instruction") continue;
    CpuList shared = parse_cpu_list(read_line(folder + "/shared_cpu_list"));
    if (!known.emplace(static_cast<uint32_t>(*level), shared).second) continue;
    const Result<uint64_t> size = parse_bytes(read_line(folder + "/size"));
    machine.caches.push_back({static_cast<uint32_t>(*level), size.ok() ? *size : 0, std::move(shared)});
  }
}

void read_cpus(Machine& machine, const std::string& system, const std::string& model) {
  CpuList online = parse_cpu_list(read_line(system + "/cpu/online"));
  if (online.empty()) online = machine.allowed;
  std::map<int, CpuList> packages;
  std::set<CpuList> cores;
  std::set<std::pair<uint32_t, CpuList>> caches;
  for (const int cpu : online) {
    const std::string folder = fmt::format("{}/cpu/cpu{}", system, cpu);
    packages[static_cast<int>(read_number(folder + "/topology/physical_package_id").value_or(0))].push_back(cpu);
    CpuList core = parse_cpu_list(read_line(folder + "/topology/thread_siblings_list"));
    cores.insert(core.empty() ? CpuList{cpu} : std::move(core));
    read_caches(machine, folder, caches);
  }
  for (auto& [number, cpus] : packages) machine.packages.push_back({number, std::move(cpus), model});
  machine.cores.assign(cores.begin(), cores.end());
}

void read_numa_nodes(Machine& machine, const std::string& system) {
  for (const int number : parse_cpu_list(read_line(system + "/node/online"))) {
    const std::string folder = fmt::format("{}/node/node{}", system, number);
    machine.numa_nodes.push_back(
        {number, parse_cpu_list(read_line(folder + "/cpulist")), total_memory_bytes(folder + "/meminfo")});
  }
  if (!machine.numa_nodes.empty()) return;
  NumaNode all{0, {}, machine.memory_bytes};
  for (const Package& package : machine.packages) all.cpus.insert(all.cpus.end(), package.cpus.begin(), package.cpus.end());
  std::sort(all.cpus.begin(), all.cpus.end());
  machine.numa_nodes.push_back(std::move(all));
}

void read_devices(Machine& machine, const std::string& folder) {
  for (const std::string& pci : names_in(folder)) {
    const std::string path = folder + "/" + pci;
    const std::optional<long long> number = read_number(path + "/class");
    const std::optional<DeviceKind> kind = number ? kind_of_pci_class(static_cast<uint32_t>(*number) >> 8) : std::nullopt;
    if (!kind) continue;
    Device device;
    device.kind = *kind;
    device.pci = pci;
    device.model = fmt::format("{:04x}:{:04x}", read_number(path + "/vendor").value_or(0), read_number(path + "/device").value_or(0));
    const long long numa = read_number(path + "/numa_node").value_or(kSpread);
    device.numa = numa >= 0 ? static_cast<int>(numa) : machine.numa_nodes.size() == 1 ? machine.numa_nodes[0].number : kSpread;
    // Drivers that sit on a bus of their own (virtio) have the system's name one folder further down.
    std::vector<std::string> places{path};
    for (const std::string& name : names_in(path)) {
      if (name.starts_with("virtio")) places.push_back(path + "/" + name);
    }
    for (const std::string& place : places) {
      for (const char* group : {"net", "infiniband", "drm"}) {
        for (std::string& name : names_in(place + "/" + group)) device.names.push_back(std::move(name));
      }
    }
    machine.devices.push_back(std::move(device));
  }
}

}  // namespace

Machine read_machine_files(const std::string& sys_root, const std::string& proc_root) {
  Machine machine;
  add_host(machine);
  machine.source = "the system's files";
  machine.memory_bytes = total_memory_bytes(proc_root + "/meminfo");
  const std::string system = sys_root + "/devices/system";
  read_cpus(machine, system, cpu_model(proc_root + "/cpuinfo"));
  read_numa_nodes(machine, system);
  read_devices(machine, sys_root + "/bus/pci/devices");
  sort_parts(machine);
  return machine;
}

}  // namespace tutti
