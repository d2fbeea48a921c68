// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lines.hpp"
#include "loop.hpp"

namespace tutti::launch {

/// stdout or stderr of one rank, as whole lines.
class RankStream {
 public:
  RankStream(Loop& loop, Fd fd, LineSplitter::Emit emit, std::function<void()> on_end);
  ~RankStream();
  RankStream(const RankStream&) = delete;
  RankStream& operator=(const RankStream&) = delete;

  void pause(bool paused);
  /// The rank is gone, but something that it started may hold the pipe for ever: take what is in it now, then end.
  void end_soon();
  bool ended() const { return !fd_.valid(); }
  /// The line that has begun but not ended yet.
  const std::string& unfinished() const { return lines_.held(); }

 private:
  void readable();
  void end();

  Loop& loop_;
  Fd fd_;
  LineSplitter lines_;
  LineSplitter::Emit emit_;
  std::function<void()> on_end_;
  bool paused_ = false;
  std::optional<size_t> left_;  // bytes still to take after end_soon
};

/// Standard input on its way to rank 0. What the rank has taken is reported, so that little is in flight.
class RankInput {
 public:
  RankInput(Loop& loop, Fd fd, std::function<void(size_t)> on_taken);
  ~RankInput();
  RankInput(const RankInput&) = delete;
  RankInput& operator=(const RankInput&) = delete;
  void write(std::string_view bytes);
  void finish();
  /// The rank ended or closed its stdin: what still comes is dropped.
  void close();

 private:
  void pump();

  Loop& loop_;
  Fd fd_;
  std::function<void(size_t)> on_taken_;
  std::string queue_;
  bool finishing_ = false;
};

}  // namespace tutti::launch
