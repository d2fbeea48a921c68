// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "topology/cpus.hpp"
#include "topology/place.hpp"

/// The facts of one machine, for people and programs that look at it. A start does not need them: see place.hpp.
namespace tutti {

struct Package {
  int number = 0;  // the system's
  CpuList cpus;
  std::string model;  // "" when unknown

  bool operator==(const Package&) const = default;
};

struct NumaNode {
  int number = 0;
  CpuList cpus;  // empty: memory only
  uint64_t memory_bytes = 0;

  bool operator==(const NumaNode&) const = default;
};

/// One cache of level 2 or 3, and who shares it.
struct Cache {
  uint32_t level = 0;
  uint64_t size_bytes = 0;
  CpuList cpus;

  bool operator==(const Cache&) const = default;
};

enum class DeviceKind : uint8_t { network, gpu };

/// A PCI device that matters to communication.
struct Device {
  DeviceKind kind = DeviceKind::network;
  std::string pci;                 // "0000:3b:00.0"
  std::string model;               // in words, or "vendor:device" in hexadecimal
  std::vector<std::string> names;  // the system's: "eth0", "mlx5_0", "card1"
  int numa = kSpread;              // NUMA node that it is near; kSpread: several, or unknown

  bool operator==(const Device&) const = default;
};

struct NetworkInterface {
  std::string name;
  bool up = false;
  bool loopback = false;
  bool physical = false;
  uint32_t speed_mbits = 0;            // 0: unknown
  std::vector<std::string> addresses;  // "10.0.0.5/24"

  bool operator==(const NetworkInterface&) const = default;
};

struct Machine {
  std::string host_name;
  std::string source;  // "hwloc 2.9.0", or "the system's files"
  uint64_t memory_bytes = 0;
  CpuList allowed;  // the CPUs that this process may run on
  std::vector<Package> packages;
  std::vector<NumaNode> numa_nodes;
  std::vector<Cache> caches;   // outer levels first
  std::vector<CpuList> cores;  // hardware threads of each
  std::vector<Device> devices;
  std::vector<NetworkInterface> interfaces;

  bool operator==(const Machine&) const = default;
};

/// This machine: by hwloc if this build has it, else from /sys and /proc. Takes 10 to 100 ms by hwloc.
Result<Machine> read_machine();

/// From files of Linux, whatever the build has. What they do not tell is left out; a machine without any is one package and one NUMA
/// node with the CPUs that this process may run on, a core each.
Machine read_machine_files(const std::string& sys_root = "/sys", const std::string& proc_root = "/proc");

/// Whether this build has hwloc.
bool has_hwloc() noexcept;
/// hwloc's own description of this machine, for lstopo and its like. TUTTI_ERR_UNSUPPORTED without hwloc.
Result<std::string> export_machine_xml();
/// A machine that was exported so. TUTTI_ERR_CONFIG with `source` when it is no such text, TUTTI_ERR_UNSUPPORTED without hwloc.
Result<Machine> parse_machine_xml(std::string_view text, std::string_view source);

/// A machine as a file (docs/topology.md), and back; `source` is for messages.
std::string format_machine(const Machine& machine);
Result<Machine> parse_machine(std::string_view text, std::string_view source);

}  // namespace tutti
