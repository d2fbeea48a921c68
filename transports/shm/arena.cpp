// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <new>

namespace tutti::shm {
namespace {

constexpr int kNeededSeals = F_SEAL_SHRINK | F_SEAL_SEAL;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

}  // namespace

Arena::Arena(Fd memfd, uint32_t ranks, uint64_t bytes, std::byte* base)
    : memfd_{std::move(memfd)}, layout_{ranks}, bytes_{bytes}, base_{base} {}

Arena::~Arena() { ::munmap(base_, bytes_); }

Outcome Arena::map(int memfd, uint64_t bytes, std::byte*& base) {
  const int flags = memfd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, memfd, 0);
  if (memory == MAP_FAILED) {
    return Outcome::system("cannot map " + std::to_string(bytes) + " bytes of shared memory (shm_arena_bytes)", errno);
  }
  ::madvise(memory, bytes, MADV_DONTFORK);
  base = static_cast<std::byte*>(memory);
  return Outcome::success();
}

Outcome Arena::check_size(uint32_t ranks, uint64_t bytes) {
  const uint64_t need = Layout{ranks}.extents + uint64_t{ranks} * 16 * kPage;
  if (bytes >= need) return Outcome::success();
  return Outcome::failure(TUTTI_ERR_RESOURCE, "an arena of " + std::to_string(bytes) + " bytes is too small for " +
                                                  std::to_string(ranks) + " ranks: need " + std::to_string(need) +
                                                  " (shm_arena_bytes, ulimit -f)");
}

/// Fresh memory is zero, which is the initial value of every word but these.
void Arena::write_header() {
  auto* header = new (base_) ArenaHeader{};
  header->magic = kArenaMagic;
  header->arena_bytes = bytes_;
  header->version = kLayoutVersion;
  header->ranks = layout_.ranks;
  header->next.store(layout_.extents, std::memory_order_release);
}

int Arena::reserve_pages(uint64_t offset, uint64_t bytes) const {
  int result = 0;
  do {
    if (memfd_) {
      result = ::fallocate(memfd_.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
    } else {
      result = ::madvise(base_ + offset, bytes, kPopulateWrite) == 0 ? 0 : errno;
      // Kernels before 5.14 do not know it: there, pages come when touched, as all private memory does.
      if (result == EINVAL) result = 0;
    }
  } while (result == EINTR);
  return result;
}

Outcome Arena::create(uint32_t ranks, uint64_t bytes, std::unique_ptr<Arena>& arena) {
  // ftruncate beyond the file size limit would be answered with SIGXFSZ.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0) bytes = std::min<uint64_t>(bytes, limit.rlim_cur);
  bytes = bytes / kPage * kPage;
  if (Outcome enough = check_size(ranks, bytes); !enough.ok()) return enough;
  Fd memfd{::memfd_create("tutti", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!memfd) return Outcome::system("memfd_create", errno);
  if (::ftruncate(memfd.get(), static_cast<off_t>(bytes)) != 0) return Outcome::system("ftruncate of the arena", errno);
  if (::fcntl(memfd.get(), F_ADD_SEALS, kNeededSeals | F_SEAL_GROW) != 0) return Outcome::system("sealing the arena", errno);
  std::byte* base = nullptr;
  if (Outcome mapped = map(memfd.get(), bytes, base); !mapped.ok()) return mapped;
  auto made = std::make_unique<Arena>(std::move(memfd), ranks, bytes, base);
  if (const int error = made->reserve_pages(0, made->layout_.extents)) {
    return Outcome::system("cannot reserve " + std::to_string(made->layout_.extents) + " bytes of shared memory", error);
  }
  made->write_header();
  arena = std::move(made);
  return Outcome::success();
}

Outcome Arena::create_private(uint32_t ranks, uint64_t bytes, std::unique_ptr<Arena>& arena) {
  bytes = bytes / kPage * kPage;
  if (Outcome enough = check_size(ranks, bytes); !enough.ok()) return enough;
  std::byte* base = nullptr;
  if (Outcome mapped = map(-1, bytes, base); !mapped.ok()) return mapped;
  arena = std::make_unique<Arena>(Fd{}, ranks, bytes, base);
  arena->write_header();
  return Outcome::success();
}

Outcome Arena::adopt(Fd memfd, uint32_t ranks, uint64_t bytes, std::unique_ptr<Arena>& arena) {
  const int seals = ::fcntl(memfd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kNeededSeals) != kNeededSeals) {
    return Outcome::failure(TUTTI_ERR_PROTOCOL, "the shared memory received is not sealed");
  }
  struct stat info {};
  if (::fstat(memfd.get(), &info) != 0) return Outcome::system("fstat of the arena", errno);
  if (bytes % kPage != 0 || static_cast<uint64_t>(info.st_size) != bytes || bytes < Layout{ranks}.extents) {
    return Outcome::failure(TUTTI_ERR_PROTOCOL, "the shared memory received has the wrong size");
  }
  std::byte* base = nullptr;
  if (Outcome mapped = map(memfd.get(), bytes, base); !mapped.ok()) return mapped;
  auto adopted = std::make_unique<Arena>(std::move(memfd), ranks, bytes, base);
  const auto* header = adopted->at<ArenaHeader>(0);
  if (header->magic != kArenaMagic || header->version != kLayoutVersion || header->ranks != ranks) {
    return Outcome::failure(TUTTI_ERR_PROTOCOL, "the shared memory received has another layout");
  }
  arena = std::move(adopted);
  return Outcome::success();
}

Outcome Arena::take_extent(uint64_t need, uint64_t want, uint64_t& offset, uint64_t& taken) {
  need = round_up(need, kPage);
  want = std::max(need, round_up(want, kPage));
  std::atomic<uint64_t>& next = at<ArenaHeader>(0)->next;
  uint64_t first = next.load(std::memory_order_acquire);
  uint64_t grant = 0;
  do {
    if (first % kPage != 0 || first < layout_.extents || first > bytes_) {
      return Outcome::failure(TUTTI_ERR_PROTOCOL, "the arena's header is corrupted");
    }
    const uint64_t rest = bytes_ - first;
    if (rest < need) {
      return Outcome::failure(TUTTI_ERR_RESOURCE, "the node's shared memory is used up: need " + std::to_string(need) +
                                                      " bytes, left " + std::to_string(rest) + " of " + std::to_string(bytes_) +
                                                      "; raise shm_arena_bytes or lower shm_slot_bytes");
    }
    grant = std::min(want, rest);
  } while (!next.compare_exchange_weak(first, first + grant, std::memory_order_acq_rel));
  if (const int error = reserve_pages(first, grant)) {
    // Give the range back if nobody took the next one; else it stays a hole that costs no memory.
    uint64_t mine = first + grant;
    next.compare_exchange_strong(mine, first, std::memory_order_acq_rel);
    return Outcome::system("cannot reserve " + std::to_string(grant) + " bytes of shared memory", error);
  }
  offset = first;
  taken = grant;
  return Outcome::success();
}

}  // namespace tutti::shm
