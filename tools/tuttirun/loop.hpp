// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace tutti::launch {

/// A descriptor that closes itself.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { reset(); }
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

/// Two ends of a pipe, close-on-exec: first to read from, second to write to.
Result<std::pair<Fd, Fd>> make_pipe();
Status set_nonblocking(int fd);

/// One thread's events: descriptors, timers, and work put off to the end of the round. Callbacks may watch and forget
/// whatever they like; what has been forgotten is not called any more.
class Loop {
 public:
  using TimerId = uint64_t;
  Loop();

  /// false: the descriptor cannot be waited for (a regular file): it is always ready.
  bool watch(int fd, uint32_t events, std::function<void(uint32_t events)> callback);
  void change(int fd, uint32_t events);
  void forget(int fd);

  TimerId after(uint64_t duration_ns, std::function<void()> callback);
  void cancel(TimerId timer);
  /// Runs once the events at hand have been handed out.
  void defer(std::function<void()> callback) { deferred_.push_back(std::move(callback)); }

  /// Waits for something to happen and handles all of it.
  void run_once();
  uint64_t now_ns() const { return clock_.now_ns(); }

 private:
  struct Watch {
    uint32_t generation;
    uint32_t events;
    std::shared_ptr<std::function<void(uint32_t)>> callback;
  };
  int timeout_ms() const;
  void fire_timers();

  SystemClock clock_;
  Fd epoll_;
  uint32_t generation_ = 0;
  TimerId last_timer_ = 0;
  std::map<int, Watch> watches_;
  std::map<std::pair<uint64_t, TimerId>, std::function<void()>> timers_;
  std::vector<std::function<void()>> deferred_;
};

/// What this process was started with, and what a program that it starts must get back.
struct StartState {
  sigset_t mask;
  rlimit descriptors;
  std::vector<std::pair<int, struct sigaction>> dispositions;
};
/// Ignores what must not stop or kill us (SIGPIPE, SIGTTIN, SIGTTOU), blocks `wanted`, and returns the state before.
/// The soft limit of descriptors is raised to the hard one: each rank costs three.
/// SIGHUP, SIGINT and SIGQUIT that were ignored (nohup, a background job of a script) are taken out of `wanted`.
StartState take_over(std::vector<int>& wanted);
/// For a child before exec.
void give_back(const StartState& state);
/// Descriptor from which blocked signals are read.
Result<Fd> signal_descriptor(const std::vector<int>& signals);
/// The next signal number from it, or 0.
int read_signal(int fd);

}  // namespace tutti::launch
