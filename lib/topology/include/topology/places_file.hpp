// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "topology/topology.hpp"

/// A job's topology as a file: what `tutti-info topology --job --json` writes and the setting `topology_file` reads.
/// docs/topology.md describes it.
namespace tutti {

/// The version of the format, in the field `tutti_topology`.
inline constexpr uint32_t kTopologyFileVersion = 1;
inline constexpr uint64_t kMostTopologyFileBytes = 16 << 20;

/// Places by rank. `source` is for messages: the file's path. Every rank is named once, from 0 to the last. TUTTI_ERR_CONFIG with
/// source, line or field, value and remedy.
Result<std::vector<Place>> parse_places(std::string_view text, std::string_view source);
/// Likewise from a file, for a job of `size` ranks.
Result<std::vector<Place>> load_places(const std::string& path, uint32_t size);
/// The file for these places; parse_places gives them back.
std::string format_places(const std::vector<Place>& places);

}  // namespace tutti
