// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "link.hpp"

#include <cerrno>
#include <cstring>
#include <new>

#include "endpoint.hpp"

namespace tutti::tcp {
namespace {
constexpr std::size_t kBufferBytes = 16 * 1024;
constexpr std::uint32_t kMaxEarlyChannels = 4096;
constexpr std::uint64_t kMaxQueuedNotices = 64;
constexpr std::uint64_t kTurnBytes = 8u << 20;
}  // namespace

Link::Link(Endpoint& endpoint, std::uint32_t peer)
    : endpoint_(endpoint), peer_(peer), writer_(endpoint.host(), endpoint.counters()) {
  endpoint.host().account(sizeof *this);
}

Link::~Link() {
  drop_connection(false);
  const std::size_t channels = inbound_.size() * sizeof(Inbound) + outbound_.size() * sizeof(Outbound);
  endpoint_.host().account(-static_cast<std::int64_t>(sizeof *this + channels));
}

void Link::up(Descriptor fd, std::uint64_t peer_window_bytes) {
  if (buffer_ == nullptr) buffer_ = endpoint_.host().allocate(kBufferBytes);
  decoder_ = Decoder(buffer_, kBufferBytes);
  fd_ = std::move(fd);
  tune_connection(fd_.get(), endpoint_.settings());
  endpoint_.poller().change(fd_.get(), this, EPOLLIN);
  state_ = LinkState::kUp;
  peer_window_bytes_ = peer_window_bytes;
  for (auto& [id, channel] : outbound_) {
    channel->set_window(peer_window_bytes);
    if (channel->sendable()) writer_.ready(channel.get());
  }
  flush();
  for (auto& [id, channel] : outbound_) review(*channel);
  settle_broken();
}

// ---- the end ----

void Link::drop_connection(bool reset) {
  if (fd_.valid()) {
    endpoint_.poller().remove(fd_.get());
    if (blocked_) endpoint_.count_blocked(-1);
    blocked_ = false;
    reset ? fd_.reset_connection() : fd_.close();
  }
  if (buffer_ != nullptr) endpoint_.host().release(buffer_, kBufferBytes);
  buffer_ = nullptr;
  waiting_ = starved_ = 0;
  update_interest();
}

void Link::end_operations(tutti_status_t status, bool keep_messages) {
  writer_.drop_all(status);
  for (auto& [id, channel] : outbound_) {
    channel->ready_queued = channel->starved = false;
    channel->finish_all(status);
  }
  for (auto entry = inbound_.begin(); entry != inbound_.end();) {
    Inbound& channel = *entry->second;
    channel.credit_queued = false;
    channel.link_gone(status, keep_messages);
    channel.end(true);  // half a message is none
    const bool useless = !channel.is_open() && !(keep_messages && channel.has_message());
    if (useless) endpoint_.host().account(-static_cast<std::int64_t>(sizeof(Inbound)));
    entry = useless ? inbound_.erase(entry) : std::next(entry);
  }
  recent_ = inbound_frame_ = nullptr;
}

void Link::fail(int cause, const std::string& why) {
  if (state_ == LinkState::kLeft || state_ == LinkState::kFailed) return;
  const bool left = cause == TUTTI_TP_GONE_LEFT;
  state_ = left ? LinkState::kLeft : LinkState::kFailed;
  gone_status_ = cause == TUTTI_TP_GONE_UNREACHABLE ? TUTTI_ERR_CONNECT : TUTTI_ERR_PEER_FAILED;
  end_operations(gone_status_, left);
  drop_connection(true);
  endpoint_.defer_gone(peer_, cause, why);
}

void Link::cut() {
  if (state_ == LinkState::kFailed) return;
  state_ = LinkState::kFailed;
  gone_status_ = TUTTI_ERR_PEER_FAILED;
  end_operations(gone_status_, false);
  drop_connection(true);
}

void Link::end_operations_at_close() {
  end_operations(TUTTI_ERR_ABORTED, false);
  // What is acknowledged is in the peer's hands, and no reset takes it away: then nothing stays here that would keep the port in
  // use for a minute. Else an orderly end, for which the kernel goes on delivering what it has.
  drop_connection(goodbye_sent_ && writer_.empty() && unacknowledged_bytes(fd_.get()) == 0);
}

bool Link::has_output() const {
  if (!writer_.empty()) return true;
  for (const auto& [id, channel] : outbound_) {
    if (!channel->empty()) return true;
  }
  return false;
}

void Link::say_goodbye() {
  goodbye_wanted_ = true;
  if (state_ != LinkState::kUp || goodbye_sent_ || has_output()) return;
  goodbye_sent_ = true;
  FrameHeader header;
  header.type = FrameType::kGoodbye;
  writer_.control(header, nullptr);
  flush();
  settle_broken();
}

bool Link::left() {
  if (state_ == LinkState::kDown) return !has_output() || !endpoint_.wanted(peer_);
  if (state_ != LinkState::kUp) return true;
  if (!goodbye_sent_) say_goodbye();
  if (state_ != LinkState::kUp) return true;
  if (!goodbye_sent_ || !writer_.empty()) return false;
  return unacknowledged_bytes(fd_.get()) == 0;
}

// ---- channels ----

tutti_status_t Link::open_channel(std::uint64_t id, int direction, Channel** channel) {
  if (state_ == LinkState::kFailed) return gone_status_;
  if (direction == TUTTI_TP_SEND) {
    auto made = std::make_unique<Outbound>(next_stream_, peer_window_bytes_);
    made->id = id;
    made->link = this;
    const auto [entry, fresh] = outbound_.emplace(id, std::move(made));
    if (!fresh) return TUTTI_ERR_ARGUMENT;
    ++next_stream_;
    endpoint_.host().account(sizeof(Outbound));
    *channel = entry->second.get();
    return TUTTI_OK;
  }
  Inbound* inbound = find_inbound(id);
  if (inbound == nullptr) {
    inbound = make_inbound(id);
  } else if (inbound->is_open()) {
    return TUTTI_ERR_ARGUMENT;
  }
  inbound->open();
  if (std::exchange(inbound->early, false)) --early_count_;
  *channel = inbound;
  return TUTTI_OK;
}

Inbound* Link::find_inbound(std::uint64_t id) {
  if (recent_ != nullptr && recent_->id == id) return recent_;
  const auto entry = inbound_.find(id);
  if (entry == inbound_.end()) return nullptr;
  return recent_ = entry->second.get();
}

/// A channel of which the peer speaks before anybody opened it here; nullptr: there are too many of them.
Inbound* Link::make_early_inbound(std::uint64_t id) {
  if (early_count_ >= kMaxEarlyChannels) return nullptr;
  Inbound* channel = make_inbound(id);
  channel->early = true;
  ++early_count_;
  return channel;
}

Inbound* Link::make_inbound(std::uint64_t id) {
  auto made = std::make_unique<Inbound>(endpoint_.host(), endpoint_.settings().window_bytes);
  made->id = id;
  made->link = this;
  Inbound* channel = inbound_.emplace(id, std::move(made)).first->second.get();
  endpoint_.host().account(sizeof(Inbound));
  return channel;
}

void Link::erase_inbound(Inbound* channel) {
  writer_.forget(channel);
  if (recent_ == channel) recent_ = nullptr;
  if (channel->early) --early_count_;
  endpoint_.host().account(-static_cast<std::int64_t>(sizeof(Inbound)));
  inbound_.erase(channel->id);
}

void Link::close_channel(Channel* handle) {
  if (handle->direction == TUTTI_TP_RECV) {
    auto* channel = static_cast<Inbound*>(handle);
    const std::uint32_t waiting = channel->waiting();
    const std::uint64_t messages = channel->messages();
    channel->close();
    after_change(*channel, waiting, messages);
    const bool gone = state_ == LinkState::kLeft || state_ == LinkState::kFailed;
    if (channel != inbound_frame_ && (gone || channel->idle())) erase_inbound(channel);
  } else {
    auto* channel = static_cast<Outbound*>(handle);
    const bool partial = writer_.forget(channel);
    channel->finish_all(TUTTI_ERR_ABORTED);
    review(*channel);
    if (state_ == LinkState::kDown || state_ == LinkState::kUp) {
      FrameHeader header;
      header.type = FrameType::kEnd;
      header.flags = partial ? kFlagAborted : std::uint8_t{0};
      header.channel = channel->id;
      writer_.control(header, nullptr);
    }
    endpoint_.host().account(-static_cast<std::int64_t>(sizeof(Outbound)));
    outbound_.erase(channel->id);
  }
  flush();
  settle_broken();
}

/// After anything that may have finished receives or made credit due.
void Link::after_change(Inbound& channel, std::uint32_t waiting_before, std::uint64_t messages_before) {
  endpoint_.counters().messages_received += channel.messages() - messages_before;
  if (waiting_before != channel.waiting()) {
    waiting_ = waiting_ + channel.waiting() - waiting_before;
    update_interest();
  }
  // Nothing follows a goodbye: while others take their time to end, this peer may still send, but not for long.
  if (state_ == LinkState::kUp && !goodbye_sent_ && channel.credit_due() > 0) writer_.credit(&channel);
}

void Link::review(Outbound& channel) {
  const bool starved = state_ == LinkState::kUp && !channel.empty() && !channel.sendable();
  if (starved == channel.starved) return;
  channel.starved = starved;
  starved ? ++starved_ : --starved_;
  update_interest();
}

void Link::update_interest() { endpoint_.set_hot(*this, state_ == LinkState::kUp && waiting_ + starved_ > 0); }

tutti_status_t Link::post_send(Outbound& channel, const void* data, std::uint64_t bytes, std::uint32_t mark, tutti_tp_op_t* op) {
  if (bytes > kMaxMessageBytes) return TUTTI_ERR_SIZE;
  if (state_ == LinkState::kLeft || state_ == LinkState::kFailed) return gone_status_;
  op->done = 0;
  op->status = TUTTI_OK;
  op->bytes = bytes;
  op->mark = mark;
  op->plugin[1] = const_cast<void*>(data);
  channel.post(op);
  if (state_ == LinkState::kDown) {
    endpoint_.want(*this);
    return TUTTI_OK;
  }
  if (channel.sendable()) {
    writer_.ready(&channel);
    flush();
  }
  review(channel);
  settle_broken();
  return TUTTI_OK;
}

tutti_status_t Link::post_recv(Inbound& channel, void* data, std::uint64_t capacity, tutti_tp_op_t* op) {
  const bool gone = state_ == LinkState::kLeft || state_ == LinkState::kFailed;
  if (gone && !channel.has_message()) return gone_status_;
  op->done = 0;
  op->status = TUTTI_OK;
  op->bytes = 0;
  op->plugin[1] = data;
  op->plugin[2] = reinterpret_cast<void*>(static_cast<std::uintptr_t>(capacity));
  const std::uint32_t waiting = channel.waiting();
  const std::uint64_t messages = channel.messages();
  channel.post(op);
  after_change(channel, waiting, messages);
  if (state_ == LinkState::kDown) endpoint_.want(*this);
  if (channel.credit_queued) flush();
  settle_broken();
  return TUTTI_OK;
}

tutti_status_t Link::notify(const void* notice, std::size_t bytes) {
  if (state_ == LinkState::kLeft || state_ == LinkState::kFailed) return gone_status_;
  if (writer_.control_count() >= kMaxQueuedNotices) return TUTTI_TP_AGAIN;
  FrameHeader header;
  header.type = FrameType::kNotice;
  header.length = static_cast<std::uint32_t>(bytes);
  writer_.control(header, notice);
  if (state_ == LinkState::kDown) endpoint_.want(*this);
  flush();
  settle_broken();
  return TUTTI_OK;
}

// ---- the socket ----

void Link::watch(bool writable) {
  if (writable == blocked_) return;
  blocked_ = writable;
  endpoint_.count_blocked(writable ? 1 : -1);
  endpoint_.poller().change(fd_.get(), this, EPOLLIN | (writable ? std::uint32_t{EPOLLOUT} : 0u));
}

void Link::flush() {
  if (state_ != LinkState::kUp || blocked_ || broken_ != 0) return;
  const Writer::Result result = writer_.flush(fd_.get());
  if (result == Writer::Result::kBlocked) watch(true);
  if (result == Writer::Result::kBroken) broken_ = errno;
}

/// After a failed write: what the peer sent before it went, its goodbye perhaps, is still in the socket.
void Link::settle_broken() {
  if (broken_ == 0 || state_ != LinkState::kUp) return;
  const std::string why = std::strerror(broken_);
  while (state_ == LinkState::kUp && receive() > 0) {
  }
  fail(TUTTI_TP_GONE_FAILED, "the connection broke: " + why);
}

void Link::ready(std::uint32_t events) {
  if (state_ != LinkState::kUp) return;
  if ((events & EPOLLOUT) != 0 && blocked_) {
    const Writer::Result result = writer_.flush(fd_.get());
    if (result == Writer::Result::kDrained) watch(false);
    if (result == Writer::Result::kBroken) broken_ = errno;
    endpoint_.count_events(1);
  }
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) receive();
  settle_broken();
}

