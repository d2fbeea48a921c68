// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "tutti/transport.h"

namespace tutti::shm {

using Mac = std::array<uint8_t, 32>;

/// The host's services, as C++. Also a memory resource: all that an endpoint keeps is allocated through the host.
class Host final : public std::pmr::memory_resource {
 public:
  explicit Host(const tutti_tp_host_t* table) : table_{table} {}

  void log(int level, const std::string& line) const;
  uint64_t clock_ns() const { return table_->clock_ns(table_->host); }
  void random(void* bytes, size_t count) const { table_->random(table_->host, bytes, count); }
  Mac mac(const std::vector<uint8_t>& message) const;
  void peer_gone(uint32_t peer, int cause, const std::string& text) const {
    table_->peer_gone(table_->host, peer, cause, text.c_str());
  }
  void notified(uint32_t peer, const void* notice, size_t bytes) const { table_->notified(table_->host, peer, notice, bytes); }
  /// A setting that is a plain number; `fallback` if the host does not know it.
  Outcome number(const char* name, uint64_t fallback, uint64_t& value) const;

  uint64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* memory, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  const tutti_tp_host_t* table_;
  uint64_t allocated_bytes_ = 0;
};

/// Constant-time comparison, so that an answer's time does not tell how much of a forged proof was right.
template <typename Bytes>
bool same_bytes(const Bytes& a, const Bytes& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i]) ^ static_cast<unsigned>(b[i]);
  return difference == 0;
}

}  // namespace tutti::shm
