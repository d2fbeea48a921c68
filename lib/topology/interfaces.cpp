// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "topology/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "sysfs.hpp"

namespace tutti {
namespace {

unsigned prefix_of(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  const auto* const v4 = reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr);
  const auto* const v6 = reinterpret_cast<const unsigned char*>(&reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr);
  const unsigned char* const bytes = mask->sa_family == AF_INET6 ? v6 : v4;
  unsigned bits = 0;
  for (unsigned i = 0; i < (mask->sa_family == AF_INET6 ? 16u : 4u); ++i) {
    bits += static_cast<unsigned>(__builtin_popcount(bytes[i]));
  }
  return bits;
}

bool has(const char* what, const std::string& interface) {
  struct stat about {};
  return stat(fmt::format("/sys/class/net/{}/{}", interface, what).c_str(), &about) == 0;
}

}  // namespace

uint32_t interface_speed_mbits(const std::string& interface, const std::string& sys_root) {
  // -1: the driver does not know. Reading fails where there is no link, or never one.
  const std::optional<long long> speed = read_number(fmt::format("{}/class/net/{}/speed", sys_root, interface));
  return speed && *speed > 0 && *speed < UINT32_MAX ? static_cast<uint32_t>(*speed) : 0;
}

Result<std::vector<InterfaceAddress>> list_interface_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return system_error("getifaddrs", errno);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    std::array<char, NI_MAXHOST> host{};
    const socklen_t bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(entry->ifa_addr, bytes, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    InterfaceAddress address;
    address.interface = entry->ifa_name;
    address.address = host.data();
    address.prefix_bits = prefix_of(entry->ifa_netmask);
    address.up = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_RUNNING) != 0;
    address.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    address.point_to_point = (entry->ifa_flags & IFF_POINTOPOINT) != 0;
    address.physical = has("device", address.interface);
    // What software makes may claim any speed: a veth says 10 gigabits.
    if (address.physical || has("bonding", address.interface)) address.speed_mbits = interface_speed_mbits(address.interface);
    found.push_back(std::move(address));
  }
  freeifaddrs(list);
  return found;
}

}  // namespace tutti
