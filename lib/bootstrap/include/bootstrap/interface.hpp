// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "topology/interfaces.hpp"

namespace tutti {

/// Numeric addresses on which this rank may listen and that others should try, best first.
///
/// `wish` (setting `interface`) is a comma-separated list of exact names, addresses or CIDRs: each selects what it matches,
/// in the order written; one that matches nothing is TUTTI_ERR_CONFIG with what there is to choose from. Without a wish:
/// interfaces that are down and link-local addresses are left out, addresses of loopback scope too; the rest in the order
/// physical interface, other interface, global address on the loopback interface, interfaces that container and
/// virtualisation software makes (docker, virbr, veth, bridges, tunnels); within each IPv4 before IPv6, then the faster one, one of
/// unknown speed last. On a host with nothing else the loopback address is the answer.
Result<std::vector<std::string>> choose_addresses(const std::vector<InterfaceAddress>& interfaces, std::string_view wish);

/// Both steps, for a job that is all on this machine (loopback unless the setting says otherwise) or not.
Result<std::vector<std::string>> choose_local_addresses(const Config& config, bool single_host);

/// Text that is equal on two processes exactly if they can share memory and see each other's process ids: boot id and the
/// ids of the pid, mount, ipc and network namespaces, never the host name; or the setting `node_id`.
std::string host_identity(const Config& config);

}  // namespace tutti
