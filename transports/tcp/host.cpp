// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "host.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "wire.hpp"

namespace tutti::tcp {

void Host::log(int level, const char* format, ...) const {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  host_->log(host_->host, level, line);
}

std::uint64_t Host::random_u64() const {
  std::uint64_t value = 0;
  random(&value, sizeof value);
  return value;
}

std::uint8_t* Host::allocate(std::size_t bytes) {
  void* memory = host_->alloc(host_->host, bytes, 64);
  if (memory == nullptr) throw std::bad_alloc();
  memory_bytes_ += bytes;
  return static_cast<std::uint8_t*>(memory);
}

void Host::release(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  memory_bytes_ -= bytes;
  host_->free(host_->host, memory);
}

bool Host::number(const char* name, std::uint64_t low, std::uint64_t high, std::uint64_t* value) const {
  const char* text = host_->setting(host_->host, name);
  if (text == nullptr || *text == '\0') return true;
  char* end = nullptr;
  errno = 0;
  const unsigned long long parsed = std::strtoull(text, &end, 10);
  if (errno != 0 || *end != '\0' || *text == '-' || parsed < low || parsed > high) {
    log(TUTTI_LOG_INFO, "tcp: setting %s is '%s': not a number from %llu to %llu", name, text,
        static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
    return false;
  }
  *value = parsed;
  return true;
}

bool Host::ports(Settings* settings) const {
  const char* text = host_->setting(host_->host, "port_range");
  if (text == nullptr || *text == '\0') return true;
  unsigned first = 0;
  unsigned last = 0;
  int used = 0;
  if (std::sscanf(text, "%u-%u%n", &first, &last, &used) != 2 || text[used] != '\0' || first == 0 || last < first ||
      last > 65535) {
    log(TUTTI_LOG_INFO, "tcp: setting port_range is '%s': expected first-last, from 1 to 65535", text);
    return false;
  }
  settings->first_port = static_cast<std::uint16_t>(first);
  settings->last_port = static_cast<std::uint16_t>(last);
  return true;
}

bool Host::read_settings(Settings* settings) const {
  constexpr std::uint64_t kLongest = std::uint64_t{1} << 60;
  return number("tcp_window_bytes", kMinWindowBytes, kMaxWindowBytes, &settings->window_bytes) &&
         number("tcp_socket_buffer_bytes", 0, 1u << 30, &settings->socket_buffer_bytes) &&
         number("connect_timeout", 1, kLongest, &settings->connect_timeout_ns) &&
         number("heartbeat_timeout", 0, kLongest, &settings->heartbeat_timeout_ns) && ports(settings);
}

}  // namespace tutti::tcp
