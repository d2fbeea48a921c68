// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "framing.hpp"

#include <algorithm>
#include <cstring>

#include "tutti/transport.h"

namespace tutti::tcp {

void encode_header(const FrameHeader& header, std::uint8_t out[kHeaderBytes]) {
  std::memset(out, 0, kHeaderBytes);
  out[0] = static_cast<std::uint8_t>(header.type);
  out[1] = header.flags;
  store_le(out + 4, header.length);
  store_le(out + 8, header.channel);
  store_le(out + 16, header.value);
  store_le(out + 24, header.stream);
  store_le(out + 28, header.mark);
}

const char* decode_header(const std::uint8_t in[kHeaderBytes], FrameHeader* header) {
  header->type = static_cast<FrameType>(in[0]);
  header->flags = in[1];
  header->length = load_le<std::uint32_t>(in + 4);
  header->channel = load_le<std::uint64_t>(in + 8);
  header->value = load_le<std::uint64_t>(in + 16);
  header->stream = load_le<std::uint32_t>(in + 24);
  header->mark = load_le<std::uint32_t>(in + 28);
  if (in[2] != 0 || in[3] != 0) return "reserved bytes of a frame are not zero";
  if (header->flags > 1) return "unknown frame flag";
  const bool begins = header->type == FrameType::kData && header->flags == kFlagFirst;
  if (header->mark != 0 && !begins) return "a mark in a frame that begins no message";
  switch (header->type) {
    case FrameType::kData:
      if (header->length > kMaxFrameBytes) return "data frame too long";
      if (header->value > kMaxMessageBytes) return "message too long";
      if (begins) return header->length > header->value ? "frame longer than its message" : nullptr;
      return header->length == 0 ? "empty continuation of a message" : nullptr;
    case FrameType::kNotice:
      return header->length > TUTTI_TP_NOTICE_MAX_BYTES ? "notice too long" : nullptr;
    case FrameType::kCredit:
    case FrameType::kEnd:
    case FrameType::kGoodbye:
      return header->length != 0 ? "payload in a frame that has none" : nullptr;
  }
  return "unknown frame type";
}

int Decoder::space(FrameSink& sink, iovec out[2]) {
  direct_ = 0;
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(buffer_, buffer_ + begin_, end_ - begin_);  // less than a header
    end_ -= begin_;
    begin_ = 0;
  }
  int count = 0;
  if (in_payload_) {  // the buffer is empty then: parse() has moved on what it held
    const Target target = sink.target();
    if (target.data != nullptr) {
      direct_ = static_cast<std::size_t>(std::min(target.bytes, payload_left_));
      out[count++] = {target.data, direct_};
      if (direct_ < payload_left_) return count;
    }
  }
  out[count++] = {buffer_ + end_, capacity_ - end_};
  return count;
}

const char* Decoder::commit(std::size_t bytes, FrameSink& sink) {
  const std::size_t direct = std::min(bytes, direct_);
  if (direct > 0) {
    sink.advance(direct);
    payload_left_ -= direct;
  }
  end_ += bytes - direct;
  return parse(sink);
}

const char* Decoder::parse(FrameSink& sink) {
  for (;;) {
    if (!in_payload_) {
      if (end_ - begin_ < kHeaderBytes) return nullptr;
      FrameHeader header;
      const char* wrong = decode_header(buffer_ + begin_, &header);
      if (wrong == nullptr) wrong = sink.frame(header);
      if (wrong != nullptr) return wrong;
      begin_ += kHeaderBytes;
      in_payload_ = true;
      payload_left_ = header.length;
    }
    while (payload_left_ > 0 && begin_ < end_) {
      const Target target = sink.target();
      const auto take = static_cast<std::size_t>(std::min({target.bytes, payload_left_, std::uint64_t{end_ - begin_}}));
      if (target.data != nullptr) std::memcpy(target.data, buffer_ + begin_, take);
      begin_ += take;
      payload_left_ -= take;
      sink.advance(take);
    }
    if (payload_left_ > 0) return nullptr;
    in_payload_ = false;
    if (const char* wrong = sink.frame_end(); wrong != nullptr) return wrong;
  }
}

}  // namespace tutti::tcp
