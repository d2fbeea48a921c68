// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/status.hpp"
#include "schedule/network.hpp"

namespace tutti::simulator {

/// The text of a topology file; docs/tutti-sim.md has the fields. `source` is what messages call it. TUTTI_ERR_CONFIG with the
/// line where the text is no JSON, or the field that is unknown or has a bad value.
Result<NetworkSpec> parse_topology(std::string_view text, std::string_view source);
/// "" gives a flat network, a rank a node.
Result<NetworkSpec> load_topology(const std::string& path);

}  // namespace tutti::simulator
