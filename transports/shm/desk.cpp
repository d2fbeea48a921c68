// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "desk.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <new>

namespace tutti::shm {

void Hall::settle(std::shared_ptr<Node> node) {
  {
    const std::lock_guard lock{mutex_};
    if (settled_) return;
    settled_ = true;
    node_ = std::move(node);
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(ready_.get(), &one, sizeof one);
}

bool Hall::settled(std::shared_ptr<Node>& node) {
  const std::lock_guard lock{mutex_};
  if (settled_) node = node_;
  return settled_;
}

Desk::Page* Desk::map(int memfd) {
  void* memory = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, kPage, MADV_DONTFORK);
  return static_cast<Page*>(memory);
}

Outcome Desk::open(const Host& host, Address& address) {
  Fd memfd{::memfd_create("tutti-desk", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!memfd) return Outcome::system("memfd_create", errno);
  int failed = 0;
  do {
    failed = ::fallocate(memfd.get(), 0, 0, kPage) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed != 0) return Outcome::system("fallocate", failed);
  if (::fcntl(memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return Outcome::system("seal", errno);
  Fd ready{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!ready) return Outcome::system("eventfd", errno);
  auto hall = std::make_unique<Hall>(std::move(ready));
  Page* page = map(memfd.get());
  if (page == nullptr) return Outcome::system("mmap", errno);
  new (page) Page{};
  host.random(address.desk_nonce.data(), address.desk_nonce.size());
  page->nonce = address.desk_nonce;
  hall->visits_.store(1, std::memory_order_release);
  page->hall = hall_ = hall.release();
  page->users.store(1, std::memory_order_release);
  address.desk_fd = memfd.get();
  memfd_ = std::move(memfd);
  page_ = page;
  return Outcome::success();
}

bool Desk::visit(const Address& address) {
  const Fd memfd{::fcntl(address.desk_fd, F_DUPFD_CLOEXEC, 0)};
  if (!memfd) return false;
  const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(memfd.get(), &info) != 0 || info.st_size != kPage) return false;
  Page* page = map(memfd.get());
  if (page == nullptr) return false;
  bool counted = false;
  if (same_bytes(page->nonce, address.desk_nonce)) {
    uint64_t users = page->users.load(std::memory_order_acquire);
    while (users > 0 && !counted) {
      counted = page->users.compare_exchange_weak(users, users + 1, std::memory_order_acq_rel);
    }
  }
  if (!counted) {
    ::munmap(page, kPage);
    return false;
  }
  page_ = page;
  hall_ = page->hall;
  hall_->visits_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

void Desk::leave() {
  if (page_ == nullptr) return;
  hall_->visits_.fetch_add(1, std::memory_order_acq_rel);
  if (page_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    hall_->visits_.fetch_add(1, std::memory_order_acq_rel);
    delete hall_;
  }
  ::munmap(page_, kPage);
  page_ = nullptr;
  hall_ = nullptr;
  memfd_.reset();
}

}  // namespace tutti::shm
