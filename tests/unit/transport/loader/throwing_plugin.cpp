// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "tutti/transport.h"

extern "C" __attribute__((visibility("default"))) const tutti_tp_table_t* tutti_transport_entry(uint32_t) {
  throw std::runtime_error("no such device");
}
