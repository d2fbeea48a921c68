// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "schedule/program.hpp"

namespace tutti {

std::string_view name(BufferId buffer) noexcept;  // "input"
std::string_view name(Carrier carrier) noexcept;  // "slots"
std::string_view name(Verb verb) noexcept;        // "post_recv"

}  // namespace tutti
