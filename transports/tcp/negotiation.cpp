// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "negotiation.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tutti::tcp {

bool Poller::open() {
  fd_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  return fd_.valid();
}

bool Poller::control(int operation, int fd, Pollable* pollable, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = pollable;
  return ::epoll_ctl(fd_.get(), operation, fd, &event) == 0;
}

Negotiation::Negotiation(NegotiationOwner& owner, Poller& poller, Counters& counters, Descriptor fd,
                         const Handshake& handshake, bool connecting)
    : owner_(owner),
      poller_(poller),
      counters_(counters),
      fd_(std::move(fd)),
      handshake_(handshake),
      connecting_(connecting) {}

Negotiation::~Negotiation() { abandon(); }

bool Negotiation::watch() { return poller_.add(fd_.get(), this, connecting_ ? EPOLLOUT : EPOLLIN); }

void Negotiation::abandon() {
  done_ = true;
  if (!fd_.valid()) return;
  poller_.remove(fd_.get());
  fd_.reset_connection();
}

void Negotiation::finish(const std::string& why) {
  if (done_) return;
  done_ = true;
  owner_.ended(*this, why);
}

void Negotiation::ready(std::uint32_t) {
  if (done_) return;
  if (connecting_) {
    int error = 0;
    socklen_t bytes = sizeof error;
    ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    error_number_ = error;
    if (error != 0) return finish(std::strerror(error));
    connecting_ = false;
    deadline_ns += handshake_allowed_ns;
    poller_.change(fd_.get(), this, EPOLLIN);
    if (!write_output()) return;
  }
  read_input();
}

/// Handshakes are far smaller than an empty socket's buffer: what does not fit is a failure.
bool Negotiation::write_output() {
  while (handshake_.output_bytes() > 0) {
    ++counters_.system_calls;
    const ssize_t sent = ::send(fd_.get(), handshake_.output(), handshake_.output_bytes(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      finish(std::strerror(errno));
      return false;
    }
    handshake_.sent(static_cast<std::size_t>(sent));
  }
  return true;
}

void Negotiation::read_input() {
  for (;;) {
    std::uint8_t bytes[128];
    ++counters_.system_calls;
    const ssize_t got = ::recv(fd_.get(), bytes, std::min(sizeof bytes, handshake_.wanted_bytes()), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    hung_up_ = got <= 0;
    if (got < 0) return finish(std::strerror(errno));
    if (got == 0) return finish("it closed the connection during the handshake");
    handshake_.feed(bytes, static_cast<std::size_t>(got));
    if (handshake_.state() == Handshake::State::kAsksVerdict) handshake_.decide(owner_.decide(*this));
    if (!write_output()) return;
    switch (handshake_.state()) {
      case Handshake::State::kEstablished:
        done_ = true;
        return owner_.established(*this);
      case Handshake::State::kFailed:
        return finish(handshake_.failure());
      case Handshake::State::kYielded:
        if (handshake_.is_connector()) return finish("it is connecting the other way round");
        // The verdict has to reach the peer: it closes first. Until then, or the deadline, nothing more is read.
        poller_.change(fd_.get(), this, EPOLLRDHUP);
        return;
      default:
        break;
    }
  }
}

}  // namespace tutti::tcp
