// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include "wire.hpp"

namespace tutti::tcp {

/// Where the next payload bytes go; data null: they are thrown away. bytes is never 0.
struct Target {
  std::uint8_t* data = nullptr;
  std::uint64_t bytes = 0;
};

/// Receives what a Decoder finds. Texts returned are violations of the protocol and end the decoding.
class FrameSink {
 public:
  virtual const char* frame(const FrameHeader& header) = 0;
  /// Asked anew before every copy or read, so that the destination may change while a payload is arriving.
  virtual Target target() = 0;
  virtual void advance(std::uint64_t bytes) = 0;
  virtual const char* frame_end() = 0;

 protected:
  ~FrameSink() = default;
};

/// Cuts a byte stream into frames, without touching a socket. Headers and small payloads pass through a buffer, so that
/// many small frames cost one read; the bulk of a large payload is read straight into its destination.
class Decoder {
 public:
  Decoder(std::uint8_t* buffer, std::size_t capacity) : buffer_(buffer), capacity_(capacity) {}

  /// Where the stream's next bytes are to be put: 1 or 2 pieces. commit() tells how many came.
  int space(FrameSink& sink, iovec out[2]);
  const char* commit(std::size_t bytes, FrameSink& sink);

  /// No frame is half received.
  bool at_boundary() const { return !in_payload_ && begin_ == end_; }

 private:
  const char* parse(FrameSink& sink);

  std::uint8_t* buffer_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t direct_ = 0;  ///< bytes of the last space() that lie in the destination itself
  bool in_payload_ = false;
  std::uint64_t payload_left_ = 0;
};

}  // namespace tutti::tcp