/// What the bytes that came make of the frames; a text ends the link.
const char* Link::digest(std::size_t bytes) {
  try {
    return decoder_.commit(bytes, *this);
  } catch (const std::bad_alloc&) {
    return "no memory for what it sends";
  }
}

std::uint32_t Link::receive() {
  std::uint32_t events = 0;
  for (std::uint64_t turn = 0; state_ == LinkState::kUp && turn < kTurnBytes;) {
    iovec pieces[2];
    const int count = decoder_.space(*this, pieces);
    const std::size_t room = pieces[0].iov_len + (count > 1 ? pieces[1].iov_len : 0);
    ++endpoint_.counters().system_calls;
    const ssize_t got = count == 1 ? ::recv(fd_.get(), pieces[0].iov_base, room, MSG_DONTWAIT)
                                   : ::readv(fd_.get(), pieces, count);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    ++events;
    if (got <= 0) {
      fail(TUTTI_TP_GONE_FAILED, got == 0 ? std::string("it closed its connection without saying goodbye")
                                          : "the connection broke: " + std::string(std::strerror(errno)));
      break;
    }
    turn += static_cast<std::uint64_t>(got);
    endpoint_.counters().bytes_received += static_cast<std::uint64_t>(got);
    const char* wrong = digest(static_cast<std::size_t>(got));
    if (wrong != nullptr) fail(TUTTI_TP_GONE_FAILED, std::string("it misbehaved: ") + wrong);
    if (goodbye_seen_) fail(TUTTI_TP_GONE_LEFT, "it left");
    if (static_cast<std::size_t>(got) < room) break;  // the socket is empty
  }
  flush();
  endpoint_.count_events(events);
  return events;
}

