// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/net.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace tutti {
namespace {

constexpr int kBacklog = 4096;  // the kernel takes less if it likes less
constexpr int kMostEventsAWait = 128;
constexpr uint64_t kWakeToken = UINT64_MAX;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const noexcept { return fd_; }
  bool valid() const noexcept { return fd_ >= 0; }

 private:
  int fd_;
};

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  int family() const { return storage.ss_family; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::string reason(int error_number) {
  const Status status = system_error("", error_number);
  return std::string(status.message().substr(2));  // without the empty name of a call
}

Endpoint endpoint_of(const Address& address) {
  if (address.family() == AF_UNIX) {
    const auto& un = reinterpret_cast<const sockaddr_un&>(address.storage);
    const size_t name = address.bytes > offsetof(sockaddr_un, sun_path) ? address.bytes - offsetof(sockaddr_un, sun_path) : 0;
    return {name > 1 ? "@" + std::string(un.sun_path + 1, name - 1) : "@", 0};
  }
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (getnameinfo(address.get(), address.bytes, host.data(), host.size(), service.data(), service.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {"?", 0};
  }
  return {host.data(), static_cast<uint16_t>(std::strtoul(service.data(), nullptr, 10))};
}

Endpoint own_endpoint(int fd) {
  Address address;
  address.bytes = sizeof address.storage;
  return getsockname(fd, address.get(), &address.bytes) == 0 ? endpoint_of(address) : Endpoint{"?", 0};
}

/// Whether it is a number or "localhost"; these need no resolver at all, not even to be told that they are numbers.
bool parse_number(const Endpoint& to, Address* address) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(address->storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address->storage);
  const char* const host = to.host == "localhost" ? "127.0.0.1" : to.host.c_str();
  if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(to.port);
    address->bytes = sizeof v4;
  } else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(to.port);
    address->bytes = sizeof v6;
  } else {
    return false;
  }
  return true;
}

/// Numeric addresses and "localhost" without a resolver: a broken one must not delay what is on this machine.
Result<std::vector<Address>> resolve(const Endpoint& to) {
  std::vector<Address> found;
  if (to.is_unix()) {
    Address address;
    auto& un = reinterpret_cast<sockaddr_un&>(address.storage);
    const size_t name = to.host.size() - 1;
    if (name == 0 || name + 1 > sizeof un.sun_path) return error(TUTTI_ERR_CONNECT, "'{}' is no name of a socket", to.host);
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path + 1, to.host.data() + 1, name);
    address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name);
    found.push_back(address);
    return found;
  }
  if (Address address; parse_number(to, &address)) {
    found.push_back(address);
    return found;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  const std::string service = fmt::format("{}", to.port);
  addrinfo* list = nullptr;
  int failed = getaddrinfo(to.host.c_str(), service.c_str(), &hints, &list);
  if (failed == EAI_NONAME) {
    hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG;
    failed = getaddrinfo(to.host.c_str(), service.c_str(), &hints, &list);
  }
  if (failed != 0) return error(TUTTI_ERR_CONNECT, "cannot resolve '{}': {}", to.host, gai_strerror(failed));
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    if (info->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address address;
    std::memcpy(&address.storage, info->ai_addr, info->ai_addrlen);
    address.bytes = info->ai_addrlen;
    found.push_back(address);
  }
  freeaddrinfo(list);
  if (found.empty()) return error(TUTTI_ERR_CONNECT, "'{}' has no address", to.host);
  return found;
}

