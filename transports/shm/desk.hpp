// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "fd.hpp"
#include "identity.hpp"
#include "node.hpp"

namespace tutti::shm {

/// Where the ranks of a process wait for the node that the first of them sets up.
class Hall {
 public:
  explicit Hall(Fd ready) : ready_{std::move(ready)} {}

  /// nullptr: there is none to be had. Only the first call counts.
  void settle(std::shared_ptr<Node> node);
  bool settled(std::shared_ptr<Node>& node);
  /// Readable once settled.
  int ready_fd() const { return ready_.get(); }

 private:
  friend class Desk;
  std::mutex mutex_;
  bool settled_ = false;
  std::shared_ptr<Node> node_;
  Fd ready_;
  // The count of users is in the desk's page; this orders their accesses.
  std::atomic<uint32_t> visits_{0};
};

/// A counted reference to a hall, by which ranks of one process find each other without a global: a descriptor number that is
/// part of the address. The number, unlike a pointer, can be tried safely when its owner may be gone: behind it must be a
/// page with the nonce of the address, and that page counts the hall's users.
class Desk {
 public:
  Desk() = default;
  ~Desk() { leave(); }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  /// A desk of one's own, with a new hall.
  Outcome open(const Host& host, Address& address);
  /// The hall of another rank of this process. False: it is gone.
  bool visit(const Address& address);
  void leave();

  Hall* hall() const { return hall_; }

 private:
  struct Page {
    Token nonce;
    std::atomic<uint64_t> users;
    Hall* hall;
  };
  static Page* map(int memfd);

  Fd memfd_;
  Page* page_ = nullptr;
  Hall* hall_ = nullptr;
};

}  // namespace tutti::shm
