// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

#include "loop.hpp"

namespace tutti::launch {

/// Passes the launcher's standard input on to rank 0, at most kWindowBytes ahead of it. A terminal is read only while
/// this process is in the foreground, so that a background job is never stopped for it.
class StandardInput {
 public:
  static constexpr size_t kWindowBytes = 256 * 1024;
  struct Handlers {
    std::function<void(std::string_view)> on_bytes;
    std::function<void()> on_end;
  };
  StandardInput(Loop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  ~StandardInput() { stop(); }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

  void start();
  /// Rank 0 has taken this much.
  void credit(size_t bytes);
  /// After SIGCONT: perhaps we are in the foreground now.
  void look_again();
  void stop();

 private:
  enum class State : uint8_t { idle, watching, always_ready, stopped };
  void readable();
  void wait_for_input();

  Loop& loop_;
  Handlers handlers_;
  State state_ = State::idle;
  size_t in_flight_ = 0;
  bool started_ = false;
};

}  // namespace tutti::launch
