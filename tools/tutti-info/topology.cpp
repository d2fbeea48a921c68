// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// A machine, and the places of a job's ranks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_fields.hpp"
#include "base/types.hpp"
#include "bootstrap/bootstrap.hpp"
#include "pages.hpp"
#include "topology/card.hpp"
#include "topology/machine.hpp"
#include "topology/places_file.hpp"

namespace tutti::info {
namespace {

std::string memory_text(uint64_t bytes) {
  return bytes == 0 ? "memory unknown" : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string speed_text(uint32_t mbits) {
  if (mbits == 0) return "speed unknown";
  return mbits >= 1000 ? fmt::format("{:g} Gbit/s", mbits / 1000.0) : fmt::format("{} Mbit/s", mbits);
}

// ---- a machine as a tree ------------------------------------------------------------------------------------------------

struct Part {
  std::string label;
  const CpuList* cpus;
};

/// Outer parts first; of parts with the same CPUs in the order in which they were added.
std::vector<Part> parts_of(const Machine& machine) {
  std::vector<Part> parts;
  for (const Package& one : machine.packages)
    parts.push_back({fmt::format("package {}{}{}", one.number, one.model.empty() ? "" : ": ", one.model), &one.cpus});
  for (const NumaNode& one : machine.numa_nodes)
    parts.push_back({fmt::format("NUMA node {}: {}", one.number, memory_text(one.memory_bytes)), &one.cpus});
  for (const Cache& one : machine.caches) {
    const bool of_a_core = std::binary_search(machine.cores.begin(), machine.cores.end(), one.cpus);
    if (!of_a_core) parts.push_back({fmt::format("L{}: {}", one.level, format_bytes(one.size_bytes)), &one.cpus});
  }
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.cpus->size() > b.cpus->size(); });
  return parts;
}

/// The innermost of the parts before `end` that has all of `cpus`; parts.size(): none.
size_t home_of(const std::vector<Part>& parts, size_t end, const CpuList& cpus) {
  for (size_t n = end; n-- > 0;) {
    if (is_within(cpus, *parts[n].cpus)) return n;
  }
  return parts.size();
}

class Tree {
 public:
  explicit Tree(const Machine& machine) : machine_(machine), parts_(parts_of(machine)) {
    for (size_t n = 0; n < parts_.size(); ++n) homes_.push_back(home_of(parts_, n, *parts_[n].cpus));
    for (const CpuList& core : machine.cores) core_homes_.push_back(home_of(parts_, parts_.size(), core));
    add(parts_.size(), 1);
  }
  const std::string& text() const { return text_; }

 private:
  void add(size_t home, size_t depth) {
    for (size_t n = 0; n < parts_.size(); ++n) {
      if (homes_[n] != home) continue;
      const std::string cpus = parts_[n].cpus->empty() ? "no CPUs" : "CPUs " + format_cpu_list(*parts_[n].cpus);
      text_ += fmt::format("{:{}}{}, {}\n", "", 2 * depth, parts_[n].label, cpus);
      add(n, depth + 1);
    }
    std::vector<std::string> cores;
    for (size_t n = 0; n < core_homes_.size(); ++n) {
      if (core_homes_[n] == home) cores.push_back(format_cpu_list(machine_.cores[n]));
    }
    if (cores.empty()) return;
    text_ += fmt::format("{:{}}{} {}{}: CPUs {}\n", "", 2 * depth, cores.size(), cores.size() == 1 ? "core" : "cores", own_cache(),
                         fmt::join(cores, "  "));
  }

  /// Caches that each core has for itself, where all cores have the same.
  std::string own_cache() const {
    std::string text;
    for (const Cache& one : machine_.caches) {
      if (one.cpus == machine_.cores.front()) text += fmt::format(", L{} {} each", one.level, format_bytes(one.size_bytes));
    }
    return text;
  }

