// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/record.hpp"
#include "tutti/transport.h"

namespace tutti {

/// A collective call of one rank, as others hear of it.
struct NoticeCall {
  uint32_t rank = UINT32_MAX;  ///< world rank
  uint32_t mark = 0;
  uint64_t sequence = 0;  ///< 0: the call is not known
  CallSignature call;
};

/// What engines tell each other beside the channels. Travels as these bytes between machines of one byte order (the bootstrap's
/// protocol version covers it).
struct Notice {
  enum Kind : uint32_t {
    failed = 1,    ///< the communicator `id` has failed with `code`, by `culprit` (world rank); a mismatch: of these two calls
    question = 2,  ///< are you still in communicator `id`? I wait in calls[0]
    departed = 3,  ///< no: I destroyed it after `collectives` collectives and `messages` messages to you
    inquiry = 4,   ///< a message of yours has the mark calls[1].mark and is not of my calls[0]: what did you call?
    answer = 5,    ///< calls[0]
  };
  static constexpr uint32_t kMagic = 0x4e747574;
  uint32_t magic = kMagic;
  uint32_t kind = 0;
  uint64_t id = 0;
  int32_t code = 0;
  uint32_t culprit = UINT32_MAX;
  uint64_t collectives = 0;
  uint64_t messages = 0;
  NoticeCall calls[2];
};
static_assert(sizeof(Notice) == 120 && sizeof(Notice) <= TUTTI_TP_NOTICE_MAX_BYTES && std::is_trivially_copyable_v<Notice>);

}  // namespace tutti
