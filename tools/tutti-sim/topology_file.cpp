// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology_file.hpp"

#include <nlohmann/json.hpp>

#include "base/json_fields.hpp"

namespace tutti::simulator {
namespace {

constexpr uint64_t kMostBytes = 16 << 20;

void read_reach(JsonFields& fields, Reach& reach) {
  fields.number("latency_ns", reach.latency_ns);
  fields.number("overhead_ns", reach.overhead_ns);
  fields.number("copy_ns_per_byte", reach.copy_ns_per_byte);
  fields.whole("slots", reach.slots);
}

void read_fabric(JsonFields& file, NetworkSpec& spec, FileComplaint& complaint) {
  int given = 0;
  given += file.object("flat", [&](JsonFields& fields) {
    Crossbar flat;
    fields.number("hop_ns", flat.hop_ns);
    spec.fabric = flat;
  });
  given += file.object("fat_tree", [&](JsonFields& fields) {
    FatTree tree;
    fields.objects("levels", [&](JsonFields& level) {
      tree.levels.emplace_back();
      level.whole("radix", tree.levels.back().radix);
      level.number("oversubscription", tree.levels.back().oversubscription);
      level.number("hop_ns", tree.levels.back().hop_ns);
    });
    spec.fabric = std::move(tree);
  });
  given += file.object("dragonfly", [&](JsonFields& fields) {
    Dragonfly dragonfly;
    fields.whole("groups", dragonfly.groups);
    fields.whole("routers", dragonfly.routers);
    fields.whole("hosts", dragonfly.hosts);
    fields.number("local_gbytes_per_s", dragonfly.local_gbytes_per_s);
    fields.number("global_gbytes_per_s", dragonfly.global_gbytes_per_s);
    fields.number("local_hop_ns", dragonfly.local_hop_ns);
    fields.number("global_hop_ns", dragonfly.global_hop_ns);
    spec.fabric = dragonfly;
  });
  given += file.object("torus", [&](JsonFields& fields) {
    Torus torus;
    fields.wholes("dimensions", torus.dimensions);
    fields.number("gbytes_per_s", torus.gbytes_per_s);
    fields.number("hop_ns", torus.hop_ns);
    spec.fabric = std::move(torus);
  });
  if (given != 1) complaint.say("", "one of flat, fat_tree, dragonfly, torus is needed");
}

}  // namespace

Result<NetworkSpec> parse_topology(std::string_view text, std::string_view source) {
  const Result<nlohmann::json> parsed = parse_json(text, source);
  if (!parsed.ok()) return parsed.status();
  FileComplaint complaint(source);
  NetworkSpec spec;
  spec.name = source;
  JsonFields file(*parsed, "", complaint);
  file.text("name", spec.name);
  file.whole("ranks_per_node", spec.ranks_per_node);
  file.whole("cores_per_node", spec.cores_per_node);
  file.number("nic_gbytes_per_s", spec.nic_gbytes_per_s);
  file.number("rank_gbytes_per_s", spec.rank_gbytes_per_s);
  file.number("memory_gbytes_per_s", spec.memory_gbytes_per_s);
  file.number("step_ns", spec.prices.step_ns);
  file.number("switch_ns", spec.prices.switch_ns);
  file.number("reduce_ns_per_byte", spec.prices.reduce_ns_per_byte);
  file.number("copy_ns_per_byte", spec.prices.copy_ns_per_byte);
  file.bytes("segment_bytes", spec.prices.segment_bytes);
  file.object("node", [&](JsonFields& fields) { read_reach(fields, spec.prices.node); });
  file.object("network", [&](JsonFields& fields) { read_reach(fields, spec.prices.network); });
  read_fabric(file, spec, complaint);
  file.finish();
  if (!complaint.status().ok()) return complaint.status();
  // The numbers' own sense, without any job.
  if (const Result<Network> network = Network::make(spec, 1); !network.ok()) return network.status().with_context(source);
  return spec;
}

Result<NetworkSpec> load_topology(const std::string& path) {
  if (path.empty()) return NetworkSpec();
  const Result<std::string> text = read_text_file(path, kMostBytes);
  if (!text.ok()) return text.status();
  return parse_topology(*text, path);
}

}  // namespace tutti::simulator
