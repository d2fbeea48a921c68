// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/store.hpp"

namespace tutti {
namespace {

Status check(std::string_view key, size_t value_bytes) {
  if (key.empty() || key.size() > Store::kMostKeyBytes) {
    return error(TUTTI_ERR_ARGUMENT, "a key of {} bytes; keys have 1 to {}", key.size(), Store::kMostKeyBytes);
  }
  if (value_bytes > Store::kMostValueBytes) {
    return error(TUTTI_ERR_ARGUMENT, "a value of {} bytes; at most {} fit into the store", value_bytes, Store::kMostValueBytes);
  }
  return Status();
}

}  // namespace

std::string RankSet::text() const {
  std::string text;
  for (size_t i = 0; i < first.size(); ++i) {
    const bool last = i + 1 == first.size() && first.size() == count;
    text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", first[i]);
  }
  if (count > first.size()) text += fmt::format(" and {} more", count - first.size());
  return text;
}

Status MemoryStore::set(std::string_view key, std::string_view value) {
  TUTTI_TRY(check(key, value.size()));
  table_.insert_or_assign(std::string(key), std::string(value));
  return Status();
}

Result<bool> MemoryStore::get(std::string_view key, std::string* value) {
  TUTTI_TRY(check(key, 0));
  const auto found = table_.find(key);
  if (found == table_.end()) return false;
  *value = found->second;
  return true;
}

Result<bool> MemoryStore::claim(std::string_view key, std::string_view value, std::string* holder) {
  TUTTI_TRY(check(key, value.size()));
  *holder = table_.try_emplace(std::string(key), value).first->second;
  return true;
}

Result<bool> MemoryStore::find_absent(std::string_view prefix, uint32_t count, RankSet* absent) {
  TUTTI_TRY(check(prefix, 0));
  *absent = RankSet();
  for (uint32_t i = 0; i < count; ++i) {
    if (table_.find(fmt::format("{}{}", prefix, i)) != table_.end()) continue;
    if (absent->count++ < RankSet::kNamed) absent->first.push_back(static_cast<int>(i));
  }
  return true;
}

Status MemoryStore::erase(std::string_view prefix) {
  TUTTI_TRY(check(prefix, 0));
  auto at = table_.lower_bound(prefix);
  while (at != table_.end() && at->first.compare(0, prefix.size(), prefix) == 0) at = table_.erase(at);
  return Status();
}

}  // namespace tutti
