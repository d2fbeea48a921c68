// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "loop.hpp"

#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tutti::launch {

void Fd::reset(int fd) noexcept {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

Result<std::pair<Fd, Fd>> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe2", errno);
  return std::pair<Fd, Fd>(Fd(ends[0]), Fd(ends[1]));
}

Status set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return system_error("fcntl(O_NONBLOCK)", errno);
  return Status();
}

Loop::Loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

bool Loop::watch(int fd, uint32_t events, std::function<void(uint32_t)> callback) {
  Watch watch{++generation_, events, std::make_shared<std::function<void(uint32_t)>>(std::move(callback))};
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(watch.generation) << 32 | static_cast<uint32_t>(fd);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return false;
  watches_[fd] = std::move(watch);
  return true;
}

void Loop::change(int fd, uint32_t events) {
  const auto found = watches_.find(fd);
  if (found == watches_.end() || found->second.events == events) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(found->second.generation) << 32 | static_cast<uint32_t>(fd);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) found->second.events = events;
}

void Loop::forget(int fd) {
  if (watches_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::after(uint64_t duration_ns, std::function<void()> callback) {
  const TimerId id = ++last_timer_;
  timers_.emplace(std::pair(Deadline::after(clock_, duration_ns).at_ns, id), std::move(callback));
  return id;
}

void Loop::cancel(TimerId timer) {
  const auto same = [timer](const auto& entry) { return entry.first.second == timer; };
  if (const auto found = std::find_if(timers_.begin(), timers_.end(), same); found != timers_.end())
    timers_.erase(found);
}

int Loop::timeout_ms() const {
  if (!deferred_.empty()) return 0;
  return timers_.empty() ? -1 : Deadline{timers_.begin()->first.first}.poll_ms(clock_);
}

void Loop::fire_timers() {
  while (!timers_.empty() && timers_.begin()->first.first <= clock_.now_ns()) {
    const std::function<void()> callback = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    callback();
  }
}

void Loop::run_once() {
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
  for (int i = 0; i < count; ++i) {
    const uint64_t data = events[static_cast<size_t>(i)].data.u64;
    const auto found = watches_.find(static_cast<int>(data & 0xffffffffu));
    // A callback before this one may have closed the descriptor, and its number may have a new owner already.
    if (found == watches_.end() || found->second.generation != data >> 32) continue;
    const auto callback = found->second.callback;
    (*callback)(events[static_cast<size_t>(i)].events);
  }
  fire_timers();
  std::vector<std::function<void()>> deferred;
  deferred.swap(deferred_);
  for (const auto& callback : deferred) callback();
}

StartState take_over(std::vector<int>& wanted) {
  StartState state{};
  if (getrlimit(RLIMIT_NOFILE, &state.descriptors) == 0) {
    rlimit raised = state.descriptors;
    raised.rlim_cur = raised.rlim_max;
    setrlimit(RLIMIT_NOFILE, &raised);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int signal : {SIGPIPE, SIGTTIN, SIGTTOU}) {
    struct sigaction before {};
    sigaction(signal, &ignore, &before);
    state.dispositions.emplace_back(signal, before);
  }
  const auto was_ignored = [](int signal) {
    if (signal != SIGHUP && signal != SIGINT && signal != SIGQUIT) return false;
    struct sigaction now {};
    return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  };
  wanted.erase(std::remove_if(wanted.begin(), wanted.end(), was_ignored), wanted.end());
  // A parent that ignores SIGCHLD would make the kernel reap for us, and the exit codes would be lost.
  if (std::find(wanted.begin(), wanted.end(), SIGCHLD) != wanted.end()) {
    struct sigaction normal {};
    normal.sa_handler = SIG_DFL;
    struct sigaction before {};
    sigaction(SIGCHLD, &normal, &before);
    state.dispositions.emplace_back(SIGCHLD, before);
  }
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : wanted) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, &state.mask);
  return state;
}

void give_back(const StartState& state) {
  if (state.descriptors.rlim_max != 0) setrlimit(RLIMIT_NOFILE, &state.descriptors);
  for (const auto& [signal, action] : state.dispositions) sigaction(signal, &action, nullptr);
  sigprocmask(SIG_SETMASK, &state.mask, nullptr);
}

Result<Fd> signal_descriptor(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  Fd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return system_error("signalfd", errno);
  return fd;
}

int read_signal(int fd) {
  signalfd_siginfo info{};
  return read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace tutti::launch
