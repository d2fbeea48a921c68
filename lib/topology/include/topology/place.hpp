// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "topology/cpus.hpp"

namespace tutti {

/// Instead of the number of a package, NUMA node or cache: the rank's CPUs lie in several, or nobody knows.
inline constexpr int kSpread = -1;

/// Where one rank runs.
struct Place {
  std::string host;       ///< equal exactly on ranks of one node: never a host name, which two hosts may share
  std::string host_name;  ///< for people
  std::string machine;    ///< equal where ranks compete for the same processors, also from different containers
  CpuList cpus;           ///< that it may run on; empty: unknown
  int package = kSpread;  ///< the one (socket) that all its CPUs lie in
  int numa = kSpread;     ///< likewise the NUMA node
  int l3 = kSpread;       ///< likewise the outermost cache, known by the first CPU that shares it

  bool operator==(const Place&) const = default;
};

/// The package, NUMA node and L3 of `cpus`, from `<sys_root>/devices/system`: half a dozen small files, whatever the machine's size.
/// What the kernel does not tell stays kSpread.
Place find_place(CpuList cpus, const std::string& sys_root = "/sys");

/// The kernel's id of this boot of this machine, the same in all its containers; "" when it cannot be read.
std::string boot_id();

}  // namespace tutti
