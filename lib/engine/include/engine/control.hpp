// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/clock.hpp"
#include "base/status.hpp"
#include "engine/engine.hpp"

namespace tutti {

/// The one thread of a context: connections, failures, and operations that nobody waits for. It keeps out of the way of a program
/// that calls all the time, whose own calls do all that is needed: it then only looks, every kTickNs, whether calls still come.
/// When they stopped (the program computes) or operations were left behind, it arms the transports and sleeps on them.
class ControlThread {
 public:
  /// start: runs a function on a new thread and returns what joins it.
  using Starter = std::function<std::function<void()>(std::function<void()> body)>;

  ControlThread(Engine& engine, const Clock& clock) : engine_(engine), clock_(clock) {}
  ~ControlThread() { stop(); }
  ControlThread(const ControlThread&) = delete;
  ControlThread& operator=(const ControlThread&) = delete;

  Status start(const Starter& starter);
  void stop();

  static constexpr uint64_t kTickNs = 20'000'000;

 private:
  void serve();
  void park(uint64_t until_ns, bool armed);
  void wake() noexcept;

  Engine& engine_;
  const Clock& clock_;
  int wake_fd_ = -1;
  std::atomic<bool> stop_{false};
  std::atomic<bool> left_behind_{false};
  std::function<void()> join_;
};

/// std::thread with all signals blocked.
std::function<void()> start_system_thread(std::function<void()> body);

}  // namespace tutti
