// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "tutti/transport.h"

namespace tutti::conformance {

/// The in-process world that some transports need. Real ones have none.
class World {
 public:
  virtual ~World() = default;
  virtual void* pointer() = 0;
  /// Lets something happen.
  virtual void step() = 0;
  virtual uint64_t now_ns() = 0;
};

/// The transport under test. Nothing but its table is used.
struct Subject {
  const tutti_tp_table_t* table = nullptr;
  std::function<std::unique_ptr<World>(uint32_t ranks)> make_world;  ///< empty: it needs none
};

/// Chosen by the command line, before any test case runs.
extern Subject subject;

inline const tutti_tp_table_t& tp() { return *subject.table; }

}  // namespace tutti::conformance
