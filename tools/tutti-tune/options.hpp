// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "bench.hpp"
#include "measure.hpp"

namespace tutti::tune {

enum class ProgressKind : uint8_t { automatic, bar, lines, none };

struct Options {
  bool judge = false;
  std::vector<Collective> collectives;  // in the order in which they are measured
  std::vector<TypeClass> types = {TypeClass::floats};
  Sizes sizes;
  Effort effort;
  std::string output;
  bool resume = false;
  ProgressKind progress = ProgressKind::automatic;
};

/// Sets *print to a text, where that is all that is asked for. Throws UsageError.
Options parse_command_line(int argc, const char* const* argv, std::string* print);

}  // namespace tutti::tune
