// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "socket.hpp"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tutti::tcp {
namespace {

void set_option(int fd, int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); }

}  // namespace

void Descriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Descriptor::reset_connection() {
  if (fd_ < 0) return;
  // Ends it even if a forked child holds a copy, and by a reset: a shutdown would put the peer, or us, into TIME_WAIT.
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  if (::connect(fd_, &nobody, sizeof nobody) != 0) ::shutdown(fd_, SHUT_RDWR);
  const linger now = {1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

Descriptor make_socket(bool ipv6, const Settings& settings) {
  Descriptor fd(::socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fd;
  if (ipv6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (settings.socket_buffer_bytes > 0) {
    const int bytes = static_cast<int>(settings.socket_buffer_bytes);
    set_option(fd.get(), SOL_SOCKET, SO_SNDBUF, bytes);
    set_option(fd.get(), SOL_SOCKET, SO_RCVBUF, bytes);
  }
  return fd;
}

void send_at_once(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

void tune_connection(int fd, const Settings& settings) {
  send_at_once(fd);
  if (settings.heartbeat_timeout_ns == 0) return;
  // An idle connection is probed by the kernel: half the time allowed passes, then three probes share the other half.
  const std::uint64_t seconds = std::max<std::uint64_t>(settings.heartbeat_timeout_ns / 1'000'000'000, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(std::clamp<std::uint64_t>(seconds / 2, 1, 32767)));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(std::clamp<std::uint64_t>(seconds / 6, 1, 32767)));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::string peer_text(int fd) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  Address address;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return "?";
  return Address::from_sockaddr(storage, &address) ? address.text() : "?";
}

const char* silence(int fd, std::uint64_t timeout_ns) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return nullptr;
  // TCP_USER_TIMEOUT would also cut a peer that is alive but has not read for that long; hence this.
  if (std::uint64_t{info.tcpi_last_ack_recv} * 1'000'000 <= timeout_ns) return nullptr;
  if (info.tcpi_unacked > 0 && info.tcpi_retransmits > 1) return "its host does not acknowledge what is sent";
  return info.tcpi_probes > 2 ? "its host does not answer probes" : nullptr;
}

int unacknowledged_bytes(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

}  // namespace tutti::tcp
