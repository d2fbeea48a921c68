// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/json_fields.hpp"
#include "topology/cpus.hpp"

/// What the files of jobs and of machines have in common.
namespace tutti {

inline constexpr const char* kVersionField = "tutti_topology";

/// Complains unless the file says that it is of this format and version.
void check_topology_version(JsonFields& file);
/// A field like "0-3,8"; empty where it is not there.
CpuList read_cpus(JsonFields& fields, const char* field);
/// The text of a file. Names are the system's and may hold any bytes: what is no UTF-8 is replaced.
std::string dump(const nlohmann::ordered_json& file);

}  // namespace tutti
