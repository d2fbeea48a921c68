// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology_json.hpp"

#include <nlohmann/json.hpp>

#include "topology/places_file.hpp"

namespace tutti {

void check_topology_version(JsonFields& file) {
  uint32_t version = 0;
  if (!file.has(kVersionField)) {
    file.complaint().say(kVersionField, "is missing; tutti-info topology writes it, and files of networks for tutti-sim have none");
    return;
  }
  file.whole(kVersionField, version);
  if (version != kTopologyFileVersion)
    file.complaint().say(kVersionField, fmt::format("version {} is not known here, only {}", version, kTopologyFileVersion));
}

CpuList read_cpus(JsonFields& fields, const char* field) {
  std::string text;
  fields.text(field, text);
  Result<CpuList> cpus = check_cpu_list(text);
  if (cpus) return std::move(*cpus);
  fields.complaint().say(fields.path_of(field), cpus.status().message());
  return {};
}

std::string dump(const nlohmann::ordered_json& file) {
  return file.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace tutti
