// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tutti::tune {
namespace {

constexpr double kSecondsBetweenLines = 2;

std::string left_text(double seconds_left) {
  return seconds_left < 0 ? std::string() : fmt::format(", about {} left", duration_text(seconds_left));
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(std::max(seconds, 0.0)));
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string line_text(double share, double seconds_left, const std::string& what) {
  return fmt::format("{:3.0f} %{}  {}", share * 100, left_text(seconds_left), what);
}

std::string bar_text(double share, double seconds_left, const std::string& what) {
  constexpr size_t kWidth = 24;
  const auto full = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * kWidth);
  return fmt::format("[{}{}] {}", std::string(full, '#'), std::string(kWidth - full, ' '), line_text(share, seconds_left, what));
}

Progress::Progress(ProgressKind kind, bool speaks, double total)
    : bar_(speaks && (kind == ProgressKind::bar || (kind == ProgressKind::automatic && isatty(STDERR_FILENO) == 1))),
      lines_(speaks && !bar_ && kind != ProgressKind::none),
      total_(std::max(total, 1.0)) {}

void Progress::begin(const std::string& what) {
  const Clock::time_point now = Clock::now();
  if (!bar_ && (!lines_ || std::chrono::duration<double>(now - last_line_).count() < kSecondsBetweenLines)) return;
  last_line_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double left = measured_ <= 0 ? -1 : seconds / measured_ * (total_ - done_);
  if (bar_) {
    fmt::print(stderr, "\r\033[K{}", bar_text(done_ / total_, left, what));
    shown_ = true;
  } else {
    fmt::print(stderr, "tutti-tune: {}\n", line_text(done_ / total_, left, what));
  }
  std::fflush(stderr);
}

void Progress::done(double part, bool measured) {
  done_ += part;
  if (measured) measured_ += part;
}

void Progress::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace tutti::tune
