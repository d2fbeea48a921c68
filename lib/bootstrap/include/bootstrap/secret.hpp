// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/status.hpp"

namespace tutti {

/// The job's secret: 32 bytes, wiped when it goes. Empty when there is none.
class Secret {
 public:
  static constexpr size_t kBytes = 32;
  Secret() noexcept = default;
  Secret(const Secret& other) noexcept = default;
  Secret& operator=(const Secret& other) noexcept = default;
  ~Secret() { wipe(); }

  static Secret generate(Random& random);
  static Secret from_bytes(std::span<const std::byte, kBytes> bytes) noexcept;
  /// A person's words, or a launcher's bytes of any length: hashed to 32 bytes.
  static Secret from_text(std::string_view text);

  bool empty() const noexcept { return !present_; }
  std::span<const std::byte, kBytes> bytes() const noexcept { return bytes_; }
  void wipe() noexcept;
  friend bool operator==(const Secret& a, const Secret& b) noexcept;  // in constant time

 private:
  std::array<std::byte, kBytes> bytes_{};
  bool present_ = false;
};

using Mac = std::array<std::byte, 32>;
/// Keyed hash of a message by the job's secret; `purpose` keeps the uses of one secret apart.
Mac keyed_mac(const Secret& secret, std::string_view purpose, std::span<const std::byte> message);
bool equal_macs(const Mac& a, const Mac& b) noexcept;  // in constant time

/// From secret_fd, else secret_file, else secret; empty when none is set. secret_fd is read from its beginning where it can
/// be (a memfd or a file: then a later call finds it again), and is marked close-on-exec. A secret_file that is not a regular
/// file of this user with mode 0600 or less is TUTTI_ERR_CONFIG.
Result<Secret> load_secret(const Config& config);

}  // namespace tutti
