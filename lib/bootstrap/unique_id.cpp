// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/unique_id.hpp"

#include <algorithm>

namespace tutti {
namespace {

// magic [0,8), version [8,12), flags [12], bytes of addresses [13], job [16,32), secret [32,64), addresses [64,240) as text,
// checksum [240,256). The magic and the checksum stay where they are in every version.
constexpr std::string_view kMagic = "tuttiid1";
constexpr size_t kVersionAt = 8;
constexpr size_t kFlagsAt = 12;
constexpr size_t kLengthAt = 13;
constexpr size_t kJobAt = 16;
constexpr size_t kSecretAt = 32;
constexpr size_t kAddressesAt = 64;
constexpr size_t kChecksumAt = 240;
constexpr std::byte kHasSecret{1};

std::array<std::byte, 16> checksum(std::span<const std::byte> bytes) {
  const Mac mac = keyed_mac(Secret(), "unique id", bytes.first(kChecksumAt));
  std::array<std::byte, 16> sum{};
  std::copy_n(mac.begin(), sum.size(), sum.begin());
  return sum;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<std::array<std::byte, Invitation::kBytes>> Invitation::encode() const {
  const std::string addresses = endpoints_text(servers);
  if (addresses.size() > kChecksumAt - kAddressesAt) {
    return error(TUTTI_ERR_INTERNAL, "{} addresses do not fit into an invitation", servers.size());
  }
  std::array<std::byte, kBytes> bytes{};
  const auto text = std::as_bytes(std::span(addresses));
  std::copy(kMagic.begin(), kMagic.end(), reinterpret_cast<char*>(bytes.data()));
  for (size_t i = 0; i < 4; ++i) bytes[kVersionAt + i] = static_cast<std::byte>(version >> (8 * i));
  bytes[kFlagsAt] = secret.empty() ? std::byte{} : kHasSecret;
  bytes[kLengthAt] = static_cast<std::byte>(addresses.size());
  std::copy(job.begin(), job.end(), bytes.begin() + kJobAt);
  if (!secret.empty()) std::copy(secret.bytes().begin(), secret.bytes().end(), bytes.begin() + kSecretAt);
  std::copy(text.begin(), text.end(), bytes.begin() + kAddressesAt);
  const std::array<std::byte, 16> sum = checksum(bytes);
  std::copy(sum.begin(), sum.end(), bytes.begin() + kChecksumAt);
  return bytes;
}

Result<Invitation> Invitation::decode(std::span<const std::byte> bytes) {
  const auto* const text = reinterpret_cast<const char*>(bytes.data());
  if (bytes.size() != kBytes || std::string_view(text, kMagic.size()) != kMagic) {
    return error(TUTTI_ERR_ARGUMENT, "these {} bytes are no id that Tutti has made", bytes.size());
  }
  const std::array<std::byte, 16> sum = checksum(bytes);
  const size_t length = std::to_integer<size_t>(bytes[kLengthAt]);
  if (!std::equal(sum.begin(), sum.end(), bytes.begin() + kChecksumAt) || length > kChecksumAt - kAddressesAt) {
    return error(TUTTI_ERR_ARGUMENT, "the id is damaged: its checksum does not fit; were all {} bytes passed on?", kBytes);
  }
  Invitation invitation;
  for (size_t i = 0; i < 4; ++i) invitation.version |= std::to_integer<uint32_t>(bytes[kVersionAt + i]) << (8 * i);
  std::copy_n(bytes.begin() + kJobAt, invitation.job.size(), invitation.job.begin());
  if (bytes[kFlagsAt] == kHasSecret) {
    invitation.secret = Secret::from_bytes(bytes.subspan(kSecretAt).first<Secret::kBytes>());
  }
  Result<std::vector<Endpoint>> servers = parse_endpoints(std::string_view(text + kAddressesAt, length));
  if (!servers.ok()) return error(TUTTI_ERR_ARGUMENT, "the id holds no address: {}", servers.status().message());
  invitation.servers = std::move(servers).value();
  return invitation;
}

std::string Invitation::job_id() const { return to_hex(job); }

std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text.push_back(kDigits[std::to_integer<size_t>(byte >> 4)]);
    text.push_back(kDigits[std::to_integer<size_t>(byte & std::byte{15})]);
  }
  return text;
}

Result<std::vector<std::byte>> from_hex(std::string_view text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = i + 1 < text.size() ? digit(text[i + 1]) : -1;
    if (high < 0 || low < 0) return error(TUTTI_ERR_ARGUMENT, "not hexadecimal at character {}", i);
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

}  // namespace tutti