void set_no_delay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// An abstract name has no permissions: whoever uses it must be the same user. True for everything but Unix sockets.
bool same_user(int fd, int family) {
  if (family != AF_UNIX) return true;
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

class SystemStream final : public Stream {
 public:
  SystemStream(Descriptor fd, int family, bool connecting, std::string peer)
      : fd_(std::move(fd)), family_(family), connecting_(connecting), peer_(std::move(peer)) {}

  Io finish_connect() override {
    if (!connecting_) return Io::done;
    pollfd writable{fd_.get(), POLLOUT, 0};
    if (poll(&writable, 1, 0) == 0) return Io::again;
    int failed = 0;
    socklen_t bytes = sizeof failed;
    getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &failed, &bytes);
    if (failed != 0) {
      error_ = reason(failed);
      return Io::failed;
    }
    if (!same_user(fd_.get(), family_)) {
      error_ = "the socket belongs to another user";
      return Io::failed;
    }
    connecting_ = false;
    return Io::done;
  }

  Io read(std::span<std::byte> into, size_t* bytes) override {
    const Io up = finish_connect();
    if (up != Io::done) return up;
    const ssize_t got = recv(fd_.get(), into.data(), into.size(), 0);
    if (got == 0 && !into.empty()) return Io::closed;
    return outcome(got, bytes);
  }

  Io write(std::span<const std::byte> from, size_t* bytes) override {
    const Io up = finish_connect();
    if (up != Io::done) return up;
    return outcome(send(fd_.get(), from.data(), from.size(), MSG_NOSIGNAL), bytes);
  }

  std::string error() const override { return error_; }
  int fd() const noexcept override { return fd_.get(); }
  std::string peer_text() const override { return peer_; }
  void leave_no_trace() noexcept override {
    const linger at_once{1, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

 private:
  Io outcome(ssize_t moved, size_t* bytes) {
    if (moved > 0) {
      *bytes = static_cast<size_t>(moved);
      return Io::done;
    }
    if (moved == 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return Io::again;
    error_ = reason(errno);
    return Io::failed;
  }

  Descriptor fd_;
  int family_;
  bool connecting_;
  std::string peer_;
  std::string error_;
};

class SystemListener final : public Listener {
 public:
  SystemListener(Descriptor fd, int family) : fd_(std::move(fd)), family_(family), endpoint_(own_endpoint(fd_.get())) {}

  Io accept(std::unique_ptr<Stream>* stream) override {
    while (true) {
      Address peer;
      peer.bytes = sizeof peer.storage;
      Descriptor fd(accept4(fd_.get(), peer.get(), &peer.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return Io::again;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM || errno == EBADF || errno == EINVAL) {
          error_ = reason(errno);
          return Io::failed;
        }
        continue;  // that connection is gone (ECONNABORTED, a network error of its own); the next may be well
      }
      if (!same_user(fd.get(), family_)) continue;
      if (family_ != AF_UNIX) set_no_delay(fd.get());
      std::string text = family_ == AF_UNIX ? "a process of this machine" : endpoint_of(peer).text();
      *stream = std::make_unique<SystemStream>(std::move(fd), family_, false, std::move(text));
      return Io::done;
    }
  }
  std::string error() const override { return error_; }
  Endpoint endpoint() const override { return endpoint_; }
  int fd() const noexcept override { return fd_.get(); }

 private:
  Descriptor fd_;
  int family_;
  Endpoint endpoint_;
  std::string error_;
};

class SystemPoller final : public Poller {
 public:
  static Result<std::unique_ptr<Poller>> make(const Clock& clock) {
    auto poller = std::make_unique<SystemPoller>(clock);
    if (!poller->epoll_.valid()) return system_error("epoll_create1", errno);
    if (!poller->wake_.valid()) return system_error("eventfd", errno);
    TUTTI_TRY(poller->watch(poller->wake_.get(), false, kWakeToken));
    return std::unique_ptr<Poller>(std::move(poller));
  }
  explicit SystemPoller(const Clock& clock)
      : clock_(clock), epoll_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Status watch(int fd, bool want_write, uint64_t token) override {
    epoll_event event{};
    event.events = EPOLLIN | (want_write ? uint32_t{EPOLLOUT} : 0);
    event.data.u64 = token;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return Status();
    if (errno == ENOENT && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return Status();
    return system_error("epoll_ctl", errno);
  }
  void forget(int fd) override { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

  void wait(Deadline deadline, std::vector<uint64_t>* ready) override {
    std::array<epoll_event, kMostEventsAWait> events;
    const int count = epoll_wait(epoll_.get(), events.data(), kMostEventsAWait, deadline.poll_ms(clock_));
    for (int i = 0; i < count; ++i) {
      if (events[static_cast<size_t>(i)].data.u64 == kWakeToken) {
        uint64_t drained = 0;
        (void)!::read(wake_.get(), &drained, sizeof drained);
      } else {
        const uint64_t token = events[static_cast<size_t>(i)].data.u64;  // the structure is packed: no reference into it
        ready->push_back(token);
      }
    }
  }
  void wake() noexcept override {
    const uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }
  int fd() const noexcept override { return epoll_.get(); }

 private:
  const Clock& clock_;
  Descriptor epoll_;
  Descriptor wake_;
};

class SystemNetwork final : public Network {
 public:
  Result<std::unique_ptr<Listener>> listen(const Endpoint& at, PortRange range) override {
    Result<std::vector<Address>> addresses = resolve(at);
    TUTTI_TRY(addresses.status());
    Status why;
    for (Address& address : *addresses) {
      uint32_t port = at.port != 0 ? at.port : range.first;
      const uint32_t last = at.port != 0 ? at.port : range.last;
      for (; port <= last; ++port) {
        set_port(address, static_cast<uint16_t>(port));
        Result<std::unique_ptr<Listener>> listener = listen_on(address);
        if (listener.ok()) return listener;
        why = listener.status();
      }
    }
    const bool ranged = at.port == 0 && range.first != 0;
    return why.with_context(ranged ? fmt::format("cannot listen on any port {}-{} of {}", range.first, range.last, at.host)
                                   : fmt::format("cannot listen on {}", at.text()));
  }

  Result<std::unique_ptr<Stream>> connect(const Endpoint& to) override {
    Result<std::vector<Address>> addresses = resolve(to);
    TUTTI_TRY(addresses.status());
    // A name may have several addresses and only some of them may answer: each attempt takes the next one.
    const Address& address = (*addresses)[attempt_.fetch_add(1, std::memory_order_relaxed) % addresses->size()];
    Descriptor fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return system_error("socket", errno);
    if (address.family() != AF_UNIX) set_no_delay(fd.get());
    if (::connect(fd.get(), address.get(), address.bytes) != 0 && errno != EINPROGRESS && errno != EINTR) {
      return error(TUTTI_ERR_CONNECT, "{}", reason(errno));
    }
    return std::unique_ptr<Stream>(std::make_unique<SystemStream>(std::move(fd), address.family(), true, to.text()));
  }

  Result<std::unique_ptr<Stream>> adopt(int fd) override {
    struct stat about {};
    if (fstat(fd, &about) != 0) return system_error("fstat", errno).with_context(fmt::format("inherited descriptor {}", fd));
    // Anything else cannot be written to without the danger of SIGPIPE.
    if (!S_ISSOCK(about.st_mode)) return error(TUTTI_ERR_ENVIRONMENT, "inherited descriptor {} is not a socket", fd);
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
      return system_error("fcntl", errno);
    }
    return std::unique_ptr<Stream>(
        std::make_unique<SystemStream>(Descriptor(fd), AF_UNSPEC, false, fmt::format("descriptor {}", fd)));
  }

  Result<std::unique_ptr<Poller>> make_poller() override { return SystemPoller::make(clock_); }
  const Clock& clock() const noexcept override { return clock_; }

 private:
  static void set_port(Address& address, uint16_t port) {
    if (address.family() == AF_INET) reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
    if (address.family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
  }

  static Result<std::unique_ptr<Listener>> listen_on(const Address& address) {
    Descriptor fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return system_error("socket", errno);
    const int on = 1;
    // Connections of the last job that linger must not keep the next one from its port; two listeners still exclude each other.
    if (address.family() != AF_UNIX) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address.family() == AF_INET6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd.get(), address.get(), address.bytes) != 0) return system_error("bind", errno);
    if (::listen(fd.get(), kBacklog) != 0) return system_error("listen", errno);
    return std::unique_ptr<Listener>(std::make_unique<SystemListener>(std::move(fd), address.family()));
  }

  SystemClock clock_;
  std::atomic<size_t> attempt_{0};
};

}  // namespace

std::unique_ptr<Network> make_system_network() { return std::make_unique<SystemNetwork>(); }

}  // namespace tutti
