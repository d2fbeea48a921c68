// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "store_wire.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tutti {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

template <class T>
void put(std::string* text, T number) {
  for (size_t i = 0; i < sizeof(T); ++i) text->push_back(static_cast<char>(static_cast<uint64_t>(number) >> (8 * i)));
}

template <class T>
T read_number(const char* at) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof(T); ++i) number |= uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  return static_cast<T>(number);
}

}  // namespace

std::string encode_frame_header(FrameKind kind, uint64_t id, std::string_view key, size_t payload_bytes) {
  std::string text;
  text.reserve(kFrameHeaderBytes + key.size());
  put<uint32_t>(&text, static_cast<uint32_t>(kFrameHeaderBytes - 4 + key.size() + payload_bytes));
  put<uint8_t>(&text, static_cast<uint8_t>(kind));
  put<uint64_t>(&text, id);
  put<uint16_t>(&text, static_cast<uint16_t>(key.size()));
  text.append(key);
  return text;
}

std::string encode_frame(const Frame& frame) {
  return encode_frame_header(frame.kind, frame.id, frame.key, frame.payload.size()).append(frame.payload);
}

void put_u32(std::string* text, uint32_t number) { put<uint32_t>(text, number); }

std::optional<uint32_t> take_u32(std::string_view* text) {
  if (text->size() < 4) return std::nullopt;
  const auto number = read_number<uint32_t>(text->data());
  text->remove_prefix(4);
  return number;
}

std::string encode_rank_set(const RankSet& set) {
  std::string text;
  put_u32(&text, set.count);
  for (const int rank : set.first) put_u32(&text, static_cast<uint32_t>(rank));
  return text;
}

std::optional<RankSet> decode_rank_set(std::string_view text) {
  const std::optional<uint32_t> count = take_u32(&text);
  if (!count || text.size() % 4 != 0 || text.size() / 4 > std::min<size_t>(*count, RankSet::kNamed)) return std::nullopt;
  RankSet set;
  set.count = *count;
  while (const std::optional<uint32_t> rank = take_u32(&text)) set.first.push_back(static_cast<int>(*rank));
  return set;
}

std::string encode_status(const Status& status) { return fmt::format("{} {}", status.code(), status.message()); }

Status decode_status(std::string_view text) {
  tutti_status_t code = TUTTI_OK;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), code);
  if (failure != std::errc() || code >= 0 || end == text.data() + text.size() || *end != ' ') {
    return error(TUTTI_ERR_PROTOCOL, "the store holds an error that cannot be read");
  }
  return Status(code, std::string(end + 1, text.data() + text.size()));
}

std::string store_purpose(std::string_view job_id) { return fmt::format("store of job {}", job_id); }

Io FrameReader::fill(Stream& stream) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.size() - end_ < kReadBytes / 2) {
    buffer_.erase(0, begin_);
    end_ -= begin_;
    begin_ = 0;
    // Doubling keeps the copies of a long value proportional to its length.
    buffer_.resize(std::max(buffer_.size() * 2, end_ + kReadBytes));
  }
  size_t moved = 0;
  const Io io = stream.read(std::as_writable_bytes(std::span(buffer_)).subspan(end_), &moved);
  if (io == Io::done) end_ += moved;
  return io;
}

FrameReader::Next FrameReader::next(Frame* frame) {
  const size_t have = end_ - begin_;
  if (have < 4) return Next::none;
  const char* const at = buffer_.data() + begin_;
  const size_t bytes = 4 + size_t{read_number<uint32_t>(at)};
  if (bytes < kFrameHeaderBytes || bytes > kMostFrameBytes) return Next::malformed;
  if (have < bytes) return Next::none;
  const auto kind = read_number<uint8_t>(at + 4);
  const auto key_bytes = size_t{read_number<uint16_t>(at + 13)};
  if (kind < static_cast<uint8_t>(FrameKind::welcome) || kind > static_cast<uint8_t>(FrameKind::answer) ||
      key_bytes > Store::kMostKeyBytes || kFrameHeaderBytes + key_bytes > bytes) {
    return Next::malformed;
  }
  frame->kind = static_cast<FrameKind>(kind);
  frame->id = read_number<uint64_t>(at + 5);
  frame->key = std::string_view(at + kFrameHeaderBytes, key_bytes);
  frame->payload = std::string_view(at + kFrameHeaderBytes + key_bytes, bytes - kFrameHeaderBytes - key_bytes);
  begin_ += bytes;
  return Next::frame;
}

void FrameWriter::push(std::string bytes) { push(std::make_shared<const std::string>(std::move(bytes))); }

void FrameWriter::push(std::shared_ptr<const std::string> bytes) {
  if (!bytes->empty()) pieces_.push_back(std::move(bytes));
}

Io FrameWriter::flush(Stream& stream) {
  while (!pieces_.empty()) {
    size_t moved = 0;
    const Io io = stream.write(std::as_bytes(std::span(*pieces_.front())).subspan(sent_), &moved);
    if (io != Io::done) return io;
    sent_ += moved;
    if (sent_ == pieces_.front()->size()) {
      pieces_.pop_front();
      sent_ = 0;
    }
  }
  return Io::done;
}

void FrameWriter::clear() noexcept {
  pieces_.clear();
  sent_ = 0;
}

}  // namespace tutti
