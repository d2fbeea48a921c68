// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "wire.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace tutti::shm {
namespace {

/// An abstract name: it vanishes with the socket, so that nothing can be left behind or found stale.
socklen_t name_socket(const Token& job, const Token& incarnation, sockaddr_un& name) {
  name = {};
  name.sun_family = AF_UNIX;
  std::string text = "tutti/";
  const auto append = [&text](const uint8_t* bytes, size_t count) {
    constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; ++i) {
      text += kDigits[bytes[i] >> 4];
      text += kDigits[bytes[i] & 15];
    }
  };
  append(job.data(), 4);
  text += '/';
  append(incarnation.data(), incarnation.size());
  static_assert(6 + 8 + 1 + 32 + 1 <= sizeof name.sun_path);
  std::memcpy(name.sun_path + 1, text.data(), text.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
}

Fd new_socket() { return Fd{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)}; }

void take_descriptors(msghdr& header, std::vector<Fd>& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

Wire::Got Wire::receive(std::vector<uint8_t>& message, std::vector<Fd>* descriptors) {
  message.resize(kMaxMessageBytes);
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))];
  iovec part{message.data(), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (descriptors != nullptr) {
    descriptors->clear();
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return errno == EAGAIN ? Got::kNothing : Got::kEnd;
  if (descriptors != nullptr) take_descriptors(header, *descriptors);
  // Nobody sends empty or longer messages.
  if (got == 0 || (header.msg_flags & MSG_TRUNC) != 0) return Got::kEnd;
  message.resize(static_cast<size_t>(got));
  return Got::kMessage;
}

void Wire::post(const void* bytes, size_t count, std::vector<int> descriptors) {
  const auto* first = static_cast<const uint8_t*>(bytes);
  queue_.push_back({std::vector<uint8_t>(first, first + count), std::move(descriptors)});
}

bool Wire::flush() {
  while (!queue_.empty()) {
    Message& message = queue_.front();
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
    iovec part{message.bytes.data(), message.bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (const size_t bytes = message.descriptors.size() * sizeof(int); bytes > 0) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(rights), message.descriptors.data(), bytes);
    }
    ssize_t sent = 0;
    do {
      sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (sent < 0 && errno == EINTR);
    // ETOOMANYREFS: too many descriptors are under way until others have read theirs.
    if (sent < 0) return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
    queue_.pop_front();
  }
  return true;
}

Outcome listen_on(const Token& job, const Token& incarnation, Fd& listener) {
  Fd socket = new_socket();
  if (!socket) return Outcome::system("socket", errno);
  sockaddr_un name;
  const socklen_t length = name_socket(job, incarnation, name);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) return Outcome::system("bind", errno);
  if (::listen(socket.get(), SOMAXCONN) != 0) return Outcome::system("listen", errno);
  listener = std::move(socket);
  return Outcome::success();
}

Outcome connect_to(const Token& job, const Token& incarnation, Fd& connected) {
  Fd socket = new_socket();
  if (!socket) return Outcome::system("socket", errno);
  sockaddr_un name;
  const socklen_t length = name_socket(job, incarnation, name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    if (errno == EAGAIN || errno == EINTR) return {TUTTI_TP_AGAIN, {}};
    return Outcome::system("connect", errno);
  }
  connected = std::move(socket);
  return Outcome::success();
}

Outcome credentials_of(int socket, Credentials& credentials) {
  ucred got{};
  socklen_t length = sizeof got;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &got, &length) != 0) return Outcome::system("SO_PEERCRED", errno);
  credentials.uid = got.uid;
  credentials.pid = got.pid;
  return Outcome::success();
}

Fd open_pidfd(int pid) {
#ifndef SYS_pidfd_open
  constexpr long SYS_pidfd_open = 434;
#endif
  return Fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u))};
}

}  // namespace tutti::shm
