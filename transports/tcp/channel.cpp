// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "channel.hpp"

namespace tutti::tcp {

Inbound::Inbound(Host& host, std::uint64_t window_bytes)
    : window_bytes_(window_bytes), outstanding_(window_bytes), bytes_(host), records_(host) {
  direction = TUTTI_TP_RECV;
}

/// A message has a destination (a receive, or nothing): all of it counts as consumed, what is still to come included, so
/// that the sender can stream the rest.
void Inbound::consume(std::uint64_t total, bool more_to_come) {
  owed_ += kMessageCharge + total;
  urgent_ = urgent_ || more_to_come;
}

void Inbound::complete(tutti_tp_op_t* op, std::uint64_t total, std::uint32_t mark) {
  const auto capacity = reinterpret_cast<std::uintptr_t>(op->plugin[2]);
  op->bytes = total;
  op->mark = mark;
  ++messages_;
  --waiting_;
  finish(op, total > capacity ? TUTTI_ERR_TRUNCATED : TUTTI_OK);
}

void Inbound::forget_stream() {
  started_ = false;
  outstanding_ = window_bytes_;
  owed_ = 0;
  urgent_ = false;
}

const char* Inbound::begin_frame(const FrameHeader& header) {
  if (header.flags == kFlagFirst) {
    if (const char* wrong = begin_message(header); wrong != nullptr) return wrong;
  } else {
    if (!arriving_ || header.stream != stream_) return "continuation of no message";
    if (header.value != begun_ || header.length > total_ - begun_) return "continuation at a wrong offset";
    if (header.length > outstanding_) return "more bytes than the channel's window allows";
    if (mode_ == Mode::kBuffered) bytes_.reserve(header.length);
    outstanding_ -= header.length;
  }
  begun_ += header.length;
  return nullptr;
}

const char* Inbound::begin_message(const FrameHeader& header) {
  if (arriving_) return "a message begins within another";
  if (ended_) {
    if (open_) return "a message after the end of its channel";
    close();  // the earlier use of this id was never opened here: nobody wants it
    ended_ = false;
  }
  if (!started_) {
    forget_stream();
    started_ = true;
    stream_ = header.stream;
  } else if (stream_ != header.stream) {
    return "two streams on one channel";
  }
  const std::uint64_t charge = kMessageCharge + header.length;
  if (charge > outstanding_) return "more bytes than the channel's window allows";
  const bool partial = header.length < header.value;
  if (drop_ends_ > 0) {
    mode_ = Mode::kDiscarded;
    consume(header.value, partial);
  } else if (records_.empty() && !posted_.empty()) {
    mode_ = Mode::kPosted;
    op_ = posted_.pop();
    consume(header.value, partial);
  } else {
    mode_ = Mode::kBuffered;
    bytes_.reserve(header.length);
    records_.push_back({header.value, header.mark});
  }
  outstanding_ -= charge;
  arriving_ = true;
  total_ = header.value;
  mark_ = header.mark;
  begun_ = arrived_ = 0;
  return nullptr;
}

Target Inbound::target() {
  if (mode_ == Mode::kBuffered) return bytes_.space();
  if (mode_ == Mode::kPosted) {
    const std::uint64_t capacity = reinterpret_cast<std::uintptr_t>(op_->plugin[2]);
    if (arrived_ < capacity) return {static_cast<std::uint8_t*>(op_->plugin[1]) + arrived_, capacity - arrived_};
  }
  return {nullptr, ~std::uint64_t{0}};
}

void Inbound::advance(std::uint64_t bytes) {
  arrived_ += bytes;
  if (mode_ == Mode::kBuffered) bytes_.wrote(bytes);
}

void Inbound::end_frame() {
  if (!arriving_ || arrived_ < total_) return;
  arriving_ = false;
  if (mode_ == Mode::kPosted) complete(std::exchange(op_, nullptr), total_, mark_);
}

const char* Inbound::end(bool aborted) {
  if (arriving_) {
    if (!aborted) return "a channel ends within a message";
    if (mode_ == Mode::kPosted) {
      --waiting_;
      finish(std::exchange(op_, nullptr), TUTTI_ERR_ABORTED);
    } else if (mode_ == Mode::kBuffered) {
      bytes_.drop_newest(arrived_);
      records_.pop_back();
    }
    arriving_ = false;
  }
  forget_stream();
  if (drop_ends_ > 0) {
    --drop_ends_;
  } else {
    ended_ = true;
  }
  return nullptr;
}

void Inbound::post(tutti_tp_op_t* op) {
  ++waiting_;
  if (records_.empty()) return posted_.push(op);
  const Record record = records_.front();
  const bool partial = arriving_ && records_.size() == 1;
  const std::uint64_t buffered = partial ? arrived_ : record.total;
  const std::uint64_t capacity = reinterpret_cast<std::uintptr_t>(op->plugin[2]);
  const std::uint64_t take = std::min(buffered, capacity);
  if (take > 0) bytes_.read(static_cast<std::uint8_t*>(op->plugin[1]), take);
  bytes_.drop(buffered - take);
  records_.pop_front();
  if (started_) consume(record.total, partial && begun_ < total_);
  if (!partial) return complete(op, record.total, record.mark);
  mode_ = Mode::kPosted;
  op_ = op;
}

void Inbound::close() {
  link_gone(TUTTI_ERR_ABORTED, true);
  while (!records_.empty()) {
    if (started_) consume(records_.back().total, true);
    records_.pop_back();
  }
  bytes_.clear();
  records_.clear();
  mode_ = Mode::kDiscarded;
  open_ = false;
  if (ended_) {
    ended_ = false;
  } else {
    ++drop_ends_;
  }
}

void Inbound::link_gone(tutti_status_t status, bool keep) {
  if (op_ != nullptr) finish(std::exchange(op_, nullptr), status);
  if (mode_ == Mode::kPosted) mode_ = Mode::kDiscarded;
  while (!posted_.empty()) finish(posted_.pop(), status);
  waiting_ = 0;
  if (keep) return;
  arriving_ = false;
  bytes_.clear();
  records_.clear();
}

std::uint64_t Inbound::credit_due() const {
  if (!started_ || owed_ == 0) return 0;
  return urgent_ || owed_ >= window_bytes_ / 2 ? owed_ : 0;
}

std::uint64_t Inbound::take_credit() {
  urgent_ = false;
  outstanding_ += owed_;
  return std::exchange(owed_, 0);
}

bool Outbound::sendable() const {
  if (queue_.empty()) return false;
  const std::uint64_t left = queue_.front()->bytes - offset_;
  return credit_ >= (started_ ? 0 : kMessageCharge) + std::min(left, window_bytes_ / 4);
}

Outbound::Piece Outbound::next() {
  tutti_tp_op_t* op = queue_.front();
  Piece piece;
  const std::uint64_t charge = started_ ? 0 : kMessageCharge;
  const std::uint64_t length = std::min({op->bytes - offset_, credit_ - charge, kSendFrameBytes});
  piece.header.flags = started_ ? std::uint8_t{0} : kFlagFirst;
  piece.header.length = static_cast<std::uint32_t>(length);
  piece.header.channel = id;
  piece.header.value = started_ ? offset_ : op->bytes;
  piece.header.stream = stream_;
  piece.header.mark = started_ ? 0 : op->mark;
  piece.payload = static_cast<const std::uint8_t*>(op->plugin[1]) + offset_;
  piece.op = op;
  credit_ -= charge + length;
  offset_ += length;
  started_ = true;
  if (offset_ == op->bytes) {
    piece.last = true;
    queue_.pop();
    offset_ = 0;
    started_ = false;
  }
  return piece;
}

bool Outbound::add_credit(std::uint32_t stream, std::uint64_t bytes) {
  if (stream != stream_) return true;  // meant for an earlier use of the id
  if (bytes > kMaxMessageBytes * 2 || credit_ > kMaxMessageBytes * 2) return false;
  credit_ += bytes;
  return true;
}

void Outbound::finish_all(tutti_status_t status) {
  while (!queue_.empty()) finish(queue_.pop(), status);
  offset_ = 0;
  started_ = false;
}

}  // namespace tutti::tcp
