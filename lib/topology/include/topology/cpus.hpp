// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace tutti {

/// The system's numbers of processors (hardware threads), ascending.
using CpuList = std::vector<int>;

/// "0-3,8" -> {0,1,2,3,8}, as the kernel writes it; anything that is not such a list gives what could be read before it.
CpuList parse_cpu_list(std::string_view text);
/// Likewise for what people and peers write: TUTTI_ERR_ARGUMENT that shows the text and how to write it.
Result<CpuList> check_cpu_list(std::string_view text);
std::string format_cpu_list(const CpuList& cpus);

/// Whether all of `some` are in `all`. Both ascending.
bool is_within(const CpuList& some, const CpuList& all);

/// The CPUs that the calling thread may run on; empty when the kernel does not say.
CpuList allowed_cpus();

}  // namespace tutti
