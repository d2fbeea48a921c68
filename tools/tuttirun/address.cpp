// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace tutti::launch {

namespace {
/// The bytes of a numeric address; empty: it is none.
std::string numeric(std::string_view text) {
  const std::string copy(text);
  std::array<char, 16> bytes{};
  if (inet_pton(AF_INET, copy.c_str(), bytes.data()) == 1) return std::string(bytes.data(), 4);
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) return std::string(bytes.data(), 16);
  return "";
}

bool is_loopback(std::string_view address) {
  const std::string bytes = numeric(address);
  return (bytes.size() == 4 && bytes[0] == 127) || address == "::1";
}

/// Whether `address` lies in `network` with that many leading bits.
bool inside(const std::string& address, const std::string& network, size_t bits) {
  if (address.size() != network.size() || bits > 8 * network.size()) return false;
  for (size_t bit = 0; bit < bits; ++bit) {
    const unsigned shift = 7 - bit % 8;
    if (((static_cast<unsigned char>(address[bit / 8]) ^ static_cast<unsigned char>(network[bit / 8])) >> shift & 1u) !=
        0)
      return false;
  }
  return true;
}

bool matches(std::string_view wish, const LocalAddress& own) {
  if (wish == own.interface) return true;
  const size_t slash = wish.find('/');
  const std::string network = numeric(wish.substr(0, slash));
  if (network.empty()) return false;
  size_t bits = 8 * network.size();
  if (slash != std::string_view::npos) {
    const std::string_view length = wish.substr(slash + 1);
    const auto parsed = std::from_chars(length.data(), length.data() + length.size(), bits);
    if (parsed.ec != std::errc() || parsed.ptr != length.data() + length.size()) return false;
  }
  return inside(numeric(own.address), network, bits);
}

std::string list(const std::vector<LocalAddress>& addresses) {
  std::string text;
  for (const LocalAddress& own : addresses)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", own.interface, own.address);
  return text.empty() ? "none" : text;
}
}  // namespace

std::vector<LocalAddress> local_addresses() {
  std::vector<LocalAddress> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return found;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (entry->ifa_addr->sa_family == AF_INET) {
      sockaddr_in address;
      memcpy(&address, entry->ifa_addr, sizeof address);
      inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 address;
      memcpy(&address, entry->ifa_addr, sizeof address);
      if (IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr)) continue;
      inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
    } else {
      continue;
    }
    found.push_back({entry->ifa_name, text.data()});
  }
  freeifaddrs(first);
  return found;
}

bool is_this_host(std::string_view host, std::string_view host_name, const std::vector<LocalAddress>& own) {
  if (host == "localhost" || host == host_name || is_loopback(host)) return true;
  const std::string bytes = numeric(host);
  if (bytes.empty()) return false;
  return std::any_of(own.begin(), own.end(),
                     [&](const LocalAddress& address) { return numeric(address.address) == bytes; });
}

Result<std::string> choose_address(std::string_view wish, const std::vector<std::string>& seen,
                                   const std::vector<LocalAddress>& own) {
  if (!wish.empty()) {
    for (const LocalAddress& address : own) {
      if (matches(wish, address)) return std::string(address.address);
    }
    return error(TUTTI_ERR_ARGUMENT, "--interface: '{}' fits no address of this host, which has: {}", wish, list(own));
  }
  for (const std::string& address : seen) {
    const std::string bytes = numeric(address);
    for (const LocalAddress& mine : own) {
      // An address that is not ours is that of a translating gateway.
      if (!bytes.empty() && !is_loopback(address) && numeric(mine.address) == bytes) return std::string(mine.address);
    }
  }
  std::vector<LocalAddress> outward;
  // A global address on the loopback interface counts: routers announce such.
  std::copy_if(own.begin(), own.end(), std::back_inserter(outward),
               [](const LocalAddress& address) { return !is_loopback(address.address); });
  const bool one_interface = std::all_of(outward.begin(), outward.end(), [&](const LocalAddress& address) {
    return address.interface == outward.front().interface;
  });
  if (outward.empty()) return error(TUTTI_ERR_ENVIRONMENT, "this host has no address that others could reach");
  if (!one_interface) {
    return error(TUTTI_ERR_ARGUMENT,
                 "under which address do the other hosts reach this one? say --interface; there are: {}",
                 list(outward));
  }
  return std::string(outward.front().address);
}

}  // namespace tutti::launch
