// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>

#include "harness.hpp"

namespace tutti::conformance {
namespace {

Host& self(void* host) { return *static_cast<Host*>(host); }

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

}  // namespace

void Host::called_back(const char* what) {
  if (!in_call) faults.push_back(std::string(what) + " outside of a call on the endpoint");
}

std::string Host::last_log() {
  const std::lock_guard lock(log_mutex_);
  return last_log_;
}

Host::Host(World* world) : world_(world) {
  table.struct_size = sizeof table;
  table.abi_version = TUTTI_TP_ABI_VERSION;
  table.host = this;
  table.log = [](void* host, int, const char* line) {
    const std::lock_guard lock(self(host).log_mutex_);
    self(host).last_log_ = line;
  };
  table.alloc = [](void* host, size_t bytes, size_t alignment) -> void* {
    Host& me = self(host);
    me.called_back("alloc");
    void* memory = nullptr;
    if (::posix_memalign(&memory, std::max(alignment, sizeof(void*)), bytes) != 0) return nullptr;
    std::memset(memory, 0xa5, bytes);  // fresh memory holds nothing useful
    ++me.allocations;
    me.blocks_[memory] = bytes;
    return memory;
  };
  table.free = [](void* host, void* memory) {
    if (memory == nullptr) return;
    Host& me = self(host);
    me.called_back("free");
    if (me.blocks_.erase(memory) == 1) {
      std::free(memory);
    } else {
      me.faults.push_back("freed what it had not allocated");
    }
  };
  table.clock_ns = [](void* host) {
    if (World* world_of_host = self(host).world_) return world_of_host->now_ns();
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  };
  table.random = [](void*, void* bytes, size_t count) {
    static thread_local std::random_device device;
    for (size_t i = 0; i < count; ++i) static_cast<uint8_t*>(bytes)[i] = static_cast<uint8_t>(device());
  };
  table.mac = toy_mac;
  table.setting = [](void* host, const char* name) -> const char* {
    const auto entry = self(host).settings.find(name);
    return entry == self(host).settings.end() ? nullptr : entry->second.c_str();
  };
  table.peer_gone = [](void* host, uint32_t peer, int cause, const char* text) {
    self(host).called_back("peer_gone");
    self(host).gone.push_back({peer, cause, text});
  };
  table.notified = [](void* host, uint32_t peer, const void* notice, size_t bytes) {
    self(host).called_back("notified");
    self(host).notices.emplace_back(peer, std::string(static_cast<const char*>(notice), bytes));
  };
}

}  // namespace tutti::conformance
