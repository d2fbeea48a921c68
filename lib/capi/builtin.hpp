// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "tutti/transport.h"

namespace tutti {

/// The transports linked into this library, in order of preference.
std::span<const tutti_transport_entry_t> built_in_transports() noexcept;

}  // namespace tutti
