// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "rank_stream.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tutti::launch {

RankStream::RankStream(Loop& loop, Fd fd, LineSplitter::Emit emit, std::function<void()> on_end)
    : loop_(loop), fd_(std::move(fd)), emit_(std::move(emit)), on_end_(std::move(on_end)) {
  (void)set_nonblocking(fd_.get());  // only our end: the program's own descriptor is another description
  loop_.watch(fd_.get(), EPOLLIN, [this](uint32_t) { readable(); });
}

RankStream::~RankStream() {
  if (fd_.valid()) loop_.forget(fd_.get());
}

void RankStream::pause(bool paused) {
  if (paused_ == paused || ended()) return;
  paused_ = paused;
  if (paused) return loop_.forget(fd_.get());
  loop_.watch(fd_.get(), EPOLLIN, [this](uint32_t) { readable(); });
  if (left_) loop_.defer([this] { readable(); });
}

void RankStream::end_soon() {
  if (ended() || left_) return;
  int bytes = 0;
  ioctl(fd_.get(), FIONREAD, &bytes);
  left_ = static_cast<size_t>(std::max(bytes, 0));
  loop_.defer([this] { readable(); });
}

void RankStream::readable() {
  if (paused_ || ended()) return;
  std::array<char, 65536> bytes;
  const size_t want = left_ ? std::min(bytes.size(), *left_) : bytes.size();
  const ssize_t count = want == 0 ? 0 : read(fd_.get(), bytes.data(), want);
  if (count < 0 && errno == EINTR) return;
  if (count < 0 && errno == EAGAIN && !left_) return;
  if (count <= 0) return end();
  if (left_) {
    *left_ -= static_cast<size_t>(count);
    loop_.defer([this] { readable(); });
  }
  lines_.feed(std::string_view(bytes.data(), static_cast<size_t>(count)), emit_);
}

void RankStream::end() {
  loop_.forget(fd_.get());
  fd_.reset();
  lines_.finish(emit_);
  on_end_();
}

RankInput::RankInput(Loop& loop, Fd fd, std::function<void(size_t)> on_taken)
    : loop_(loop), fd_(std::move(fd)), on_taken_(std::move(on_taken)) {
  (void)set_nonblocking(fd_.get());
  loop_.watch(fd_.get(), 0, [this](uint32_t events) { (events & EPOLLERR) != 0 ? close() : pump(); });
}

RankInput::~RankInput() {
  if (fd_.valid()) loop_.forget(fd_.get());
}

void RankInput::write(std::string_view bytes) {
  if (!fd_.valid()) return on_taken_(bytes.size());
  queue_.append(bytes);
  pump();
}

void RankInput::finish() {
  finishing_ = true;
  pump();
}

void RankInput::close() {
  if (!fd_.valid()) return;
  loop_.forget(fd_.get());
  fd_.reset();
  const size_t dropped = queue_.size();
  queue_.clear();
  if (dropped > 0) on_taken_(dropped);
}

void RankInput::pump() {
  if (!fd_.valid()) return;
  size_t sent = 0;
  while (sent < queue_.size()) {
    const ssize_t count = ::write(fd_.get(), queue_.data() + sent, queue_.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count < 0) return close();
    sent += static_cast<size_t>(count);
  }
  queue_.erase(0, sent);
  if (queue_.empty() && finishing_) {
    close();
  } else {
    loop_.change(fd_.get(), queue_.empty() ? 0u : static_cast<uint32_t>(EPOLLOUT));
  }
  if (sent > 0) on_taken_(sent);
}

}  // namespace tutti::launch
