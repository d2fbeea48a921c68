// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.hpp"

namespace tutti {

/// What a rank tells all others before they can talk: first who and where it is, then what it could start.
struct AddressCard {
  std::string topology;  // topology/card.hpp
  std::map<std::string, std::string> settings;   // those that must be equal everywhere; rank 0's count
  std::map<std::string, std::string> addresses;  // by transport name

  std::string encode() const;
  static Result<AddressCard> decode(std::string_view text, uint32_t rank);
};

struct StartCard {
  std::map<std::string, bool> started;   // by transport name
  uint64_t min_slot_bytes = UINT64_MAX;  // over all peers of this rank that slots can reach
  bool node_slots = true;                // slots reach all other ranks of this node

  std::string encode() const;
  static Result<StartCard> decode(std::string_view text, uint32_t rank);
};

}  // namespace tutti
