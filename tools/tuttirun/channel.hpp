// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "loop.hpp"
#include "wire.hpp"

namespace tutti::launch {

/// Frames over a pair of descriptors, both ways, never blocking. Between launcher and agent.
class Channel {
 public:
  struct Handlers {
    std::function<void(Frame)> on_frame;
    /// Once: end of file, a read error, or bytes that are no frames (then `why` says so).
    std::function<void(Status why)> on_close;
    std::function<void()> on_drained;  // the queue fell below kLowWater after it had been above kHighWater
  };
  static constexpr size_t kHighWater = 1u << 20;
  static constexpr size_t kLowWater = 1u << 18;

  Channel(Loop& loop, Fd read_end, Fd write_end, bool expect_magic, Handlers handlers);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void send_raw(std::string_view bytes);
  void send(FrameType type, std::string_view payload = {}) { send_raw(encode(type, payload)); }
  size_t pending() const { return queue_.size() - sent_; }
  bool congested() const { return pending() > kHighWater; }
  /// No more reading for now: the receiver of what we read cannot keep up.
  void pause(bool paused);
  /// The other side sees end of file once the queue is sent.
  void finish_writing();
  bool open() const { return !closed_; }
  const std::string& banner() const { return frames_.banner(); }

 private:
  void readable();
  void writable();
  void handle_frames();
  void close_reading(Status why);
  void drop_writer();

  Loop& loop_;
  Fd read_end_;
  Fd write_end_;
  FrameReader frames_;
  Handlers handlers_;
  std::string queue_;
  size_t sent_ = 0;
  bool paused_ = false;
  bool closed_ = false;
  bool finishing_ = false;
  bool was_congested_ = false;
};

}  // namespace tutti::launch
