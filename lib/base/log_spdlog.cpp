// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <stdexcept>

#include "base/log.hpp"
#include "base/status.hpp"

namespace tutti {
namespace {

/// Keeps a write to a closed pipe from raising SIGPIPE in a process that is not ours, without touching its handlers: the
/// signal is blocked for this thread and, if the write made it pending, taken back before it is unblocked.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeGuard() {
    const timespec none{};
    if (broken_ && !was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &none) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;
  void broken() { broken_ = true; }

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
  bool broken_ = false;
};

/// Formats by spdlog, writes each line by one write(2), so that lines of processes that share a descriptor stay whole.
class DescriptorSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  DescriptorSink(int fd, bool owned) : fd_(fd), owned_(owned) {}
  ~DescriptorSink() override {
    if (owned_) close(fd_);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    SigpipeGuard guard;
    size_t done = 0;
    while (done < line.size()) {
      const ssize_t wrote = ::write(fd_, line.data() + done, line.size() - done);
      if (wrote >= 0) {
        done += static_cast<size_t>(wrote);
      } else if (errno != EINTR) {
        if (errno == EPIPE) guard.broken();
        return;  // nowhere left to report it
      }
    }
  }
  void flush_() override {}

 private:
  int fd_;
  bool owned_;
};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::trace:
      return spdlog::level::trace;
  }
  return spdlog::level::err;
}

/// No spdlog::logger and no registry: those are process-wide and would outlive a dlclose of ours.
class SpdlogSink final : public LogSink {
 public:
  SpdlogSink(int fd, bool owned) : sink_(fd, owned) { sink_.set_pattern("%H:%M:%S.%e tutti %l: %v"); }
  void write(LogLevel level, std::string_view line) noexcept override {
    const int saved_errno = errno;
    try {
      sink_.log(
          spdlog::details::log_msg(spdlog::string_view_t(), to_spdlog(level), spdlog::string_view_t(line.data(), line.size())));
    } catch (...) {  // out of memory while formatting: the line is lost, the caller is not
    }
    errno = saved_errno;
  }

 private:
  DescriptorSink sink_;
};

}  // namespace

std::shared_ptr<LogSink> make_stderr_sink() { return std::make_shared<SpdlogSink>(STDERR_FILENO, false); }

std::shared_ptr<LogSink> make_file_sink(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) {
    const Status why = system_error("open", errno);
    throw std::runtime_error(fmt::format("cannot open log file '{}': {}", path, why.message()));
  }
  return std::make_shared<SpdlogSink>(fd, true);
}

}  // namespace tutti
