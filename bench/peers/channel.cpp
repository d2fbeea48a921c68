// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "channel.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace peers {
namespace {

constexpr size_t board_bytes = 4096;
constexpr int polls_before_yield = 500;  // about a microsecond: ranks on cores of their own meet without a system call

int open_or_throw(const std::string& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error(path + ": " + std::strerror(errno));
  return fd;
}

}  // namespace

Channel::Channel(std::string folder, int rank, int ranks) : ranks_(static_cast<uint64_t>(ranks)) {
  const int board = open_or_throw(folder + "/board", O_RDWR);
  void* const memory = ::mmap(nullptr, board_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board, 0);
  ::close(board);
  if (memory == MAP_FAILED) throw std::runtime_error(folder + "/board: " + std::strerror(errno));
  board_ = static_cast<Board*>(memory);
  answers_ = open_or_throw(folder + "/answers", O_WRONLY);
  commands_ = open_or_throw(folder + "/rank-" + std::to_string(rank), O_RDONLY);
}

Channel::~Channel() {
  ::close(commands_);
  ::close(answers_);
  ::munmap(board_, board_bytes);
}

std::optional<std::string> Channel::command() {
  size_t end = unread_.find('\n');
  while (end == std::string::npos) {
    char bytes[512];
    const ssize_t got = ::read(commands_, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    unread_.append(bytes, static_cast<size_t>(got));
    end = unread_.find('\n');
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

void Channel::answer(const std::string& line) {
  const std::string whole = line.substr(0, 4000) + '\n';
  if (::write(answers_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    throw std::runtime_error(std::string("answer: ") + std::strerror(errno));
  }
}

void Channel::meet() {
  const uint64_t all = ++meetings_ * ranks_;
  board_->arrived.fetch_add(1);
  for (int polls = 0; board_->arrived.load(std::memory_order_acquire) < all; ++polls) {
    if (polls >= polls_before_yield) ::sched_yield();
  }
}

std::string channel_folder() {
  const char* const folder = std::getenv("PEERS_FOLDER");
  if (folder == nullptr) throw std::runtime_error("PEERS_FOLDER is not set: tools/compare-peers starts this program");
  return folder;
}

std::vector<int> bound_cpus() {
  std::vector<int> cpus;
  const char* const text = std::getenv("PEERS_CPUS");
  std::istringstream words(text == nullptr ? "" : text);
  for (std::string word; std::getline(words, word, ',');) cpus.push_back(std::stoi(word));
  return cpus;
}

void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::runtime_error("binding to CPU " + std::to_string(cpu) + ": " + std::strerror(errno));
  }
}

}  // namespace peers
