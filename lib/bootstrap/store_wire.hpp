// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.hpp"
#include "bootstrap/net.hpp"
#include "bootstrap/store.hpp"

namespace tutti {

/// What goes over a store connection after the handshake: frames of
///   u32 body bytes | u8 kind | u64 id | u16 key bytes | key | payload (the rest)          little-endian
/// A request gets exactly one answer with its id; get is answered when the key is there. The server begins with `welcome`,
/// whose payload is its instance: another one means that everything said before is forgotten.
enum class FrameKind : uint8_t { welcome = 1, set = 2, get = 3, claim = 4, find_absent = 5, erase = 6, answer = 7 };

struct Frame {
  FrameKind kind = FrameKind::answer;
  uint64_t id = 0;
  std::string_view key;
  std::string_view payload;
};

inline constexpr size_t kFrameHeaderBytes = 4 + 1 + 8 + 2;
inline constexpr size_t kMostFrameBytes = kFrameHeaderBytes + Store::kMostKeyBytes + Store::kMostValueBytes;

std::string encode_frame(const Frame& frame);
/// The frame without its payload, of which `payload_bytes` follow.
std::string encode_frame_header(FrameKind kind, uint64_t id, std::string_view key, size_t payload_bytes);

void put_u32(std::string* text, uint32_t number);
/// Takes a number off the front; nullopt when there are too few bytes.
std::optional<uint32_t> take_u32(std::string_view* text);

std::string encode_rank_set(const RankSet& set);
std::optional<RankSet> decode_rank_set(std::string_view text);

/// A Status as a value of the store.
std::string encode_status(const Status& status);
Status decode_status(std::string_view text);
/// Key under which the server itself tells all ranks that the job cannot start.
inline constexpr std::string_view kServerErrorKey = "server-error";

/// What the handshake of a store connection is for.
std::string store_purpose(std::string_view job_id);

/// Cuts what a stream gives into frames. Memory grows with the bytes that have come, never with a length that was announced.
class FrameReader {
 public:
  /// Reads once.
  Io fill(Stream& stream);
  enum class Next : uint8_t { frame, none, malformed };
  /// The views of *frame are good until the next call of fill or next.
  Next next(Frame* frame);
  size_t memory_bytes() const noexcept { return buffer_.capacity(); }

 private:
  std::string buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

/// Bytes on their way out. A value is held once, however many get it.
class FrameWriter {
 public:
  void push(std::string bytes);
  void push(std::shared_ptr<const std::string> bytes);
  /// done: all is out.
  Io flush(Stream& stream);
  bool empty() const noexcept { return pieces_.empty(); }
  size_t piece_count() const noexcept { return pieces_.size(); }
  void clear() noexcept;

 private:
  std::deque<std::shared_ptr<const std::string>> pieces_;
  size_t sent_ = 0;  // of the first piece
};

}  // namespace tutti
