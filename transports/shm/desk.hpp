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

/// Where the ranks of a process wait for the node that the first of them sets up. Lives until all ranks that are expected
/// have come and left, in whatever order they close.
class Hall {
 public:
  ~Hall();

  /// nullptr: there is none to be had. Only the first call counts.
  void settle(std::shared_ptr<Node> node);
  bool settled(std::shared_ptr<Node>& node);
  /// Readable once settled.
  int ready_fd() const { return ready_.get(); }

 private:
  friend class Desk;
  /// What a visitor looks at before it believes that there is a hall.
  struct Page {
    Token nonce;
    std::atomic<uint64_t> count;
    Hall* hall;
  };
  Hall(Fd ready, Fd memfd, Page* page) : ready_{std::move(ready)}, memfd_{std::move(memfd)}, page_{page} {}

  std::mutex mutex_;
  bool settled_ = false;
  std::shared_ptr<Node> node_;
  Fd ready_;
  Fd memfd_;
  Page* page_;
  std::atomic<bool> complete_{false};
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
  /// Keeps the hall until so many others have visited it, even if its owner leaves before.
  void expect(uint32_t visitors);
  /// The hall of another rank of this process. False: it is gone. At most once in an endpoint's life.
  bool visit(const Address& address);
  void leave();

  Hall* hall() const { return hall_; }

 private:
  static Hall::Page* map(int memfd);
  static bool count_in(std::atomic<uint64_t>& count);

  Hall* hall_ = nullptr;
};

}  // namespace tutti::shm
