// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "channel.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace tutti::launch {

Channel::Channel(Loop& loop, Fd read_end, Fd write_end, bool expect_magic, Handlers handlers)
    : loop_(loop),
      read_end_(std::move(read_end)),
      write_end_(std::move(write_end)),
      frames_(expect_magic),
      handlers_(std::move(handlers)) {
  // On a failure the descriptors only stay blocking; nothing of ours blocks for long on a healthy peer.
  (void)set_nonblocking(read_end_.get());
  (void)set_nonblocking(write_end_.get());
  loop_.watch(read_end_.get(), EPOLLIN, [this](uint32_t) { readable(); });
  // EPOLLERR on the writing end of a pipe: nobody reads any more. The read side reports it.
  loop_.watch(write_end_.get(), 0, [this](uint32_t events) { (events & EPOLLERR) != 0 ? drop_writer() : writable(); });
}

Channel::~Channel() {
  if (read_end_.valid()) loop_.forget(read_end_.get());
  if (write_end_.valid()) loop_.forget(write_end_.get());
}

void Channel::send_raw(std::string_view bytes) {
  if (!write_end_.valid() || finishing_) return;
  const bool idle = pending() == 0;
  if (sent_ > (1u << 20)) {
    queue_.erase(0, sent_);
    sent_ = 0;
  }
  queue_.append(bytes);
  if (congested()) was_congested_ = true;
  if (idle) writable();
}

void Channel::pause(bool paused) {
  if (paused_ == paused || closed_) return;
  paused_ = paused;
  if (paused) return loop_.forget(read_end_.get());  // not events = 0: a hang-up would be reported without end
  loop_.watch(read_end_.get(), EPOLLIN, [this](uint32_t) { readable(); });
  // Frames that had been read already wait in our buffer, where epoll cannot see them.
  loop_.defer([this] { handle_frames(); });
}

void Channel::finish_writing() {
  finishing_ = true;
  if (pending() == 0) drop_writer();
}

void Channel::drop_writer() {
  if (!write_end_.valid()) return;
  loop_.forget(write_end_.get());
  write_end_.reset();
  queue_.clear();
  sent_ = 0;
}

void Channel::writable() {
  if (!write_end_.valid()) return;
  while (pending() > 0) {
    const ssize_t count = write(write_end_.get(), queue_.data() + sent_, pending());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return drop_writer();  // the reader is gone; the read side reports it
    sent_ += static_cast<size_t>(count);
  }
  if (pending() == 0) {
    queue_.clear();
    sent_ = 0;
    if (finishing_) return drop_writer();
  }
  loop_.change(write_end_.get(), pending() > 0 ? static_cast<uint32_t>(EPOLLOUT) : 0u);
  if (was_congested_ && pending() < kLowWater) {
    was_congested_ = false;
    if (handlers_.on_drained) loop_.defer([this] { handlers_.on_drained(); });
  }
}

void Channel::readable() {
  if (closed_ || paused_) return;
  std::array<char, 65536> bytes;
  const ssize_t count = read(read_end_.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (count <= 0) return close_reading(count == 0 ? Status() : system_error("read", errno));
  frames_.feed(std::string_view(bytes.data(), static_cast<size_t>(count)));
  handle_frames();
}

void Channel::handle_frames() {
  while (!closed_ && !paused_) {
    Result<std::optional<Frame>> next = frames_.next();
    if (!next.ok()) {
      close_reading(next.status());
      return;
    }
    if (!next->has_value()) break;
    handlers_.on_frame(std::move(**next));
  }
}

void Channel::close_reading(Status why) {
  if (closed_) return;
  closed_ = true;
  loop_.forget(read_end_.get());
  read_end_.reset();
  handlers_.on_close(std::move(why));
}

}  // namespace tutti::launch
