// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <vector>

#include "fd.hpp"
#include "identity.hpp"

namespace tutti::shm {

/// A connected Unix socket that keeps message boundaries and carries descriptors. Never blocks.
class Wire {
 public:
  enum class Got { kNothing, kMessage, kEnd };

  Wire() = default;
  explicit Wire(Fd socket) : socket_{std::move(socket)} {}

  static constexpr size_t kMaxMessageBytes = 1024;
  static constexpr size_t kMaxDescriptors = 200;  // a message's; the kernel's limit is 253

  /// The next message. Without `descriptors` any that come along are closed by the kernel unseen.
  Got receive(std::vector<uint8_t>& message, std::vector<Fd>* descriptors);
  /// Queues a message; the descriptors must stay open until it was sent.
  void post(const void* bytes, size_t count, std::vector<int> descriptors = {});
  /// Sends what can be sent. False: the other side is gone.
  bool flush();
  bool idle() const { return queue_.empty(); }
  int fd() const { return socket_.get(); }

 private:
  struct Message {
    std::vector<uint8_t> bytes;
    std::vector<int> descriptors;
  };
  Fd socket_;
  std::deque<Message> queue_;
};

/// Listener and connections of an endpoint's socket, whose name is random.
Outcome listen_on(const Token& job, const Token& incarnation, Fd& listener);
/// TUTTI_TP_AGAIN: the listener is busy.
Outcome connect_to(const Token& job, const Token& incarnation, Fd& socket);

/// User and process behind a connection, from the kernel. pid is 0 if it is not visible from here.
struct Credentials {
  uint32_t uid = 0;
  int pid = 0;
};
Outcome credentials_of(int socket, Credentials& credentials);
/// A descriptor that becomes readable when the process ends. Meaningful only if the process is later seen alive.
Fd open_pidfd(int pid);

}  // namespace tutti::shm
