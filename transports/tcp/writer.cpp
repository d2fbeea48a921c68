// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::tcp {

void Writer::control(const FrameHeader& header, const void* payload) {
  Control control{};
  control.header = header;
  if (header.length > 0) std::memcpy(control.payload, payload, header.length);
  control_.push_back(control);
}

void Writer::ready(Outbound* channel) {
  if (channel->ready_queued) return;
  ready_.push_back(channel);
  channel->ready_queued = true;
}

void Writer::credit(Inbound* channel) {
  if (channel->credit_queued) return;
  credits_.push_back(channel);
  channel->credit_queued = true;
}

Writer::Frame& Writer::add_frame(const FrameHeader& header) {
  Frame& frame = frames_[staged_++];
  encode_header(header, frame.bytes);
  frame.inline_bytes = kHeaderBytes;
  frame.inline_sent = 0;
  frame.payload = nullptr;
  frame.left = 0;
  frame.channel = nullptr;
  frame.op = nullptr;
  frame.last = false;
  return frame;
}

void Writer::stage() {
  first_ = staged_ = 0;
  std::uint64_t bytes = 0;
  while (staged_ < kMaxStaged && bytes < kBatchBytes) {
    if (!control_.empty()) {
      const Control& control = control_.front();
      Frame& frame = add_frame(control.header);
      std::memcpy(frame.bytes + kHeaderBytes, control.payload, control.header.length);
      frame.inline_bytes += control.header.length;
      control_.pop_front();
    } else if (!credits_.empty()) {
      Inbound* channel = credits_.front();
      credits_.pop_front();
      channel->credit_queued = false;
      if (channel->credit_due() == 0) continue;
      FrameHeader header;
      header.type = FrameType::kCredit;
      header.channel = channel->id;
      header.stream = channel->stream();
      header.value = channel->take_credit();
      add_frame(header);
    } else if (!ready_.empty()) {
      Outbound* channel = ready_.front();
      ready_.pop_front();
      channel->ready_queued = false;
      if (!channel->sendable()) continue;
      const Outbound::Piece piece = channel->next();
      Frame& frame = add_frame(piece.header);
      frame.payload = piece.payload;
      frame.left = piece.header.length;
      frame.channel = channel;
      frame.op = piece.op;
      frame.last = piece.last;
      bytes += frame.left;
      if (channel->sendable()) ready(channel);
    } else {
      return;
    }
  }
}

Writer::Result Writer::flush(int fd) {
  constexpr std::uint64_t kTurnBytes = 8u << 20;  // then the socket's other side and other links have their turn
  for (std::uint64_t turn = 0;;) {
    if (staged_ == first_) stage();
    if (staged_ == first_) return Result::kDrained;
    iovec pieces[2 * kMaxStaged];
    std::size_t count = 0;
    std::uint64_t total = 0;
    for (std::uint32_t i = first_; i < staged_; ++i) {
      Frame& frame = frames_[i];
      if (frame.inline_sent < frame.inline_bytes) {
        pieces[count++] = {frame.bytes + frame.inline_sent, frame.inline_bytes - frame.inline_sent};
        total += frame.inline_bytes - frame.inline_sent;
      }
      if (frame.left > 0) {
        pieces[count++] = {const_cast<std::uint8_t*>(frame.payload), frame.left};
        total += frame.left;
      }
    }
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    ++counters_->system_calls;
    const ssize_t sent = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? Result::kBlocked : Result::kBroken;
    }
    const auto bytes = static_cast<std::uint64_t>(sent);
    counters_->bytes_sent += bytes;
    written(bytes);
    turn += bytes;
    if (bytes < total || (turn >= kTurnBytes && !empty())) return Result::kBlocked;
  }
}

void Writer::written(std::uint64_t bytes) {
  while (first_ < staged_) {
    Frame& frame = frames_[first_];
    const std::uint64_t inlined = std::min<std::uint64_t>(bytes, frame.inline_bytes - frame.inline_sent);
    frame.inline_sent += static_cast<std::uint32_t>(inlined);
    bytes -= inlined;
    const std::uint64_t part = std::min(bytes, frame.left);
    frame.payload += part;
    frame.left -= part;
    bytes -= part;
    if (frame.channel != nullptr && frame.inline_sent > 0) frame.channel->message_on_wire = !frame.last;
    if (frame.inline_sent < frame.inline_bytes || frame.left > 0) return;
    if (frame.op != nullptr && frame.last) {
      ++counters_->messages_sent;
      finish(frame.op, TUTTI_OK);
    }
    ++first_;
  }
  first_ = staged_ = 0;
  drop_copy();
}

bool Writer::forget(Outbound* channel) {
  std::uint32_t kept = first_;
  for (std::uint32_t i = first_; i < staged_; ++i) {
    Frame& frame = frames_[i];
    if (frame.channel == channel) {
      if (frame.inline_sent > 0 && copy_ == nullptr && frame.left > 0) {
        copy_ = host_->allocate(frame.left);
        copy_bytes_ = frame.left;
        std::memcpy(copy_, frame.payload, frame.left);
        frame.payload = copy_;
      }
      if (frame.op != nullptr && frame.last) finish(frame.op, TUTTI_ERR_ABORTED);
      frame.channel = nullptr;
      frame.op = nullptr;
      if (frame.inline_sent == 0) continue;
    }
    if (kept != i) frames_[kept] = frame;
    ++kept;
  }
  staged_ = kept;
  remove(ready_, channel);
  return channel->message_on_wire;
}

void Writer::forget(Inbound* channel) { remove(credits_, channel); }

template <class T>
void Writer::remove(ValueRing<T*>& ring, T* value) {
  for (std::uint64_t left = ring.size(); left > 0; --left) {
    T* const front = ring.front();
    ring.pop_front();
    if (front != value) ring.push_back(front);
  }
}

void Writer::drop_all(tutti_status_t status) {
  for (std::uint32_t i = first_; i < staged_; ++i) {
    if (frames_[i].op != nullptr && frames_[i].last) finish(frames_[i].op, status);
  }
  first_ = staged_ = 0;
  control_.clear();
  credits_.clear();
  ready_.clear();
  drop_copy();
}

void Writer::drop_copy() {
  host_->release(copy_, copy_bytes_);
  copy_ = nullptr;
  copy_bytes_ = 0;
}

}  // namespace tutti::tcp
