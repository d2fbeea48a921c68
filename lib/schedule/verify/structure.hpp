// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/status.hpp"
#include "schedule/program.hpp"

namespace tutti {

/// Limits of the engine.
inline constexpr uint32_t kMaxLanes = 64;
inline constexpr uint32_t kMaxStepOperands = 64;

/// All that must hold of a job's programs before any of them can be run: every index within its array, every operand within its
/// slice, each channel used in its own way, by its own lane, and alike at both ends.
Status check_structure(std::span<const Program> job);

}  // namespace tutti
