// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>
#include <span>
#include <string_view>

#include "schedule/program.hpp"

namespace tutti::mutants {

/// Change one thing. They return what was done ("step dropped"), or "" when the thing drawn cannot be done here or changes
/// nothing.
std::string_view mutate(Schedule& schedule, std::mt19937_64& random);
std::string_view mutate(Program& program, std::mt19937_64& random);

/// The kinds of change that there are, by name, for the table in the output.
std::span<const std::string_view> schedule_mutations();
std::span<const std::string_view> program_mutations();

}  // namespace tutti::mutants
