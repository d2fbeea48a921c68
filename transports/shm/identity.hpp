// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host.hpp"

namespace tutti::shm {

using Token = std::array<uint8_t, 16>;

/// What a rank tells the others. Means something only to ranks with the same node key.
struct Address {
  uint64_t magic = kMagic;
  Token node_key{};     ///< equal: same machine, same namespaces, same user, same layout
  Token process{};      ///< equal: same process
  Token incarnation{};  ///< of this endpoint; also names its socket
  Token desk_nonce{};
  int32_t desk_fd = -1;  ///< in that process
  uint32_t pid = 0;

  static constexpr uint64_t kMagic = 0x31306d6873746e74ull;
};
static_assert(sizeof(Address) == 80 && sizeof(Address) <= TUTTI_TP_ADDRESS_MAX_BYTES);

/// Who is on the node: ranks ascending, and the processes they live in, by their first rank. All ranks of a node compute the
/// same from the addresses. A rank's place in `ranks` is its node index; process 0 has the first rank, which leads the set-up.
struct Roster {
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> process_of;              ///< by node index
  std::vector<std::vector<uint32_t>> processes;  ///< node indices of their ranks, ascending

  static Roster make(const std::map<uint32_t, Address>& addresses);
  /// UINT32_MAX: not on the node.
  uint32_t index_of(uint32_t rank) const;
};

/// Names the machine as this process sees it: ranks with equal keys can share memory, unless something unusual prevents it.
Token make_node_key(const Host& host, const Token& job, const std::string& host_identity);
/// Differs between any two processes, without a global that would have to be made unique.
Token make_process_token(const Host& host, const Token& job);

}  // namespace tutti::shm
