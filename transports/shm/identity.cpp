// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "identity.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fd.hpp"
#include "layout.hpp"

namespace tutti::shm {
namespace {

void append(std::vector<uint8_t>& bytes, const void* more, size_t count) {
  const auto* from = static_cast<const uint8_t*>(more);
  for (size_t i = 0; i < count; ++i) bytes.push_back(from[i]);
}

void append_number(std::vector<uint8_t>& message, uint64_t number) { append(message, &number, sizeof number); }

std::vector<uint8_t> labelled(const char* label, const Token& job) {
  std::vector<uint8_t> message(16, 0);
  std::memcpy(message.data(), label, std::min<size_t>(16, std::strlen(label)));
  append(message, job.data(), job.size());
  return message;
}

Token token_of(const Host& host, const std::vector<uint8_t>& message) {
  const Mac mac = host.mac(message);
  Token token;
  std::copy_n(mac.begin(), token.size(), token.begin());
  return token;
}

}  // namespace

Token make_node_key(const Host& host, const Token& job, const std::string& host_identity) {
  std::vector<uint8_t> message = labelled("tutti shm node", job);
  append(message, host_identity.data(), host_identity.size());
  char boot_id[64] = {};
  if (const Fd file{::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)}) {
    [[maybe_unused]] const ssize_t got = ::read(file.get(), boot_id, sizeof boot_id);
  }
  append(message, boot_id, sizeof boot_id);
  // Abstract sockets live in a network namespace; pids and users in theirs.
  for (const char* space : {"/proc/self/ns/net", "/proc/self/ns/pid", "/proc/self/ns/user"}) {
    struct stat info {};
    const bool known = ::stat(space, &info) == 0;
    append_number(message, known ? info.st_ino : 0);
  }
  append_number(message, ::geteuid());
  append_number(message, kLayoutVersion);
  append_number(message, sizeof(void*));
  return token_of(host, message);
}

Token make_process_token(const Host& host, const Token& job) {
  std::vector<uint8_t> message = labelled("tutti process", job);
  // Sixteen random bytes that the kernel gives every program it starts; a forked child shares them but not the pid.
  const auto* random = reinterpret_cast<const uint8_t*>(::getauxval(AT_RANDOM));
  if (random != nullptr) append(message, random, 16);
  append_number(message, static_cast<uint64_t>(::getpid()));
  return token_of(host, message);
}

Roster Roster::make(const std::map<uint32_t, Address>& addresses) {
  Roster roster;
  std::map<Token, uint32_t> processes;
  for (const auto& [rank, address] : addresses) {
    const auto index = static_cast<uint32_t>(roster.ranks.size());
    const auto [entry, is_new] = processes.try_emplace(address.process, static_cast<uint32_t>(roster.processes.size()));
    if (is_new) roster.processes.emplace_back();
    roster.ranks.push_back(rank);
    roster.process_of.push_back(entry->second);
    roster.processes[entry->second].push_back(index);
  }
  return roster;
}

uint32_t Roster::index_of(uint32_t rank) const {
  const auto found = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return found != ranks.end() && *found == rank ? static_cast<uint32_t>(found - ranks.begin()) : UINT32_MAX;
}

}  // namespace tutti::shm
