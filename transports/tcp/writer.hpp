// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "channel.hpp"

namespace tutti::tcp {

/// The sending side of a connection: chooses the next frames (orders of the link, credit, then channels in turn), writes
/// headers and payloads of several with one system call, and finishes sends whose last byte is in the socket.
class Writer {
 public:
  enum class Result : std::uint8_t { kDrained, kBlocked, kBroken };

  Writer(Host& host, Counters& counters)
      : host_(&host), counters_(&counters), control_(host), credits_(host), ready_(host) {}
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { drop_copy(); }

  /// A frame of the link's own, in order with the others of its kind and before all data that is not yet under way.
  void control(const FrameHeader& header, const void* payload);
  std::uint64_t control_count() const { return control_.size(); }
  void ready(Outbound* channel);
  void credit(Inbound* channel);

  /// kBroken: errno says why.
  Result flush(int fd);
  bool empty() const { return staged_ == 0 && control_.empty() && credits_.empty() && ready_.empty(); }

  /// The channel is being closed: nothing refers to it or to the caller's memory afterwards. A frame that is half written
  /// is completed from a copy. True: the receiver waits for the rest of a message. Throws std::bad_alloc.
  bool forget(Outbound* channel);
  void forget(Inbound* channel);
  /// The link is gone: ends what is under way.
  void drop_all(tutti_status_t status);

 private:
  static constexpr std::uint32_t kMaxStaged = 16;
  static constexpr std::uint64_t kBatchBytes = 1u << 19;

  struct Frame {
    std::uint8_t bytes[kHeaderBytes + TUTTI_TP_NOTICE_MAX_BYTES];
    std::uint32_t inline_bytes;
    std::uint32_t inline_sent;
    const std::uint8_t* payload;
    std::uint64_t left;
    Outbound* channel;
    tutti_tp_op_t* op;
    bool last;
  };
  struct Control {
    FrameHeader header;
    std::uint8_t payload[TUTTI_TP_NOTICE_MAX_BYTES];
  };

  void stage();
  Frame& add_frame(const FrameHeader& header);
  void written(std::uint64_t bytes);
  void drop_copy();
  template <class T>
  static void remove(ValueRing<T*>& ring, T* value);

  Host* host_;
  Counters* counters_;
  ValueRing<Control> control_;
  ValueRing<Inbound*> credits_;
  ValueRing<Outbound*> ready_;
  std::array<Frame, kMaxStaged> frames_{};
  std::uint32_t first_ = 0;
  std::uint32_t staged_ = 0;
  std::uint8_t* copy_ = nullptr;  ///< rest of a frame whose channel was closed
  std::size_t copy_bytes_ = 0;
};

}  // namespace tutti::tcp
