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
namespace {

// The count: users in the low half, visits so far in the high half, and whether the visitors to come are counted as users.
constexpr uint64_t kUser = 1;
constexpr uint64_t kUsersMask = 0xffffffff;
constexpr uint64_t kVisit = uint64_t{1} << 32;
constexpr uint64_t kExpecting = uint64_t{1} << 63;

}  // namespace

Hall::~Hall() { ::munmap(page_, kPage); }

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

Hall::Page* Desk::map(int memfd) {
  void* memory = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  if (memory == MAP_FAILED) return nullptr;
  ::madvise(memory, kPage, MADV_DONTFORK);
  return static_cast<Hall::Page*>(memory);
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
  Hall::Page* page = map(memfd.get());
  if (page == nullptr) return Outcome::system("mmap", errno);
  new (page) Hall::Page{};
  host.random(address.desk_nonce.data(), address.desk_nonce.size());
  address.desk_fd = memfd.get();
  page->nonce = address.desk_nonce;
  page->hall = hall_ = new Hall{std::move(ready), std::move(memfd), page};
  hall_->complete_.store(true, std::memory_order_release);
  page->count.store(kUser, std::memory_order_release);
  return Outcome::success();
}

void Desk::expect(uint32_t visitors) {
  std::atomic<uint64_t>& count = hall_->page_->count;
  uint64_t now = count.load(std::memory_order_acquire);
  uint64_t later = 0;
  do {
    const auto visited = static_cast<uint32_t>((now & ~kExpecting) / kVisit);
    later = (now + (visitors > visited ? visitors - visited : 0)) | kExpecting;
  } while (!count.compare_exchange_weak(now, later, std::memory_order_acq_rel));
}

bool Desk::count_in(std::atomic<uint64_t>& count) {
  uint64_t now = count.load(std::memory_order_acquire);
  uint64_t later = 0;
  do {
    if ((now & kUsersMask) == 0) return false;
    later = now + kVisit + ((now & kExpecting) != 0 ? 0 : kUser);
  } while (!count.compare_exchange_weak(now, later, std::memory_order_acq_rel));
  return true;
}

bool Desk::visit(const Address& address) {
  const Fd memfd{::fcntl(address.desk_fd, F_DUPFD_CLOEXEC, 0)};
  if (!memfd) return false;
  const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstat(memfd.get(), &info) != 0 || info.st_size != kPage) return false;
  Hall::Page* page = map(memfd.get());
  if (page == nullptr) return false;
  const bool counted = same_bytes(page->nonce, address.desk_nonce) && count_in(page->count);
  if (counted) hall_ = page->hall;
  ::munmap(page, kPage);
  return counted && hall_->complete_.load(std::memory_order_acquire);
}

void Desk::leave() {
  if (hall_ == nullptr) return;
  const uint64_t before = hall_->page_->count.fetch_sub(kUser, std::memory_order_acq_rel);
  if ((before & kUsersMask) == kUser) delete hall_;
  hall_ = nullptr;
}

}  // namespace tutti::shm