// ---- frames ----

const char* Link::frame(const FrameHeader& header) {
  if (goodbye_seen_) return "a frame after the goodbye";
  header_ = header;
  inbound_frame_ = nullptr;
  switch (header.type) {
    case FrameType::kData: {
      Inbound* channel = find_inbound(header.channel);
      if (channel == nullptr) {
        channel = make_early_inbound(header.channel);
        if (channel == nullptr) return "too many channels that nobody opened";
      }
      const std::uint32_t waiting = channel->waiting();
      const std::uint64_t messages = channel->messages();
      const char* wrong = channel->begin_frame(header);
      if (wrong != nullptr) return wrong;
      inbound_frame_ = channel;
      after_change(*channel, waiting, messages);
      return nullptr;
    }
    case FrameType::kCredit:
      return credit_frame(header);
    case FrameType::kEnd:
      return end_frame_of_channel(header);
    case FrameType::kNotice:
      notice_bytes_ = 0;
      return nullptr;
    case FrameType::kGoodbye:
      goodbye_seen_ = true;
      return nullptr;
  }
  return "unknown frame type";
}

const char* Link::credit_frame(const FrameHeader& header) {
  const auto entry = outbound_.find(header.channel);
  if (entry == outbound_.end()) return nullptr;  // closed meanwhile
  Outbound& channel = *entry->second;
  if (!channel.add_credit(header.stream, header.value)) return "more credit than a window holds";
  if (channel.sendable()) writer_.ready(&channel);
  review(channel);
  return nullptr;
}

