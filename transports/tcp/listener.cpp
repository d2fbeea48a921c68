// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "listener.hpp"

#include <cerrno>

namespace tutti::tcp {
namespace {

int bind_and_listen(int fd, const Address& address) {
  sockaddr_storage storage;
  const socklen_t bytes = address.to_sockaddr(&storage);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&storage), bytes) != 0) return errno;
  return ::listen(fd, 4096) != 0 ? errno : 0;  // the kernel cuts it to its own limit
}

}  // namespace

int Listener::open(Address address, const Settings& settings, std::uint64_t random) {
  const std::uint32_t ports = settings.first_port == 0 ? 1u : settings.last_port - settings.first_port + 1u;
  // Starting anywhere in the range: ranks of one machine do not all try the same ports first.
  const auto start = static_cast<std::uint32_t>(random % ports);
  int error = EADDRINUSE;
  for (std::uint32_t i = 0; i < ports && error == EADDRINUSE; ++i) {
    fd_ = make_socket(address.ipv6, settings);
    if (!fd_.valid()) return errno;
    const int yes = 1;
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    address.port = settings.first_port == 0 ? std::uint16_t{0}
                                            : static_cast<std::uint16_t>(settings.first_port + (start + i) % ports);
    error = bind_and_listen(fd_.get(), address);
  }
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (error == 0 && ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) error = errno;
  if (error != 0) {
    fd_.close();
    return error;
  }
  Address::from_sockaddr(storage, &address_);
  return 0;
}

void Listener::ready(std::uint32_t) {
  for (int turn = 0; turn < 64; ++turn) {
    ++counters_.system_calls;
    Descriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      owner_.accepted(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return owner_.accept_failed(errno);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    }  // else that one connection is broken already
  }
}

}  // namespace tutti::tcp
