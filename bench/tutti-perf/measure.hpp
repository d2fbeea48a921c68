// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.hpp"
#include "ranks.hpp"

namespace tutti_perf {

/// Everything that one rank does: all rows of all collectives. Rank 0 prints. Returns kExitOk or, on every rank alike,
/// kExitWrong.
int measure_all(const Options& options, const Member& member);

}  // namespace tutti_perf
