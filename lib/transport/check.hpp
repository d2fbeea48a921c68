// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tutti/transport.h"

namespace tutti {

/// Why the host cannot use the table; "" if it can.
std::string fault_of_table(const tutti_tp_table_t* table);

}  // namespace tutti