  const Machine& machine_;
  std::vector<Part> parts_;
  std::vector<size_t> homes_;  // by part
  std::vector<size_t> core_homes_;
  std::string text_;
};

std::string machine_text(const Machine& machine) {
  std::string text = fmt::format("{}, by {}\n  memory {}\n", machine.host_name.empty() ? "a machine" : machine.host_name,
                                 machine.source, memory_text(machine.memory_bytes));
  text += Tree(machine).text();
  for (const Device& device : machine.devices) {
    text += fmt::format("  {} {}{}{}: {}, {}\n", device.kind == DeviceKind::gpu ? "gpu" : "network device", device.pci,
                        device.names.empty() ? "" : " ", fmt::join(device.names, " "), device.model,
                        device.numa == kSpread ? "near no NUMA node in particular" : fmt::format("NUMA node {}", device.numa));
  }
  for (const NetworkInterface& one : machine.interfaces) {
    text += fmt::format("  interface {}: {}, {}{}{}\n", one.name, one.up ? "up" : "down",
                        one.loopback ? "loopback" : speed_text(one.speed_mbits), one.addresses.empty() ? "" : ", ",
                        fmt::join(one.addresses, " "));
  }
  return text;
}

std::string number_text(int number) { return number == kSpread ? "-" : fmt::format("{}", number); }

std::string here_text() {
  const Place here = find_place(allowed_cpus());
  return fmt::format("this process: CPUs {}, package {}, NUMA node {}, L3 of CPU {}  (-: several, or unknown)\n",
                     format_cpu_list(here.cpus), number_text(here.package), number_text(here.numa), number_text(here.l3));
}

// ---- a job --------------------------------------------------------------------------------------------------------------

std::string job_text(const Topology& job) {
  std::vector<uint32_t> everybody(job.size());
  std::iota(everybody.begin(), everybody.end(), 0u);
  std::string levels;
  for (const NestingLevel& level : nesting_of(job, everybody))
    levels += fmt::format("{}{} ({} groups)", levels.empty() ? "" : ", ", std::string(level.name), level.group_count());
  std::string text = fmt::format("{} rank{} on {} node{}; levels, innermost first: {}\n", job.size(), job.size() == 1 ? "" : "s",
                                 job.node_count(), job.node_count() == 1 ? "" : "s", levels.empty() ? "none" : levels);
  text += fmt::format("{:>6} {:>6} {:>8} {:>5} {:>5}  {:<24} {}\n", "rank", "node", "package", "NUMA", "L3", "host", "CPUs");
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    const Place& place = job.place(rank);
    text += fmt::format("{:>6} {:>6} {:>8} {:>5} {:>5}  {:<24} {}\n", rank, job.node(rank), number_text(place.package),
                        number_text(place.numa), number_text(place.l3), place.host_name.empty() ? place.host : place.host_name,
                        place.cpus.empty() ? "-" : format_cpu_list(place.cpus));
  }
  return text;
}

/// All ranks tell each other where they are, as the library does at its start.
Result<JobTopology> meet(const Config& config, uint32_t* rank) {
  const Log log(make_stderr_sink(), LogLevel::warn, "tutti-info");
  SystemRandom random;
  const std::unique_ptr<Network> network = make_system_network();
  BootstrapOptions options;
  options.config = &config;
  options.log = &log;
  options.random = &random;
  options.network = network.get();
  options.environment = process_environment();
  Result<JobInfo> job = find_job(options);
  if (!job.ok()) return job.status();
  *rank = static_cast<uint32_t>(job->rank);
  std::string own = make_topology_card(config, job->host_identity, *rank, static_cast<uint32_t>(job->size));
  if (job->size == 1) return read_topology_cards(std::vector<std::string>{std::move(own)});
  const Result<std::vector<std::string>> cards = exchange_cards(*job, options, std::move(own));
  job->store.reset();
  if (job->host && !job->host->finished()) job->host->linger(job->deadline);
  if (!cards.ok()) return cards.status();
  return read_topology_cards(*cards);
}

Result<std::string> loaded_page(const TopologyRequest& request) {
  const Result<std::string> text = read_text_file(request.load, kMostTopologyFileBytes);
  if (!text.ok()) return text.status();
  if (text->starts_with("<")) {
    const Result<Machine> machine = parse_machine_xml(*text, request.load);
    if (!machine.ok()) return machine.status();
    return request.json ? format_machine(*machine) : machine_text(*machine);
  }
  const Result<nlohmann::json> parsed = parse_json(*text, request.load);
  if (parsed.ok() && parsed->is_object() && parsed->contains("places")) {
    Result<std::vector<Place>> places = parse_places(*text, request.load);
    if (!places.ok()) return places.status();
    return request.json ? format_places(*places) : job_text(Topology(std::move(*places)));
  }
  const Result<Machine> machine = parse_machine(*text, request.load);
  if (!machine.ok()) return machine.status();
  return request.json ? format_machine(*machine) : machine_text(*machine);
}

}  // namespace

Result<std::string> job_page(const Config& config, bool json, uint32_t* rank) {
  const Result<JobTopology> job = meet(config, rank);
  if (!job.ok()) return job.status();
  return json ? format_places(job->used.places()) : job_text(job->used);
}

Result<std::string> topology_page(const TopologyRequest& request) {
  if (!request.load.empty()) return loaded_page(request);
  if (request.xml) return export_machine_xml();
  const Result<Machine> machine = read_machine();
  if (!machine.ok()) return machine.status();
  return request.json ? format_machine(*machine) : machine_text(*machine) + here_text();
}

}  // namespace tutti::info
