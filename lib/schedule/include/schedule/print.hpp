// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "schedule/program.hpp"

namespace tutti {

/// One line a step:   "lag 1  output[3/8] = message from 2 op input[3/8], finalized"
std::string print_text(const Schedule& schedule);
/// What the engine runs:   " 4  lag 2  await_received  staged 0[3/8]  ticket 1"
std::string print_text(const Program& program);
/// All ranks in Graphviz's language: a box for each rank, a node for each step, an arrow for each message.
std::string print_dot(std::span<const Schedule> job);

}  // namespace tutti
