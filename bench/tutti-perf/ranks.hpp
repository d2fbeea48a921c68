// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "options.hpp"
#include "tutti/tutti.h"

namespace tutti_perf {

/// Throws RunError "what: TUTTI_ERR_...: the library's message" unless status is TUTTI_OK.
void require(tutti_status_t status, const std::string& what);

/// Rank and size of a communicator that someone else owns.
struct Member {
  tutti_comm_t comm = nullptr;
  uint32_t rank = 0;
  uint32_t size = 1;
};

/// Creates the communicator of the job (processes from the environment, times options.threads threads) and runs body once for
/// each rank of this process, each on a thread of its own if there are several. Returns what the bodies returned, the largest;
/// a body that throws aborts the communicator, so that the other ranks end as well, and counts as kExitRuntime; its message goes
/// to standard error with the rank.
int run_ranks(const Options& options, const std::function<int(const Member&)>& body);

}  // namespace tutti_perf
