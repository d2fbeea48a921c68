// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/log.hpp"
#include "tutti/tutti.h"

namespace tutti {

/// The embedder's hooks with defaults in their place.
class Hooks {
 public:
  Hooks() { hooks_.struct_size = sizeof hooks_; }
  explicit Hooks(const tutti_hooks_t& hooks) : hooks_(hooks) {}

  void* allocate(size_t bytes, size_t alignment) const noexcept;
  void release(void* memory) const noexcept;
  /// Runs `body` on a new thread; the result joins it. Throws std::system_error when there can be no thread.
  std::function<void()> start_thread(std::function<void()> body) const;
  bool has_log() const noexcept { return hooks_.log != nullptr; }
  std::shared_ptr<LogSink> log_sink() const { return make_hook_sink(hooks_.log, hooks_.user); }

 private:
  tutti_hooks_t hooks_{};
};

}  // namespace tutti
