// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "framing.hpp"

namespace tutti::tcp {
namespace {

/// Puts payloads into a small piece at a time, and writes down what it saw.
struct Recorder final : FrameSink {
  std::vector<std::string> seen;
  std::string payload;
  char piece[7];
  const char* frame(const FrameHeader& header) override {
    payload.clear();
    seen.push_back(std::to_string(static_cast<int>(header.type)) + "/" + std::to_string(header.length) + "/" +
                   std::to_string(header.channel) + "/" + std::to_string(header.value));
    return nullptr;
  }
  Target target() override { return {reinterpret_cast<std::uint8_t*>(piece), sizeof piece}; }
  void advance(std::uint64_t bytes) override { payload.append(piece, bytes); }
  const char* frame_end() override {
    seen.push_back(payload);
    return nullptr;
  }
};

void append(std::string& stream, FrameType type, std::uint64_t channel, std::uint64_t value, const std::string& payload) {
  FrameHeader header;
  header.type = type;
  header.flags = type == FrameType::kData ? kFlagFirst : std::uint8_t{0};
  header.length = static_cast<std::uint32_t>(payload.size());
  header.channel = channel;
  header.value = value;
  std::uint8_t bytes[kHeaderBytes];
  encode_header(header, bytes);
  stream.append(reinterpret_cast<char*>(bytes), sizeof bytes);
  stream += payload;
}

std::string sample() {
  std::string stream;
  append(stream, FrameType::kData, 7, 5, "hello");
  append(stream, FrameType::kCredit, 9, 1000, "");
  append(stream, FrameType::kData, 7, 0, "");
  append(stream, FrameType::kData, 8, 300, std::string(300, 'x') + "");
  append(stream, FrameType::kNotice, 0, 0, "notice");
  append(stream, FrameType::kGoodbye, 0, 0, "");
  return stream;
}

/// Gives the decoder the stream in reads of the lengths told, as a socket would.
const char* feed(Decoder& decoder, FrameSink& sink, const std::string& stream, const std::vector<std::size_t>& reads) {
  std::size_t at = 0;
  for (std::size_t turn = 0; at < stream.size(); ++turn) {
    iovec pieces[2];
    const int count = decoder.space(sink, pieces);
    std::size_t left = std::min(reads[turn % reads.size()], stream.size() - at);
    std::size_t got = 0;
    for (int i = 0; i < count && left > 0; ++i) {
      const std::size_t part = std::min(left, pieces[i].iov_len);
      std::memcpy(pieces[i].iov_base, stream.data() + at, part);
      at += part;
      got += part;
      left -= part;
    }
    REQUIRE(got > 0);
    if (const char* wrong = decoder.commit(got, sink); wrong != nullptr) return wrong;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("frames are the same wherever the stream is split") {
  const std::string stream = sample();
  std::uint8_t buffer[128];
  Recorder whole;
  Decoder reference(buffer, sizeof buffer);
  REQUIRE(feed(reference, whole, stream, {stream.size()}) == nullptr);
  REQUIRE(whole.seen.size() == 12);
  CHECK(whole.seen[0] == "1/5/7/5");
  CHECK(whole.seen[1] == "hello");
  CHECK(whole.seen[7] == std::string(300, 'x'));
  for (std::size_t split = 1; split < stream.size(); ++split) {
    Recorder halves;
    Decoder decoder(buffer, sizeof buffer);
    REQUIRE(feed(decoder, halves, stream, {split, stream.size()}) == nullptr);
    REQUIRE(halves.seen == whole.seen);
    Recorder steps;
    Decoder small(buffer, kHeaderBytes);
    REQUIRE(feed(small, steps, stream, {split}) == nullptr);
    REQUIRE(steps.seen == whole.seen);
    CHECK(small.at_boundary());
  }
}

TEST_CASE("headers that no peer of ours would send are refused") {
  FrameHeader header;
  std::uint8_t good[kHeaderBytes];
  header.flags = kFlagFirst;
  header.length = 8;
  header.value = 8;
  encode_header(header, good);
  FrameHeader parsed;
  REQUIRE(decode_header(good, &parsed) == nullptr);
  const auto broken = [&](std::size_t at, std::uint8_t value) {
    std::uint8_t bytes[kHeaderBytes];
    std::memcpy(bytes, good, sizeof bytes);
    bytes[at] = value;
    return decode_header(bytes, &parsed) != nullptr;
  };
  CHECK(broken(0, 0));       // type
  CHECK(broken(0, 6));
  CHECK(broken(0, 5));       // a goodbye with payload
  CHECK(broken(1, 2));       // flag
  CHECK(broken(2, 1));       // reserved
  CHECK(broken(4, 9));       // longer than its message
  CHECK(broken(7, 0xff));    // length of 4 GB
  CHECK(broken(23, 0xff));   // message of 2^63
  CHECK_FALSE(broken(28, 1));
  CHECK(parsed.mark == 1);
  good[1] = 0;               // a continuation
  REQUIRE(decode_header(good, &parsed) == nullptr);
  CHECK(broken(28, 1));      // has no mark
}

TEST_CASE("random bytes never lead the decoder astray") {
  std::uint32_t state = 12345;
  for (int round = 0; round < 2000; ++round) {
    std::string stream = sample();
    for (int change = 0; change < 4; ++change) {
      state = state * 1664525u + 1013904223u;
      stream[(state >> 8) % stream.size()] = static_cast<char>(state >> 24);
    }
    std::uint8_t buffer[64];
    Recorder recorder;
    Decoder decoder(buffer, sizeof buffer);
    feed(decoder, recorder, stream, {1 + state % 50});
    CHECK(recorder.seen.size() <= 2 * stream.size() / kHeaderBytes);
  }
}

}  // namespace tutti::tcp
