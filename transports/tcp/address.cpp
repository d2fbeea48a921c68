// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "address.hpp"

#include <arpa/inet.h>

#include <cstring>

#include "tutti/transport.h"

namespace tutti::tcp {
namespace {
constexpr std::uint8_t kContactVersion = 1;
constexpr std::size_t kFixedBytes = 2 + 16 + 8;
static_assert(kFixedBytes + kMaxAddresses * (1 + 2 + 16) <= TUTTI_TP_ADDRESS_MAX_BYTES);
}  // namespace

socklen_t Address::to_sockaddr(sockaddr_storage* out) const {
  std::memset(out, 0, sizeof *out);
  if (ipv6) {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    std::memcpy(&in.sin6_addr, ip.data(), 16);
    std::memcpy(out, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  std::memcpy(&in.sin_addr, ip.data(), 4);
  std::memcpy(out, &in, sizeof in);
  return sizeof in;
}

bool Address::from_sockaddr(const sockaddr_storage& in, Address* out) {
  *out = Address();
  if (in.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &in, sizeof v4);
    out->port = ntohs(v4.sin_port);
    std::memcpy(out->ip.data(), &v4.sin_addr, 4);
    return true;
  }
  if (in.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &in, sizeof v6);
    out->ipv6 = true;
    out->port = ntohs(v6.sin6_port);
    std::memcpy(out->ip.data(), &v6.sin6_addr, 16);
    return true;
  }
  return false;
}

std::string Address::text() const {
  char number[INET6_ADDRSTRLEN] = "?";
  inet_ntop(ipv6 ? AF_INET6 : AF_INET, ip.data(), number, sizeof number);
  const std::string host = ipv6 ? "[" + std::string(number) + "]" : std::string(number);
  return host + ":" + std::to_string(port);
}

bool Address::loopback() const {
  if (!ipv6) return ip[0] == 127;
  in6_addr address{};
  std::memcpy(&address, ip.data(), 16);
  return IN6_IS_ADDR_LOOPBACK(&address) != 0;
}

std::vector<std::uint8_t> encode_contact(const Contact& contact) {
  std::vector<std::uint8_t> out(kFixedBytes);
  out[0] = kContactVersion;
  out[1] = static_cast<std::uint8_t>(contact.addresses.size());
  std::memcpy(out.data() + 2, contact.incarnation.data(), 16);
  store_le(out.data() + 18, contact.machine);
  for (const Address& address : contact.addresses) {
    const std::size_t at = out.size();
    out.resize(at + 3 + (address.ipv6 ? 16 : 4));
    out[at] = address.ipv6 ? 6 : 4;
    store_le(out.data() + at + 1, address.port);
    std::memcpy(out.data() + at + 3, address.ip.data(), address.ipv6 ? 16 : 4);
  }
  return out;
}

bool decode_contact(const void* bytes, std::size_t count, Contact* contact) {
  const auto* in = static_cast<const std::uint8_t*>(bytes);
  if (count < kFixedBytes || count > TUTTI_TP_ADDRESS_MAX_BYTES || in[0] != kContactVersion || in[1] > kMaxAddresses) {
    return false;
  }
  Contact result;
  std::memcpy(result.incarnation.data(), in + 2, 16);
  result.machine = load_le<std::uint64_t>(in + 18);
  std::size_t at = kFixedBytes;
  for (unsigned i = 0; i < in[1]; ++i) {
    if (at >= count || (in[at] != 4 && in[at] != 6)) return false;
    Address address;
    address.ipv6 = in[at] == 6;
    const std::size_t ip_bytes = address.ipv6 ? 16 : 4;
    if (count - at < 3 + ip_bytes) return false;
    address.port = load_le<std::uint16_t>(in + at + 1);
    std::memcpy(address.ip.data(), in + at + 3, ip_bytes);
    result.addresses.push_back(address);
    at += 3 + ip_bytes;
  }
  if (at != count) return false;
  *contact = std::move(result);
  return true;
}

bool parse_address(const std::string& text, Address* address) {
  *address = Address();
  if (inet_pton(AF_INET, text.c_str(), address->ip.data()) == 1) {
    const bool unspecified = std::memcmp(address->ip.data(), "\0\0\0", 4) == 0;
    return !unspecified;
  }
  address->ipv6 = true;
  in6_addr parsed{};
  if (inet_pton(AF_INET6, text.c_str(), &parsed) != 1) return false;
  std::memcpy(address->ip.data(), &parsed, 16);
  return !IN6_IS_ADDR_LINKLOCAL(&parsed) && !IN6_IS_ADDR_UNSPECIFIED(&parsed) && !IN6_IS_ADDR_MULTICAST(&parsed);
}

std::uint64_t hash_text(const char* text) {
  std::uint64_t hash = 14695981039346656037u;
  for (; text != nullptr && *text != '\0'; ++text) hash = (hash ^ static_cast<std::uint8_t>(*text)) * 1099511628211u;
  return hash;
}

}  // namespace tutti::tcp
