// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "tutti/transport.h"

namespace tutti {

/// What engines tell each other beside the channels. Travels as these bytes between machines of one byte order (the bootstrap's
/// protocol version covers it).
struct Notice {
  enum Kind : uint32_t {
    failed = 1,    ///< the communicator `id` has failed with `code`, by `culprit` (world rank)
    question = 2,  ///< are you still in communicator `id`?
    departed = 3,  ///< no: I destroyed it after `collectives` collectives and `messages` messages to you
  };
  static constexpr uint32_t kMagic = 0x4e747574;
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint64_t id = 0;
  int32_t code = 0;
  uint32_t culprit = UINT32_MAX;
  uint64_t collectives = 0;
  uint64_t messages = 0;
};
static_assert(sizeof(Notice) == 40 && sizeof(Notice) <= TUTTI_TP_NOTICE_MAX_BYTES && std::is_trivially_copyable_v<Notice>);

}  // namespace tutti
