// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "bootstrap/net.hpp"
#include "bootstrap/secret.hpp"

namespace tutti {

/// All that one needs to join a job: what a unique id holds, and what rank 0 passes through a launcher's key space, a file
/// or the caller's store.
struct Invitation {
  std::vector<Endpoint> servers;
  Secret secret;                    // empty: an insecure job
  std::array<std::byte, 16> job{};  // different for every job
  uint32_t version = 0;

  static constexpr size_t kBytes = 256;
  /// TUTTI_ERR_INTERNAL only if the addresses do not fit (about ten).
  Result<std::array<std::byte, kBytes>> encode() const;
  /// TUTTI_ERR_ARGUMENT: not made by Tutti, or damaged (the checksum says so).
  static Result<Invitation> decode(std::span<const std::byte> bytes);
  std::string job_id() const;  // hex
};

/// For text-only channels.
std::string to_hex(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> from_hex(std::string_view text);

}  // namespace tutti
