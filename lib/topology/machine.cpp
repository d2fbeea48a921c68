// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology/machine.hpp"

#include <unistd.h>

#include <algorithm>

#include "machine_parts.hpp"
#include "topology/interfaces.hpp"

namespace tutti {

#ifndef TUTTI_HAVE_HWLOC
bool has_hwloc() noexcept { return false; }

namespace {
Status without_hwloc(std::string_view what) {
  return error(TUTTI_ERR_UNSUPPORTED, "{}: this build has no hwloc; use JSON, or build with -Dhwloc=enabled", what);
}
}  // namespace

Result<std::string> export_machine_xml() { return without_hwloc("XML"); }
Result<Machine> parse_machine_xml(std::string_view, std::string_view source) { return without_hwloc(source); }
Result<Machine> read_machine() { return read_machine_files(); }
#endif

void add_host(Machine& machine) {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  machine.host_name = name;
  machine.allowed = allowed_cpus();
  const Result<std::vector<InterfaceAddress>> addresses = list_interface_addresses();
  if (!addresses) return;
  for (const InterfaceAddress& address : *addresses) {
    auto found = std::find_if(machine.interfaces.begin(), machine.interfaces.end(),
                              [&](const NetworkInterface& one) { return one.name == address.interface; });
    if (found == machine.interfaces.end()) {
      machine.interfaces.push_back(
          {address.interface, address.up, address.loopback, address.physical, address.speed_mbits, {}});
      found = machine.interfaces.end() - 1;
    }
    found->addresses.push_back(fmt::format("{}/{}", address.address, address.prefix_bits));
  }
}

std::optional<DeviceKind> kind_of_pci_class(uint32_t pci_class) {
  switch (pci_class >> 8) {
    case 0x02:
      return DeviceKind::network;
    case 0x03:  // display
    case 0x12:  // processing accelerator
      return DeviceKind::gpu;
    default:
      break;
  }
  if (pci_class == 0x0c06) return DeviceKind::network;  // InfiniBand
  if (pci_class == 0x0b40) return DeviceKind::gpu;      // co-processor
  return std::nullopt;
}

void sort_parts(Machine& machine) {
  const auto by_number = [](const auto& a, const auto& b) { return a.number < b.number; };
  std::sort(machine.packages.begin(), machine.packages.end(), by_number);
  std::sort(machine.numa_nodes.begin(), machine.numa_nodes.end(), by_number);
  std::sort(machine.cores.begin(), machine.cores.end());
  std::sort(machine.caches.begin(), machine.caches.end(),
            [](const Cache& a, const Cache& b) { return a.level != b.level ? a.level > b.level : a.cpus < b.cpus; });
  std::sort(machine.devices.begin(), machine.devices.end(), [](const Device& a, const Device& b) { return a.pci < b.pci; });
}

}  // namespace tutti
