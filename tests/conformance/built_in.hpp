// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "subject.hpp"

namespace tutti::conformance {

/// Transports that are linked into the suite.
std::vector<tutti_transport_entry_t> built_in_entries();
/// How worlds for this transport are made; empty for those that need none.
std::function<std::unique_ptr<World>(uint32_t ranks)> world_of(const tutti_tp_table_t* table);

/// The same transport with faults that no host may mind: calls refused for no reason, messages kept back. An empty table:
/// the layer is not there.
Subject with_faults(const Subject& plain);

}  // namespace tutti::conformance
