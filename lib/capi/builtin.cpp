// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "builtin.hpp"

#include <array>

#ifdef TUTTI_HAVE_SHM
extern "C" const tutti_tp_table_t* tutti_shm_transport_entry(uint32_t host_abi_version);
#endif
#ifdef TUTTI_HAVE_TCP
extern "C" const tutti_tp_table_t* tutti_tcp_transport_entry(uint32_t host_abi_version);
#endif

namespace tutti {

std::span<const tutti_transport_entry_t> built_in_transports() noexcept {
  static constexpr auto kEntries = std::to_array<tutti_transport_entry_t>({
#ifdef TUTTI_HAVE_SHM
      tutti_shm_transport_entry,
#endif
#ifdef TUTTI_HAVE_TCP
      tutti_tcp_transport_entry,
#endif
      nullptr,
  });
  return std::span(kEntries).first(kEntries.size() - 1);
}

}  // namespace tutti
