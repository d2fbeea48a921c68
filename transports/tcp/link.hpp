// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "channel.hpp"
#include "socket.hpp"
#include "writer.hpp"

namespace tutti::tcp {

class Endpoint;

enum class LinkState : std::uint8_t { kDown, kUp, kLeft, kFailed };

/// One peer: its channels, and its connection once there is one.
class Link final : public Pollable, private FrameSink {
 public:
  Link(Endpoint& endpoint, std::uint32_t peer);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() override;

  std::uint32_t peer() const { return peer_; }
  LinkState state() const { return state_; }
  int fd() const { return fd_.get(); }
  /// What calls on a link that is gone return.
  tutti_status_t gone_status() const { return gone_status_; }

  void up(Descriptor fd, std::uint64_t peer_window_bytes);
  /// Ends everything with the cause (TUTTI_TP_GONE_...); the host is told unless it asked for the cut itself.
  void fail(int cause, const std::string& why);
  void cut();

  tutti_status_t open_channel(std::uint64_t id, int direction, Channel** channel);
  void close_channel(Channel* channel);
  tutti_status_t post_send(Outbound& channel, const void* data, std::uint64_t bytes, std::uint32_t mark, tutti_tp_op_t* op);
  tutti_status_t post_recv(Inbound& channel, void* data, std::uint64_t capacity, tutti_tp_op_t* op);
  tutti_status_t notify(const void* notice, std::size_t bytes);

  void ready(std::uint32_t events) override;
  /// Reads what is there; how many events that made.
  std::uint32_t receive();

  /// Orderly end: after all that was accepted, say goodbye. left(): nothing more to wait for.
  void say_goodbye();
  bool left();
  /// The endpoint closes: what is still posted ends with TUTTI_ERR_ABORTED, and the connection goes.
  void end_operations_at_close();
  /// Something waits to be sent.
  bool has_output() const;

  std::size_t hot_index = kNotHot;  ///< the endpoint's
  static constexpr std::size_t kNotHot = ~std::size_t{0};

 private:
  // FrameSink
  const char* frame(const FrameHeader& header) override;
  Target target() override;
  void advance(std::uint64_t bytes) override;
  const char* frame_end() override;

  const char* credit_frame(const FrameHeader& header);
  const char* end_frame_of_channel(const FrameHeader& header);
  Inbound* find_inbound(std::uint64_t id);
  Inbound* make_inbound(std::uint64_t id);
  Inbound* make_early_inbound(std::uint64_t id);
  void erase_inbound(Inbound* channel);
  void after_change(Inbound& channel, std::uint32_t waiting_before, std::uint64_t messages_before);
  void review(Outbound& channel);
  const char* digest(std::size_t bytes);
  void flush();
  void settle_broken();
  void watch(bool writable);
  void end_operations(tutti_status_t status, bool keep_messages);
  void drop_connection(bool reset);
  void update_interest();

  Endpoint& endpoint_;
  std::uint32_t peer_;
  LinkState state_ = LinkState::kDown;
  tutti_status_t gone_status_ = TUTTI_OK;
  Descriptor fd_;
  std::uint8_t* buffer_ = nullptr;
  Decoder decoder_{nullptr, 0};
  Writer writer_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Inbound>> inbound_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Outbound>> outbound_;
  Inbound* recent_ = nullptr;  ///< the last one found
  std::uint64_t peer_window_bytes_ = 0;
  std::uint32_t next_stream_ = 1;
  std::uint32_t early_count_ = 0;    ///< inbound channels that nobody opened here yet
  std::uint64_t waiting_ = 0;        ///< posted receives
  std::uint64_t starved_ = 0;        ///< channels that wait for credit
  bool blocked_ = false;             ///< the socket is full; epoll tells when it is not
  int broken_ = 0;                   ///< errno of a failed write
  bool goodbye_seen_ = false;
  bool goodbye_wanted_ = false;
  bool goodbye_sent_ = false;
  FrameHeader header_;               ///< of the frame being received
  Inbound* inbound_frame_ = nullptr;
  std::uint8_t notice_[TUTTI_TP_NOTICE_MAX_BYTES] = {};
  std::uint32_t notice_bytes_ = 0;
};

}  // namespace tutti::tcp
