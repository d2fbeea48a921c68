// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/control.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <thread>

namespace tutti {

std::function<void()> start_system_thread(std::function<void()> body) {
  // Signals are the program's business, not this thread's; a new thread inherits the mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::shared_ptr<std::thread> thread;
  try {
    thread = std::make_shared<std::thread>(std::move(body));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return [thread] { thread->join(); };
}

Status ControlThread::start(const Starter& starter) {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) return system_error("eventfd", errno);
  engine_.set_watcher([this](bool left_behind) {
    // One wake-up for many operations: it looks again when it goes to sleep. A call that undid the arming only makes it look
    // every tick until calls come no more.
    if (!left_behind || !left_behind_.exchange(true, std::memory_order_seq_cst)) wake();
  });
  try {
    join_ = starter([this] { serve(); });
  } catch (const std::exception& e) {
    return error(TUTTI_ERR_RESOURCE, "cannot start the control thread: {}; the setting control_thread=off does without", e.what());
  }
  if (!join_) return error(TUTTI_ERR_RESOURCE, "the thread_start hook gave no token for the control thread");
  return Status();
}

void ControlThread::stop() {
  if (join_) {
    stop_.store(true, std::memory_order_seq_cst);
    wake();
    join_();
    join_ = nullptr;
    engine_.set_watcher(nullptr);
  }
  if (wake_fd_ >= 0) ::close(wake_fd_);
  wake_fd_ = -1;
}

void ControlThread::wake() noexcept {
  const uint64_t one = 1;
  while (::write(wake_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void ControlThread::park(uint64_t until_ns, bool armed) {
  pollfd wanted[2] = {{wake_fd_, POLLIN, 0}, {engine_.fd(), POLLIN, 0}};
  const int ready = ::poll(wanted, armed ? 2 : 1, Deadline{until_ns}.poll_ms(clock_));
  uint64_t cleared = 0;
  if (ready > 0 && wanted[0].revents != 0)
    while (::read(wake_fd_, &cleared, sizeof cleared) < 0 && errno == EINTR) {
    }
}

void ControlThread::serve() {
  uint64_t seen_generation = engine_.generation();
  while (!stop_.load(std::memory_order_seq_cst)) {
    const bool asked = left_behind_.exchange(false, std::memory_order_seq_cst);
    const uint64_t generation = engine_.generation();
    const bool calls_come = generation != seen_generation && !asked;
    seen_generation = generation;
    std::optional<uint64_t> next;
    if (!calls_come) next = engine_.progress_and_arm();
    if (!next) {
      park(clock_.now_ns() + kTickNs, false);
      continue;
    }
    park(*next, true);
  }
}

}  // namespace tutti
