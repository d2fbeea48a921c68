// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tutti {

/// The first line of a small file of the kernel, without its end; "" where there is none, or it cannot be read.
std::string read_line(const std::string& path);
/// Its number, decimal or (0x) hexadecimal.
std::optional<long long> read_number(const std::string& path);
/// The names in a folder, sorted; none where there is no folder.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace tutti
