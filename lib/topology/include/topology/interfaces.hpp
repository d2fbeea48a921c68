// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace tutti {

/// One address of one network interface of this host.
struct InterfaceAddress {
  std::string interface;
  std::string address;  // numeric, without prefix length; a link-local IPv6 one with %scope
  unsigned prefix_bits = 0;
  bool up = true;
  bool loopback = false;
  bool point_to_point = false;
  bool physical = false;     // backed by a device, not software
  uint32_t speed_mbits = 0;  // megabits per second; 0: unknown, as of software and of links that are down
};

/// What the kernel has (getifaddrs), in its order. Does not block, and asks nobody on the network.
Result<std::vector<InterfaceAddress>> list_interface_addresses();

/// Megabits per second by `<sys_root>/class/net/<interface>/speed`; 0: unknown.
uint32_t interface_speed_mbits(const std::string& interface, const std::string& sys_root = "/sys");

}  // namespace tutti
