// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <utility>

#include "address.hpp"

namespace tutti::test {
namespace {

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

}  // namespace

HostDouble::HostDouble() {
  table.struct_size = sizeof table;
  table.abi_version = TUTTI_TP_ABI_VERSION;
  table.host = this;
  table.log = [](void* host, int, const char* line) { self(host).log.emplace_back(line); };
  table.alloc = [](void* host, size_t bytes, size_t alignment) -> void* {
    void* memory = nullptr;
    if (::posix_memalign(&memory, alignment, bytes) != 0) return nullptr;
    HostDouble& me = self(host);
    ++me.allocations;
    me.live_bytes += bytes;
    me.peak_bytes = std::max(me.peak_bytes, me.live_bytes);
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
  table.clock_ns = [](void*) {
    return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
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
    self(host).gone.push_back({peer, cause, text});
  };
  table.notified = [](void* host, uint32_t peer, const void* notice, size_t bytes) {
    self(host).notices.emplace_back(peer, std::string(static_cast<const char*>(notice), bytes));
  };
}

Job::Options Job::with(const std::string& setting, const std::string& value) {
  Options options;
  options.settings[setting] = value;
  return options;
}

Job::Job(Options options) {
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    hosts_.push_back(std::make_unique<HostDouble>());
    hosts_.back()->settings = options.settings;
    tutti_tp_open_t arguments{};
    arguments.struct_size = sizeof arguments;
    arguments.rank = rank;
    arguments.size = options.ranks;
    arguments.job_id[0] = options.job_id;
    arguments.host_identity = "here";
    arguments.bind_addresses = options.bind.c_str();
    arguments.host = &hosts_.back()->table;
    tutti_tp_endpoint_t* endpoint = nullptr;
    if (tp().open(&arguments, &endpoint) != TUTTI_OK) throw std::runtime_error("open: " + hosts_.back()->log.back());
    endpoints_.push_back(endpoint);
  }
  if (!options.introduce) return;
  for (uint32_t rank = 0; rank < options.ranks; ++rank) {
    for (uint32_t peer = 0; peer < options.ranks; ++peer) introduce(rank, peer, address(peer));
    while (tp().start(endpoints_[rank]) == TUTTI_TP_AGAIN) progress();
  }
}

Job::~Job() {
  for (uint32_t rank = 0; rank < endpoints_.size(); ++rank) close(rank);
}

std::string Job::address(uint32_t rank) {
  char buffer[TUTTI_TP_ADDRESS_MAX_BYTES];
  size_t bytes = 0;
  if (tp().address(endpoints_[rank], buffer, sizeof buffer, &bytes) != TUTTI_OK) throw std::runtime_error("address");
  return std::string(buffer, bytes);
}

uint16_t Job::port(uint32_t rank) {
  tcp::Contact contact;
  const std::string blob = address(rank);
  if (!tcp::decode_contact(blob.data(), blob.size(), &contact)) throw std::runtime_error("contact");
  return contact.addresses.at(0).port;
}

void Job::introduce(uint32_t rank, uint32_t peer, const std::string& address) {
  if (tp().set_peer(endpoints_[rank], peer, address.data(), address.size()) != TUTTI_OK) {
    throw std::runtime_error("set_peer");
  }
}

void Job::close(uint32_t rank) {
  if (endpoints_[rank] != nullptr) tp().close(std::exchange(endpoints_[rank], nullptr));
}

void Job::progress() {
  for (size_t rank = 0; rank < endpoints_.size(); ++rank) {
    if (endpoints_[rank] != nullptr && static_cast<int>(rank) != ignored_) tp().progress(endpoints_[rank]);
  }
}

bool Job::until(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    progress();
  }
  return true;
}

bool Job::connected(uint32_t a, uint32_t b) {
  return until([&] { return tp().connect(endpoints_[a], b) == TUTTI_OK && tp().connect(endpoints_[b], a) == TUTTI_OK; });
}

uint64_t Job::counter(uint32_t rank, const std::string& name) {
  const char* found = nullptr;
  uint64_t value = 0;
  for (uint32_t i = 0; tp().counter(endpoints_[rank], i, &found, &value) == TUTTI_OK; ++i) {
    if (name == found) return value;
  }
  throw std::runtime_error("no counter " + name);
}

tutti_tp_channel_t* Job::channel(uint32_t rank, uint32_t peer, uint64_t id, int direction) {
  tutti_tp_channel_t* channel = nullptr;
  if (tp().channel_open(endpoints_[rank], peer, id, direction, 0, &channel) != TUTTI_OK) {
    throw std::runtime_error("channel_open");
  }
  return channel;
}

Pipe::Pipe(Job& job, uint32_t from, uint32_t to, uint64_t id)
    : sender(job.channel(from, to, id, TUTTI_TP_SEND)), receiver(job.channel(to, from, id, TUTTI_TP_RECV)) {}

std::vector<uint8_t> pattern(size_t bytes, uint32_t seed) {
  std::vector<uint8_t> data(bytes);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return data;
}

}  // namespace tutti::test
