// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "tutti/tutti.h"

namespace tutti {

enum class LogLevel : int {
  error = TUTTI_LOG_ERROR,
  warn = TUTTI_LOG_WARN,
  info = TUTTI_LOG_INFO,
  debug = TUTTI_LOG_DEBUG,
  trace = TUTTI_LOG_TRACE
};

/// Where lines go. write() gets one complete line without newline, may be called from any thread, and must not throw.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(LogLevel level, std::string_view line) noexcept = 0;
};

/// The facade that every part of Tutti logs through; owned by a context and passed down, never global. Cheap when the level
/// is off. A line is formatted once and written in one piece, with the rank as a tag.
class Log {
 public:
  Log(std::shared_ptr<LogSink> sink, LogLevel level, std::string tag = {})
      : sink_(std::move(sink)), level_(level), tag_(std::move(tag)) {}
  bool enabled(LogLevel level) const noexcept { return static_cast<int>(level) <= static_cast<int>(level_); }
  template <class... Args>
  void write(LogLevel level, fmt::format_string<Args...> format, Args&&... args) const noexcept {
    if (enabled(level)) emit(level, format, fmt::make_format_args(args...));
  }
  template <class... A>
  void error(fmt::format_string<A...> f, A&&... a) const noexcept {
    write(LogLevel::error, f, std::forward<A>(a)...);
  }
  template <class... A>
  void warn(fmt::format_string<A...> f, A&&... a) const noexcept {
    write(LogLevel::warn, f, std::forward<A>(a)...);
  }
  template <class... A>
  void info(fmt::format_string<A...> f, A&&... a) const noexcept {
    write(LogLevel::info, f, std::forward<A>(a)...);
  }
  template <class... A>
  void debug(fmt::format_string<A...> f, A&&... a) const noexcept {
    write(LogLevel::debug, f, std::forward<A>(a)...);
  }
  void set_tag(std::string tag) { tag_ = std::move(tag); }
  LogLevel level() const noexcept { return level_; }

 private:
  void emit(LogLevel level, fmt::string_view format, fmt::format_args args) const noexcept;
  std::shared_ptr<LogSink> sink_;
  LogLevel level_;
  std::string tag_;
};

/// spdlog to standard error (one write(2) a line), or to a file. The only place that knows spdlog is log_spdlog.cpp.
std::shared_ptr<LogSink> make_stderr_sink();
std::shared_ptr<LogSink> make_file_sink(const std::string& path);  // throws std::runtime_error if it cannot be opened
/// Lines to the embedder's hook.
std::shared_ptr<LogSink> make_hook_sink(void (*hook)(void* user, int level, const char* line), void* user);

}  // namespace tutti
