// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "options.hpp"

namespace tutti::tune {

/// "1 min 20 s", "45 s".
std::string duration_text(double seconds);
/// "[#######             ]  35 %, about 45 s left  allreduce of 64K".
std::string bar_text(double share, double seconds_left, const std::string& what);
/// The same without the bar.
std::string line_text(double share, double seconds_left, const std::string& what);

/// Says on standard error how far it is: a line that changes on a terminal, else a line every other second.
class Progress {
 public:
  /// total: of the shares that done() is told. Says nothing where `speaks` is false: on all ranks but one.
  Progress(ProgressKind kind, bool speaks, double total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void begin(const std::string& what);
  /// measured: whether it took its time, so that it says something of what is left.
  void done(double part, bool measured);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool bar_;
  bool lines_;
  double total_;
  double done_ = 0;
  double measured_ = 0;
  bool shown_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_line_ = begin_;
};

}  // namespace tutti::tune
