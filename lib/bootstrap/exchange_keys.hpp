// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

/// Where the first rank of an exchange notes what all must agree on, and the size that is noted there (0: unreadable).
std::string exchange_job_key(std::string_view room, uint32_t generation);
uint32_t exchange_job_size(std::string_view value);

}  // namespace tutti
