// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace tutti::launch {

struct Host {
  std::string name;
  uint32_t slots = 0;  // 0: not said
};
using HostList = std::vector<Host>;

/// "a:4,b,[fe80::1]:2". A host named twice has the slots of both.
Result<HostList> parse_host_list(std::string_view text);
/// Lines `host`, `host:N`, `host slots=N`; `#` starts a comment. `origin` names the file in errors.
Result<HostList> parse_host_file(std::string_view text, std::string_view origin);

struct HostRanks {
  std::string name;
  std::vector<uint32_t> ranks;
};
/// Ranks in blocks, hosts in the order given. Hosts without a slot count share evenly what the others leave. More ranks
/// than slots are an error unless `oversubscribe`: then rounds of blocks go on until all are placed. `ranks` 0: one per
/// slot. Hosts that get no rank are left out.
Result<std::vector<HostRanks>> place_ranks(const HostList& hosts, uint32_t ranks, bool oversubscribe);

}  // namespace tutti::launch
