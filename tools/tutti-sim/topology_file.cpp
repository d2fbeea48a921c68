// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology_file.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/types.hpp"

namespace tutti::simulator {
namespace {

using nlohmann::json;

/// The first thing that is wrong with a file.
class Complaint {
 public:
  explicit Complaint(std::string_view source) : source_(source) {}
  void say(const std::string& field, const std::string& what) {
    if (status_.ok()) status_ = error(TUTTI_ERR_CONFIG, "{}: {}: {}", source_, field.empty() ? "the file" : field, what);
  }
  const Status& status() const { return status_; }

 private:
  std::string source_;
  Status status_;
};

/// One object of the file. Fields that are not there keep their defaults; those that nobody asked for are complained of.
class Fields {
 public:
  Fields(const json& object, std::string path, Complaint& complaint)
      : object_(object), path_(std::move(path)), complaint_(complaint) {
    if (!object_.is_object()) complaint_.say(path_, "an object is needed: { ... }");
  }

  void number(const char* field, double& value) {
    const json* const found = find(field);
    if (found == nullptr) return;
    if (!found->is_number() || found->get<double>() < 0) {
      complaint_.say(path_of(field), fmt::format("a number from 0 on is needed, not {}", found->dump()));
      return;
    }
    value = found->get<double>();
  }
  void whole(const char* field, uint32_t& value) {
    if (const json* const found = find(field)) whole(*found, path_of(field), value);
  }
  void bytes(const char* field, uint64_t& value) {
    const json* const found = find(field);
    if (found == nullptr) return;
    const Result<uint64_t> parsed = parse_bytes(found->is_string() ? found->get<std::string>() : found->dump());
    if (parsed.ok()) {
      value = *parsed;
    } else {
      complaint_.say(path_of(field), std::string(parsed.status().message()));
    }
  }
  void text(const char* field, std::string& value) {
    const json* const found = find(field);
    if (found == nullptr) return;
    if (found->is_string()) {
      value = found->get<std::string>();
    } else {
      complaint_.say(path_of(field), fmt::format("a text is needed, not {}", found->dump()));
    }
  }
  void wholes(const char* field, std::vector<uint32_t>& values) {
    each(field, [&](const json& element, const std::string& path) {
      values.push_back(0);
      whole(element, path, values.back());
    });
  }
  /// take(Fields) for the object, if it is there.
  template <class Take>
  bool object(const char* field, Take take) {
    const json* const found = find(field);
    if (found == nullptr) return false;
    Fields inner(*found, path_of(field), complaint_);
    take(inner);
    inner.finish();
    return true;
  }
  template <class Take>
  void objects(const char* field, Take take) {
    each(field, [&](const json& element, const std::string& path) {
      Fields inner(element, path, complaint_);
      take(inner);
      inner.finish();
    });
  }

  /// After all fields were asked for.
  void finish() {
    if (!object_.is_object()) return;
    for (const auto& entry : object_.items()) {
      if (known_.count(entry.key()) > 0) continue;
      complaint_.say(path_of(entry.key()), fmt::format("there is no such field; known are {}", fmt::join(known_, ", ")));
    }
  }

 private:
  const json* find(const char* field) {
    known_.insert(field);
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(field);
    return found == object_.end() ? nullptr : &*found;
  }
  void whole(const json& element, const std::string& path, uint32_t& value) {
    if (!element.is_number_unsigned() || element.get<uint64_t>() > UINT32_MAX) {
      complaint_.say(path, fmt::format("a whole number is needed, not {}", element.dump()));
      return;
    }
    value = element.get<uint32_t>();
  }
  template <class Take>
  void each(const char* field, Take take) {
    const json* const found = find(field);
    if (found == nullptr) return;
    if (!found->is_array()) {
      complaint_.say(path_of(field), "a list is needed: [ ... ]");
      return;
    }
    for (size_t n = 0; n < found->size(); ++n) take((*found)[n], fmt::format("{}[{}]", path_of(field), n));
  }
  std::string path_of(std::string_view field) const {
    return path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
  }

  const json& object_;
  std::string path_;
  Complaint& complaint_;
  std::set<std::string> known_;
};

void read_reach(Fields& fields, Reach& reach) {
  fields.number("latency_ns", reach.latency_ns);
  fields.number("overhead_ns", reach.overhead_ns);
  fields.number("copy_ns_per_byte", reach.copy_ns_per_byte);
  fields.whole("slots", reach.slots);
}

void read_fabric(Fields& file, NetworkSpec& spec, Complaint& complaint) {
  int given = 0;
  given += file.object("flat", [&](Fields& fields) {
    Crossbar flat;
    fields.number("hop_ns", flat.hop_ns);
    spec.fabric = flat;
  });
  given += file.object("fat_tree", [&](Fields& fields) {
    FatTree tree;
    fields.objects("levels", [&](Fields& level) {
      tree.levels.emplace_back();
      level.whole("radix", tree.levels.back().radix);
      level.number("oversubscription", tree.levels.back().oversubscription);
      level.number("hop_ns", tree.levels.back().hop_ns);
    });
    spec.fabric = std::move(tree);
  });
  given += file.object("dragonfly", [&](Fields& fields) {
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
  given += file.object("torus", [&](Fields& fields) {
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
  json parsed;
  try {
    parsed = json::parse(text);
  } catch (const json::parse_error& problem) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ..."
    const std::string what = problem.what();
    const size_t begin = what.find("] ");
    return error(TUTTI_ERR_CONFIG, "{}: {}", source, begin == std::string::npos ? what : what.substr(begin + 2));
  }
  Complaint complaint(source);
  NetworkSpec spec;
  spec.name = source;
  Fields file(parsed, "", complaint);
  file.text("name", spec.name);
  file.whole("ranks_per_node", spec.ranks_per_node);
  file.number("nic_gbytes_per_s", spec.nic_gbytes_per_s);
  file.number("rank_gbytes_per_s", spec.rank_gbytes_per_s);
  file.number("memory_gbytes_per_s", spec.memory_gbytes_per_s);
  file.number("step_ns", spec.prices.step_ns);
  file.number("reduce_ns_per_byte", spec.prices.reduce_ns_per_byte);
  file.number("copy_ns_per_byte", spec.prices.copy_ns_per_byte);
  file.bytes("segment_bytes", spec.prices.segment_bytes);
  file.object("node", [&](Fields& fields) { read_reach(fields, spec.prices.node); });
  file.object("network", [&](Fields& fields) { read_reach(fields, spec.prices.network); });
  read_fabric(file, spec, complaint);
  file.finish();
  if (!complaint.status().ok()) return complaint.status();
  // The numbers' own sense, without any job.
  if (const Result<Network> network = Network::make(spec, 1); !network.ok()) return network.status().with_context(source);
  return spec;
}

Result<NetworkSpec> load_topology(const std::string& path) {
  if (path.empty()) return NetworkSpec();
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.is_open() || file.bad()) return error(TUTTI_ERR_CONFIG, "{}: cannot be read", path);
  return parse_topology(text.str(), path);
}

}  // namespace tutti::simulator
