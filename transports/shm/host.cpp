// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "host.hpp"

#include <cerrno>
#include <cstdlib>
#include <new>

namespace tutti::shm {

void Host::log(int level, const std::string& line) const {
  if (table_->log != nullptr) table_->log(table_->host, level, ("shm: " + line).c_str());
}

Mac Host::mac(const std::vector<uint8_t>& message) const {
  Mac result{};
  table_->mac(table_->host, message.data(), message.size(), result.data());
  return result;
}

Outcome Host::number(const char* name, uint64_t fallback, uint64_t& value) const {
  value = fallback;
  const char* text = table_->setting != nullptr ? table_->setting(table_->host, name) : nullptr;
  if (text == nullptr || *text == '\0') return Outcome::success();
  char* end = nullptr;
  errno = 0;
  const unsigned long long parsed = std::strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || *text == '-') {
    return Outcome::failure(TUTTI_ERR_CONFIG, std::string{"setting "} + name + " = '" + text + "' is not a number");
  }
  value = parsed;
  return Outcome::success();
}

void* Host::do_allocate(size_t bytes, size_t alignment) {
  void* memory = table_->alloc(table_->host, bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc{};
  allocated_bytes_ += bytes;
  return memory;
}

void Host::do_deallocate(void* memory, size_t bytes, size_t) {
  allocated_bytes_ -= bytes;
  table_->free(table_->host, memory);
}

}  // namespace tutti::shm
