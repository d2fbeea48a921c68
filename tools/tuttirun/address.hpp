// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace tutti::launch {

/// An address of this host.
struct LocalAddress {
  std::string interface;
  std::string address;  // without scope or prefix length
};
/// Addresses of interfaces that are up; link-local IPv6 ones are left out, as they mean nothing to another host.
std::vector<LocalAddress> local_addresses();

/// Whether `host` names the host we run on. Only names that need no resolver are recognised: localhost, the host name,
/// own addresses.
bool is_this_host(std::string_view host, std::string_view host_name, const std::vector<LocalAddress>& own);

/// Where ranks on other hosts reach the launcher. `wish` (an interface's name, an address, a CIDR) decides; else the
/// addresses under which the remote ends of ssh saw us (`seen`); else the only address that is not loopback. An error
/// names what there is to choose from.
Result<std::string> choose_address(std::string_view wish, const std::vector<std::string>& seen,
                                   const std::vector<LocalAddress>& own);

}  // namespace tutti::launch
