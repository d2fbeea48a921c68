// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

namespace tutti {
namespace {

constexpr size_t kMaxNameBytes = 32;

/// Names are words of comma-separated settings and of counters.
bool good_name(const char* name) {
  if (name == nullptr) return false;
  const size_t length = ::strnlen(name, kMaxNameBytes + 1);
  if (length == 0 || length > kMaxNameBytes) return false;
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  return std::string_view(name, length).find_first_not_of(kAllowed) == std::string_view::npos;
}

const char* missing_always(const tutti_tp_table_t& table) {
  if (table.open == nullptr) return "open";
  if (table.address == nullptr) return "address";
  if (table.set_peer == nullptr) return "set_peer";
  if (table.start == nullptr) return "start";
  if (table.link == nullptr) return "link";
  if (table.connect == nullptr) return "connect";
  if (table.close == nullptr) return "close";
  if (table.cut == nullptr) return "cut";
  if (table.channel_open == nullptr) return "channel_open";
  if (table.channel_close == nullptr) return "channel_close";
  if (table.notify == nullptr) return "notify";
  if (table.progress == nullptr) return "progress";
  if (table.fd == nullptr) return "fd";
  if (table.arm == nullptr) return "arm";
  if (table.disarm == nullptr) return "disarm";
  return nullptr;
}

const char* missing_for_caps(const tutti_tp_table_t& table) {
  if ((table.caps & TUTTI_TP_CAP_MESSAGES) != 0) {
    if (table.post_send == nullptr) return "post_send";
    if (table.post_recv == nullptr) return "post_recv";
  }
  if ((table.caps & TUTTI_TP_CAP_SLOTS) != 0) {
    if (table.slot_reserve == nullptr) return "slot_reserve";
    if (table.slot_commit == nullptr) return "slot_commit";
    if (table.slot_peek == nullptr) return "slot_peek";
    if (table.slot_release == nullptr) return "slot_release";
  }
  return nullptr;
}

}  // namespace

std::string fault_of_table(const tutti_tp_table_t* table) {
  if (table == nullptr) return fmt::format("it has no table for ABI version {}", TUTTI_TP_ABI_VERSION);
  // These two come first in every version; nothing else may be read before they are known to fit.
  if (table->abi_version != TUTTI_TP_ABI_VERSION) {
    return fmt::format("it was built for ABI version {}, this Tutti has version {}", table->abi_version,
                       TUTTI_TP_ABI_VERSION);
  }
  if (table->struct_size != sizeof(tutti_tp_table_t)) {
    return fmt::format("its table has {} bytes, that of ABI version {} has {}: it was built against another transport.h",
                       table->struct_size, TUTTI_TP_ABI_VERSION, sizeof(tutti_tp_table_t));
  }
  if (!good_name(table->name)) {
    return fmt::format("its name is not 1 to {} lower-case letters, digits, '_' and '-'", kMaxNameBytes);
  }
  if (table->description == nullptr) return "its description is missing";
  if ((table->caps & (TUTTI_TP_CAP_MESSAGES | TUTTI_TP_CAP_SLOTS)) == 0) return "it offers neither messages nor slots";
  if ((table->caps & TUTTI_TP_CAP_MUST_POLL) != 0 && table->poll_interval_ns == 0) {
    return "it must be polled but does not say how often";
  }
  const char* missing = missing_always(*table);
  if (missing == nullptr) missing = missing_for_caps(*table);
  return missing == nullptr ? std::string() : fmt::format("its function {} is missing", missing);
}

}  // namespace tutti
