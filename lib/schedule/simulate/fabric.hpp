// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/network.hpp"

namespace tutti {

inline constexpr double ps_per_byte_at(double gbytes_per_s) { return 1000 / gbytes_per_s; }

class Fabric {
 public:
  virtual ~Fabric() = default;
  /// Nodes that there is room for; UINT32_MAX: no limit.
  virtual uint32_t capacity() const = 0;
  virtual uint32_t link_count() const = 0;
  virtual double ps_per_byte(uint32_t link) const = 0;
  virtual std::string link_name(uint32_t link) const = 0;
  /// Appends the links between two different nodes; returns the latency of the hops.
  virtual double route(uint32_t from, uint32_t to, std::vector<uint32_t>& links) const = 0;
  /// Groups of nodes, from the innermost level on.
  virtual uint32_t level_count() const { return 0; }
  virtual uint32_t group(uint32_t level, uint32_t node) const = 0;
};

Result<std::unique_ptr<Fabric>> make_fabric(const NetworkSpec& spec, uint32_t node_count);

}  // namespace tutti
