// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine as JSON.
#include <nlohmann/json.hpp>

#include "topology/machine.hpp"
#include "topology/places_file.hpp"
#include "topology_json.hpp"

namespace tutti {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kKinds[] = {"network", "gpu"};

template <class Part, class Write>
json list_of(const std::vector<Part>& parts, Write write) {
  json list = json::array();
  for (const Part& part : parts) list.push_back(write(part));
  return list;
}

json write_device(const Device& device) {
  json one = {{"kind", kKinds[static_cast<size_t>(device.kind)]}, {"pci", device.pci}, {"model", device.model}, {"names", device.names}};
  if (device.numa != kSpread) one["numa"] = device.numa;
  return one;
}

json write_interface(const NetworkInterface& interface) {
  json one = {{"name", interface.name},
              {"up", interface.up},
              {"loopback", interface.loopback},
              {"physical", interface.physical},
              {"addresses", interface.addresses}};
  if (interface.speed_mbits != 0) one["speed_mbits"] = interface.speed_mbits;
  return one;
}

int read_number(JsonFields& fields, const char* field) {
  uint32_t number = 0;
  fields.whole(field, number);
  if (number > INT32_MAX) fields.complaint().say(fields.path_of(field), "too large");
  return static_cast<int>(number);
}

Device read_device(JsonFields& fields) {
  Device device;
  std::string kind = kKinds[0];
  fields.text("kind", kind);
  if (kind == kKinds[1]) {
    device.kind = DeviceKind::gpu;
  } else if (kind != kKinds[0]) {
    fields.complaint().say(fields.path_of("kind"), fmt::format("'{}' is neither {} nor {}", kind, kKinds[0], kKinds[1]));
  }
  fields.text("pci", device.pci);
  fields.text("model", device.model);
  fields.texts("names", device.names);
  if (fields.has("numa")) device.numa = read_number(fields, "numa");
  return device;
}

NetworkInterface read_interface(JsonFields& fields) {
  NetworkInterface interface;
  fields.text("name", interface.name);
  fields.flag("up", interface.up);
  fields.flag("loopback", interface.loopback);
  fields.flag("physical", interface.physical);
  fields.whole("speed_mbits", interface.speed_mbits);
  fields.texts("addresses", interface.addresses);
  return interface;
}

void read_fields(JsonFields& fields, Machine& machine) {
  fields.text("host_name", machine.host_name);
  fields.text("source", machine.source);
  fields.whole("memory_bytes", machine.memory_bytes);
  machine.allowed = read_cpus(fields, "allowed_cpus");
  fields.objects("packages", [&](JsonFields& part) {
    Package& package = machine.packages.emplace_back();
    package.number = read_number(part, "number");
    package.cpus = read_cpus(part, "cpus");
    part.text("model", package.model);
  });
  fields.objects("numa_nodes", [&](JsonFields& part) {
    NumaNode& node = machine.numa_nodes.emplace_back();
    node.number = read_number(part, "number");
    node.cpus = read_cpus(part, "cpus");
    part.whole("memory_bytes", node.memory_bytes);
  });
  fields.objects("caches", [&](JsonFields& part) {
    Cache& cache = machine.caches.emplace_back();
    part.whole("level", cache.level);
    part.whole("size_bytes", cache.size_bytes);
    cache.cpus = read_cpus(part, "cpus");
  });
  fields.objects("cores", [&](JsonFields& part) { machine.cores.push_back(read_cpus(part, "cpus")); });
  fields.objects("devices", [&](JsonFields& part) { machine.devices.push_back(read_device(part)); });
  fields.objects("interfaces", [&](JsonFields& part) { machine.interfaces.push_back(read_interface(part)); });
}

}  // namespace

std::string format_machine(const Machine& machine) {
  json facts;
  facts["host_name"] = machine.host_name;
  facts["source"] = machine.source;
  facts["memory_bytes"] = machine.memory_bytes;
  facts["allowed_cpus"] = format_cpu_list(machine.allowed);
  facts["packages"] = list_of(machine.packages, [](const Package& one) {
    return json{{"number", one.number}, {"cpus", format_cpu_list(one.cpus)}, {"model", one.model}};
  });
  facts["numa_nodes"] = list_of(machine.numa_nodes, [](const NumaNode& one) {
    return json{{"number", one.number}, {"cpus", format_cpu_list(one.cpus)}, {"memory_bytes", one.memory_bytes}};
  });
  facts["caches"] = list_of(machine.caches, [](const Cache& one) {
    return json{{"level", one.level}, {"size_bytes", one.size_bytes}, {"cpus", format_cpu_list(one.cpus)}};
  });
  facts["cores"] = list_of(machine.cores, [](const CpuList& one) { return json{{"cpus", format_cpu_list(one)}}; });
  facts["devices"] = list_of(machine.devices, write_device);
  facts["interfaces"] = list_of(machine.interfaces, write_interface);
  json file;
  file[kVersionField] = kTopologyFileVersion;
  file["machine"] = std::move(facts);
  return dump(file);
}

Result<Machine> parse_machine(std::string_view text, std::string_view source) {
  const Result<nlohmann::json> parsed = parse_json(text, source);
  if (!parsed) return parsed.status();
  FileComplaint complaint(source);
  JsonFields file(*parsed, "", complaint);
  check_topology_version(file);
  Machine machine;
  if (!file.object("machine", [&](JsonFields& fields) { read_fields(fields, machine); }))
    complaint.say("machine", "is missing; `tutti-info topology --json` writes it");
  file.finish();
  if (!complaint.status().ok()) return complaint.status();
  return machine;
}

}  // namespace tutti
