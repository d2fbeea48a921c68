// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "base/log.hpp"

#include <algorithm>
#include <iterator>

namespace tutti {
namespace {

class HookSink final : public LogSink {
 public:
  HookSink(void (*hook)(void*, int, const char*), void* user) : hook_(hook), user_(user) {}
  void write(LogLevel level, std::string_view line) noexcept override {
    try {
      hook_(user_, static_cast<int>(level), std::string(line).c_str());
    } catch (...) {  // out of memory, or a C++ hook that throws: a lost line must not become a crash
    }
  }

 private:
  void (*hook_)(void* user, int level, const char* line);
  void* user_;
};

}  // namespace

void Log::emit(LogLevel level, fmt::string_view format, fmt::format_args args) const noexcept {
  if (!sink_) return;
  try {
    fmt::memory_buffer line;
    if (!tag_.empty()) fmt::format_to(std::back_inserter(line), "[{}] ", tag_);
    fmt::vformat_to(std::back_inserter(line), format, args);
    // One call is one line, whatever a peer or a path put into the arguments.
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    sink_->write(level, std::string_view(line.data(), line.size()));
  } catch (...) {  // logging never turns into an error of the caller's
  }
}

std::shared_ptr<LogSink> make_hook_sink(void (*hook)(void* user, int level, const char* line), void* user) {
  return std::make_shared<HookSink>(hook, user);
}

}  // namespace tutti
