// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// What two endpoints exchange once they know each other: frames of a fixed header and a payload. Little-endian.
namespace tutti::tcp {

inline constexpr std::size_t kHeaderBytes = 32;
/// Largest payload of a data frame that is accepted, and that is sent: small enough to let other channels in between.
inline constexpr std::uint64_t kMaxFrameBytes = 1u << 20;
inline constexpr std::uint64_t kSendFrameBytes = 1u << 18;
inline constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 61;
/// What a message costs of its channel's window beside its payload, so that empty messages are bounded too.
inline constexpr std::uint64_t kMessageCharge = 64;
inline constexpr std::uint64_t kMinWindowBytes = 4096;
inline constexpr std::uint64_t kMaxWindowBytes = std::uint64_t{1} << 40;

enum class FrameType : std::uint8_t {
  kData = 1,    ///< part of a message; kFlagFirst: value is the message's length, and it has the mark; else value is its offset
  kCredit = 2,  ///< value more bytes may be sent on the channel
  kEnd = 3,     ///< the sender closed the channel; kFlagAborted: the message under way never completes
  kNotice = 4,  ///< payload is for host->notified
  kGoodbye = 5  ///< nothing follows: the endpoint closes in order
};
inline constexpr std::uint8_t kFlagFirst = 1;
inline constexpr std::uint8_t kFlagAborted = 1;

struct FrameHeader {
  FrameType type = FrameType::kData;
  std::uint8_t flags = 0;
  std::uint32_t length = 0;   ///< payload bytes that follow
  std::uint64_t channel = 0;
  std::uint64_t value = 0;
  std::uint32_t stream = 0;   ///< distinguishes the uses of one channel id, so that late credit is not given to the next
  std::uint32_t mark = 0;     ///< of the message; 0 in all frames but its first
};

template <class T>
void store_le(std::uint8_t* out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[i] = static_cast<std::uint8_t>(value >> (8 * i));
}
template <class T>
T load_le(const std::uint8_t* in) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | (static_cast<T>(in[i]) << (8 * i)));
  return value;
}

void encode_header(const FrameHeader& header, std::uint8_t out[kHeaderBytes]);
/// nullptr, or what is wrong with the bytes. All that can be judged without knowing the channel is judged here.
const char* decode_header(const std::uint8_t in[kHeaderBytes], FrameHeader* header);

}  // namespace tutti::tcp
