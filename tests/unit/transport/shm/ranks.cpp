// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

namespace tutti::test {
namespace {

using Clock = std::chrono::steady_clock;

HostDouble& self(void* host) { return *static_cast<HostDouble*>(host); }

/// Keyed, sensitive to every byte, and no more than a test needs.
void toy_mac(void* host, const void* message, size_t bytes, uint8_t mac[32]) {
  const std::string& secret = self(host).secret;
  for (uint64_t part = 0; part < 4; ++part) {
    uint64_t hash = 14695981039346656037u + part;
    const auto mix = [&](const void* data, size_t count) {
      const auto* byte = static_cast<const uint8_t*>(data);
      for (size_t i = 0; i < count; ++i) hash = (hash ^ byte[i]) * 1099511628211u + (hash >> 29);
    };
    mix(secret.data(), secret.size());
    mix(message, bytes);
    mix(secret.data(), secret.size());
    std::memcpy(mac + 8 * part, &hash, 8);
  }
}

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

HostDouble::HostDouble() {
  table.struct_size = sizeof table;
  table.abi_version = TUTTI_TP_ABI_VERSION;
  table.host = this;
  table.log = [](void* host, int, const char* line) { self(host).log.emplace_back(line); };
  table.alloc = [](void* host, size_t bytes, size_t alignment) -> void* {
    void* memory = nullptr;
    if (::posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0) return nullptr;
    HostDouble& me = self(host);
    ++me.allocations;
    me.live_bytes += bytes;
    me.blocks_[memory] = bytes;
    return memory;
  };
  table.free = [](void* host, void* memory) {
    if (memory == nullptr) return;
    HostDouble& me = self(host);
    me.live_bytes -= me.blocks_.at(memory);
    me.blocks_.erase(memory);
    std::free(memory);
  };
  table.clock_ns = [](void*) { return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count()); };
  table.random = [](void*, void* bytes, size_t count) {
    std::random_device device;
    for (size_t i = 0; i < count; ++i) static_cast<uint8_t*>(bytes)[i] = static_cast<uint8_t>(device());
  };
  table.mac = toy_mac;
  table.setting = [](void* host, const char* name) -> const char* {
    const auto entry = self(host).settings.find(name);
    return entry == self(host).settings.end() ? nullptr : entry->second.c_str();
  };
  table.peer_gone = [](void* host, uint32_t peer, int cause, const char* text) {
    self(host).gone.push_back({peer, cause, text});
  };
  table.notified = [](void* host, uint32_t peer, const void* notice, size_t bytes) {
    self(host).notices.emplace_back(peer, std::string(static_cast<const char*>(notice), bytes));
  };
}

bool HostDouble::logged(const std::string& part) const {
  return std::any_of(log.begin(), log.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

Rank::Rank(uint32_t rank, const Options& options) : rank_(rank) {
  host_.settings = options.settings;
  host_.secret = options.secret;
  tutti_tp_open_t arguments{};
  arguments.struct_size = sizeof arguments;
  arguments.rank = rank;
  arguments.size = options.ranks;
  arguments.job_id[0] = options.job_id;
  arguments.host_identity = options.identity.c_str();
  arguments.bind_addresses = "";
  arguments.host = &host_.table;
  if (const tutti_status_t status = tp().open(&arguments, &endpoint_); status != TUTTI_OK) {
    throw std::runtime_error("open: " + std::to_string(status) + " " + (host_.log.empty() ? "" : host_.log.back()));
  }
}

std::string Rank::address() {
  char buffer[TUTTI_TP_ADDRESS_MAX_BYTES];
  size_t bytes = 0;
  if (tp().address(endpoint_, buffer, sizeof buffer, &bytes) != TUTTI_OK) throw std::runtime_error("address");
  return std::string(buffer, bytes);
}

void Rank::introduce(uint32_t peer, const std::string& address) {
  if (tp().set_peer(endpoint_, peer, address.data(), address.size()) != TUTTI_OK) throw std::runtime_error("set_peer");
}

void Rank::close() {
  if (endpoint_ != nullptr) tp().close(std::exchange(endpoint_, nullptr));
}

tutti_status_t Rank::link(uint32_t peer) {
  tutti_tp_link_t link{};
  link.struct_size = sizeof link;
  return tp().link(endpoint_, peer, &link);
}

uint64_t Rank::counter(const std::string& name) {
  const char* found = nullptr;
  uint64_t value = 0;
  for (uint32_t i = 0; tp().counter(endpoint_, i, &found, &value) == TUTTI_OK; ++i) {
    if (name == found) return value;
  }
  throw std::runtime_error("no counter " + name);
}

tutti_tp_channel_t* Rank::channel(uint32_t peer, uint64_t id, int direction) {
  tutti_tp_channel_t* channel = nullptr;
  if (const tutti_status_t status = tp().channel_open(endpoint_, peer, id, direction, 1, &channel); status != TUTTI_OK) {
    throw std::runtime_error("channel_open: " + std::to_string(status));
  }
  return channel;
}

bool Rank::until(const std::function<bool()>& condition, double seconds) {
  const auto end = after(seconds);
  for (unsigned round = 1; !condition(); ++round) {
    if (Clock::now() > end) return false;
    progress();
    if (round % 64 == 0) ::sched_yield();
  }
  return true;
}

bool Rank::sleep_until(const std::function<bool()>& condition, double seconds) {
  const auto end = after(seconds);
  while (!condition()) {
    tp().arm(endpoint_);
    if (condition()) {
      tp().disarm(endpoint_);
      return true;
    }
    pollfd waits{tp().fd(endpoint_), POLLIN, 0};
    const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    const int woken = rest <= 0 ? 0 : ::poll(&waits, 1, static_cast<int>(rest));
    tp().disarm(endpoint_);
    progress();
    if (woken == 0) return condition();
  }
  return true;
}

bool Rank::send(tutti_tp_channel_t* channel, const std::string& message, bool sleep) {
  void* slot = nullptr;
  tutti_status_t status = TUTTI_TP_AGAIN;
  const auto reserved = [&] {
    status = tp().slot_reserve(channel, message.size(), &slot);
    return status != TUTTI_TP_AGAIN;
  };
  if (!(sleep ? sleep_until(reserved) : until(reserved)) || status != TUTTI_OK) return false;
  std::copy(message.begin(), message.end(), static_cast<char*>(slot));
  return tp().slot_commit(channel, message.size(), 0) == TUTTI_OK;
}

std::string Rank::receive(tutti_tp_channel_t* channel, bool sleep) {
  const void* slot = nullptr;
  uint64_t bytes = 0;
  uint32_t mark = 0;
  tutti_status_t status = TUTTI_TP_AGAIN;
  const auto peeked = [&] {
    status = tp().slot_peek(channel, &slot, &bytes, &mark);
    return status != TUTTI_TP_AGAIN;
  };
  if (!(sleep ? sleep_until(peeked) : until(peeked))) return "timeout";
  if (status != TUTTI_OK) return "error " + std::to_string(status);
  std::string message(static_cast<const char*>(slot), bytes);
  if (tp().slot_release(channel) != TUTTI_OK) return "release failed";
  return message;
}

Job::Job(const Options& options, bool start) {
  for (uint32_t rank = 0; rank < options.ranks; ++rank) ranks_.push_back(std::make_unique<Rank>(rank, options));
  if (!start) return;
  for (auto& rank : ranks_) {
    for (auto& peer : ranks_) rank->introduce(peer->rank(), peer->address());
  }
  if (!until([&] {
        bool all = true;
        for (auto& rank : ranks_) all = rank->start() == TUTTI_OK && all;
        return all;
      })) {
    throw std::runtime_error("start");
  }
}

void Job::progress() {
  for (auto& rank : ranks_) {
    if (rank->endpoint() != nullptr) rank->progress();
  }
}

bool Job::until(const std::function<bool()>& condition, double seconds) {
  const auto end = after(seconds);
  while (!condition()) {
    if (Clock::now() > end) return false;
    progress();
  }
  return true;
}

bool Board::wait(uint32_t flag, uint64_t value, double seconds) const {
  const auto end = after(seconds);
  while (flags[flag].load() < value) {
    if (Clock::now() > end) return false;
    ::sched_yield();
  }
  return true;
}

void publish(Rank& rank, Board& board) {
  const std::string mine = rank.address();
  std::memcpy(board.addresses[rank.rank()], mine.data(), mine.size());
  board.address_bytes[rank.rank()] = static_cast<uint32_t>(mine.size());
  board.pids[rank.rank()].store(::getpid());
  board.arrived.fetch_add(1);
}

std::string exchange(Rank& rank, Board& board, const Options& options) {
  if (board.pids[rank.rank()].load() == 0) publish(rank, board);
  const auto end = after(20);
  while (board.arrived.load() < options.ranks) {
    if (Clock::now() > end) return "the others do not come";
    ::sched_yield();
  }
  for (uint32_t peer = 0; peer < options.ranks; ++peer) {
    rank.introduce(peer, std::string(board.addresses[peer], board.address_bytes[peer]));
  }
  return "";
}

std::string meet(Rank& rank, Board& board, const Options& options) {
  if (std::string failure = exchange(rank, board, options); !failure.empty()) return failure;
  tutti_status_t status = TUTTI_TP_AGAIN;
  if (!rank.until([&] { return (status = rank.start()) != TUTTI_TP_AGAIN; })) return "start does not end";
  return status == TUTTI_OK ? "" : "start: " + std::to_string(status);
}

std::vector<std::string> run_processes(const Options& options, const Body& body, bool meet_first) {
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap");
  auto* board = static_cast<Board*>(memory);
  std::vector<pid_t> children;
  for (uint32_t number = 0; number < options.ranks; ++number) {
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("fork");
    if (child > 0) {
      children.push_back(child);
      continue;
    }
    ::alarm(60);
    std::string failure;
    try {
      Rank rank(number, options);
      if (meet_first) failure = meet(rank, *board, options);
      if (failure.empty()) failure = body(rank, *board);
    } catch (const std::exception& error) {
      failure = error.what();
    }
    std::snprintf(board->failures[number], sizeof board->failures[number], "%s", failure.c_str());
    // Without the handlers of the test program.
    ::_exit(failure.empty() ? 0 : 1);
  }
  std::vector<std::string> results;
  for (uint32_t number = 0; number < options.ranks; ++number) {
    int status = 0;
    ::waitpid(children[number], &status, 0);
    std::string result = board->failures[number];
    if (WIFSIGNALED(status)) result = "signal " + std::to_string(WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && result.empty()) result = "exit " + std::to_string(WEXITSTATUS(status));
    results.push_back(result);
  }
  ::munmap(memory, sizeof(Board));
  return results;
}

std::string pattern(size_t bytes, uint32_t seed) {
  std::string data(bytes, '\0');
  uint32_t state = seed * 2654435761u + 1;
  for (char& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<char>(state >> 24);
  }
  return data;
}

size_t open_descriptors() {
  DIR* directory = ::opendir("/proc/self/fd");
  size_t count = 0;
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count - 3;  // ".", ".." and the directory itself
}

}  // namespace tutti::test
