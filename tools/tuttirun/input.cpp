// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tutti::launch {

namespace {
bool may_read_terminal() { return isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) == getpgrp(); }
}  // namespace

void StandardInput::start() {
  started_ = true;
  wait_for_input();
}

void StandardInput::wait_for_input() {
  if (!started_ || state_ != State::idle || in_flight_ >= kWindowBytes || !may_read_terminal()) return;
  if (loop_.watch(STDIN_FILENO, EPOLLIN, [this](uint32_t) { readable(); })) {
    state_ = State::watching;
  } else {
    state_ = State::always_ready;  // a regular file
    loop_.defer([this] { readable(); });
  }
}

void StandardInput::readable() {
  if (state_ != State::watching && state_ != State::always_ready) return;
  if (state_ == State::watching) loop_.forget(STDIN_FILENO);
  state_ = State::idle;
  if (!may_read_terminal()) return;  // until SIGCONT
  std::array<char, 65536> bytes;
  const ssize_t count = read(STDIN_FILENO, bytes.data(), std::min(bytes.size(), kWindowBytes - in_flight_));
  if (count < 0 && errno == EIO && isatty(STDIN_FILENO) == 1) return;  // sent to the background just now
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return wait_for_input();
  if (count <= 0) {
    state_ = State::stopped;
    return handlers_.on_end();
  }
  in_flight_ += static_cast<size_t>(count);
  handlers_.on_bytes(std::string_view(bytes.data(), static_cast<size_t>(count)));
  wait_for_input();
}

void StandardInput::credit(size_t bytes) {
  in_flight_ -= std::min(bytes, in_flight_);
  wait_for_input();
}

void StandardInput::look_again() { wait_for_input(); }

void StandardInput::stop() {
  if (state_ == State::watching) loop_.forget(STDIN_FILENO);
  state_ = State::stopped;
}

}  // namespace tutti::launch
