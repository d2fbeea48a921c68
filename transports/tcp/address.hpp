// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "handshake.hpp"

namespace tutti::tcp {

/// A numeric IP address and a port.
struct Address {
  bool ipv6 = false;
  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> ip{};  ///< network order; IPv4 uses the first four

  socklen_t to_sockaddr(sockaddr_storage* out) const;
  static bool from_sockaddr(const sockaddr_storage& in, Address* out);
  /// "10.0.0.1:4711", "[::1]:4711"
  std::string text() const;
  bool loopback() const;
  bool operator==(const Address& other) const = default;
};

/// What an endpoint tells the others about itself: its present incarnation, the machine it is on, where it listens.
struct Contact {
  Incarnation incarnation{};
  std::uint64_t machine = 0;  ///< hash of host_identity
  std::vector<Address> addresses;
};

/// As many listeners as fit into TUTTI_TP_ADDRESS_MAX_BYTES.
inline constexpr std::size_t kMaxAddresses = 20;

std::vector<std::uint8_t> encode_contact(const Contact& contact);
/// False: the bytes are no contact.
bool decode_contact(const void* bytes, std::size_t count, Contact* contact);

/// One numeric address without port. False: not one, or one that cannot be told to others (link-local, unspecified).
bool parse_address(const std::string& text, Address* address);
std::uint64_t hash_text(const char* text);

}  // namespace tutti::tcp
