// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine as hwloc sees it: the one file that knows hwloc.
#include <fmt/format.h>
#include <hwloc.h>

#include <memory>
#include <optional>

#include "machine_parts.hpp"

namespace tutti {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

Handle prepare() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Handle handle(topology);
  // The whole machine, as /sys shows it, also to a process that may use a part of it only.
  hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // hwloc's plugins, where they are installed, would start CUDA, OpenCL or an X display in a process that did not ask for
  // it, and the one for PCI leaks and is not needed: /sys has the devices as well. A plugin that is not there is no error.
  for (const char* const plugin : {"pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"})
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, plugin);
  return handle;
}

Result<Handle> load(Handle handle) {
  if (!handle || hwloc_topology_load(handle.get()) != 0)
    return error(TUTTI_ERR_SYSTEM, "hwloc cannot read this machine; a build with -Dhwloc=disabled reads /sys itself");
  return handle;
}

CpuList cpus_of(hwloc_const_cpuset_t set) {
  CpuList cpus;
  if (set == nullptr) return cpus;
  for (int cpu = hwloc_bitmap_first(set); cpu >= 0; cpu = hwloc_bitmap_next(set, cpu)) cpus.push_back(cpu);
  return cpus;
}

std::string info_of(hwloc_obj_t object, const char* name) {
  const char* const text = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, name);
  return text == nullptr ? std::string() : std::string(text);
}

template <class Take>
void each(hwloc_topology_t topology, hwloc_obj_type_t type, Take take) {
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;) take(object);
}

/// Where the system gives no number, hwloc's own.
int number_of(hwloc_obj_t object) {
  return object->os_index == HWLOC_UNKNOWN_INDEX ? static_cast<int>(object->logical_index) : static_cast<int>(object->os_index);
}

void take_cpus(Machine& machine, hwloc_topology_t topology) {
  each(topology, HWLOC_OBJ_PACKAGE, [&](hwloc_obj_t object) {
    machine.packages.push_back({number_of(object), cpus_of(object->cpuset), info_of(object, "CPUModel")});
  });
  if (machine.packages.empty())
    machine.packages.push_back({0, cpus_of(hwloc_topology_get_topology_cpuset(topology)), std::string()});
  each(topology, HWLOC_OBJ_NUMANODE, [&](hwloc_obj_t object) {
    machine.numa_nodes.push_back({number_of(object), cpus_of(object->cpuset), object->attr->numanode.local_memory});
  });
  each(topology, HWLOC_OBJ_CORE, [&](hwloc_obj_t object) { machine.cores.push_back(cpus_of(object->cpuset)); });
  if (machine.cores.empty())
    each(topology, HWLOC_OBJ_PU, [&](hwloc_obj_t object) { machine.cores.push_back(cpus_of(object->cpuset)); });
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE}) {
    each(topology, type, [&](hwloc_obj_t object) {
      machine.caches.push_back({object->attr->cache.depth, object->attr->cache.size, cpus_of(object->cpuset)});
    });
  }
}

void take_devices(Machine& machine, hwloc_topology_t topology) {
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_pcidev(topology, object)) != nullptr;) {
    const auto& pci = object->attr->pcidev;
    const std::optional<DeviceKind> kind = kind_of_pci_class(pci.class_id);
    if (!kind) continue;
    Device device;
    device.kind = *kind;
    device.pci = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
    const std::string vendor = info_of(object, "PCIVendor");
    const std::string model = info_of(object, "PCIDevice");
    device.model = model.empty() ? fmt::format("{:04x}:{:04x}", pci.vendor_id, pci.device_id)
                                 : fmt::format("{}{}{}", vendor, vendor.empty() ? "" : " ", model);
    for (hwloc_obj_t child = object->io_first_child; child != nullptr; child = child->next_sibling) {
      if (child->type == HWLOC_OBJ_OS_DEVICE && child->name != nullptr) device.names.emplace_back(child->name);
    }
    const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, object);
    if (near != nullptr && near->nodeset != nullptr && hwloc_bitmap_weight(near->nodeset) == 1)
      device.numa = hwloc_bitmap_first(near->nodeset);
    machine.devices.push_back(std::move(device));
  }
}

Machine describe(hwloc_topology_t topology) {
  Machine machine;
  machine.source = "hwloc " + info_of(hwloc_get_root_obj(topology), "hwlocVersion");
  machine.memory_bytes = hwloc_get_root_obj(topology)->total_memory;
  take_cpus(machine, topology);
  take_devices(machine, topology);
  return machine;
}

}  // namespace

bool has_hwloc() noexcept { return true; }

Result<Machine> read_machine() {
  const Result<Handle> topology = load(prepare());
  if (!topology) return topology.status();
  Machine machine = describe(topology->get());
  add_host(machine);
  sort_parts(machine);
  return machine;
}

Result<std::string> export_machine_xml() {
  const Result<Handle> topology = load(prepare());
  if (!topology) return topology.status();
  char* text = nullptr;
  int length = 0;  // with the zero at the end
  if (hwloc_topology_export_xmlbuffer(topology->get(), &text, &length, 0) != 0 || length < 1)
    return error(TUTTI_ERR_SYSTEM, "hwloc cannot write this machine as XML; JSON will do");
  std::string xml(text, static_cast<size_t>(length - 1));
  hwloc_free_xmlbuffer(topology->get(), text);
  return xml;
}

Result<Machine> parse_machine_xml(std::string_view text, std::string_view source) {
  Handle handle = prepare();
  std::string xml(text);
  // hwloc wants the zero at the end counted.
  if (!handle || hwloc_topology_set_xmlbuffer(handle.get(), xml.data(), static_cast<int>(xml.size() + 1)) != 0 ||
      hwloc_topology_load(handle.get()) != 0)
    return error(TUTTI_ERR_CONFIG, "{}: is no XML of hwloc; `lstopo --of xml` and `tutti-info topology --xml` write it", source);
  Machine machine = describe(handle.get());
  machine.host_name = info_of(hwloc_get_root_obj(handle.get()), "HostName");
  sort_parts(machine);
  return machine;
}

}  // namespace tutti
