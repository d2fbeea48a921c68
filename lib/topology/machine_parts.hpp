// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "topology/machine.hpp"

/// What the readers of a machine have in common.
namespace tutti {

/// Host name, this process's CPUs, and network interfaces.
void add_host(Machine& machine);
/// pci_class: base class and subclass, 0x0200 for Ethernet. nullopt: does not matter here.
std::optional<DeviceKind> kind_of_pci_class(uint32_t pci_class);
/// Into the order that does not depend on who read them.
void sort_parts(Machine& machine);

}  // namespace tutti