const char* Link::end_frame_of_channel(const FrameHeader& header) {
  Inbound* channel = find_inbound(header.channel);
  if (channel == nullptr) {
    // Opened and closed there without a message: remembered for whoever opens it here, as long as that costs little.
    channel = make_early_inbound(header.channel);
    if (channel == nullptr) return nullptr;
  }
  const std::uint32_t waiting = channel->waiting();
  const std::uint64_t messages = channel->messages();
  const char* wrong = channel->end(header.flags == kFlagAborted);
  if (wrong != nullptr) return wrong;
  after_change(*channel, waiting, messages);
  if (channel->idle()) erase_inbound(channel);
  return nullptr;
}

Target Link::target() {
  if (header_.type == FrameType::kData) return inbound_frame_->target();
  return {notice_ + notice_bytes_, sizeof notice_ - notice_bytes_};
}

void Link::advance(std::uint64_t bytes) {
  if (header_.type == FrameType::kData) return inbound_frame_->advance(bytes);
  notice_bytes_ += static_cast<std::uint32_t>(bytes);
}

const char* Link::frame_end() {
  if (header_.type == FrameType::kNotice) endpoint_.defer_notice(peer_, notice_, notice_bytes_);
  if (header_.type != FrameType::kData) return nullptr;
  Inbound& channel = *std::exchange(inbound_frame_, nullptr);
  const std::uint32_t waiting = channel.waiting();
  const std::uint64_t messages = channel.messages();
  channel.end_frame();
  after_change(channel, waiting, messages);
  return nullptr;
}

}  // namespace tutti::tcp
