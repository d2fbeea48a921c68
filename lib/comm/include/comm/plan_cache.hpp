// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>

#include "engine/plan.hpp"
#include "schedule/schedule.hpp"

namespace tutti {

/// Plans of one communicator, the least recently used one dropped first. Plans hold no byte counts: one serves all
/// calls for which the same algorithm and parameters are chosen.
class PlanCache {
 public:
  struct Key {
    Collective collective;
    bool in_place;
    uint16_t choice;  // SelectionRow::number
    uint32_t root;
    bool operator==(const Key&) const = default;
  };

  explicit PlanCache(size_t capacity) : capacity_(capacity < 1 ? 1 : capacity) {}

  /// nullptr: not there. The plan may also be kept by its users. Never allocates.
  const std::shared_ptr<Plan>* find(const Key& key) noexcept {
    if (!entries_.empty() && entries_.front().key == key) return &entries_.front().plan;
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &entries_.front().plan;
  }
  const std::shared_ptr<Plan>* insert(const Key& key, std::shared_ptr<Plan> plan) {
    std::list<Entry> made;
    made.push_front({key, std::move(plan)});
    index_.insert_or_assign(key, made.begin());
    entries_.splice(entries_.begin(), made);  // what is in the one is in the other
    if (entries_.size() > capacity_) {
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return &entries_.front().plan;
  }
  size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    Key key;
    std::shared_ptr<Plan> plan;
  };
  struct Hash {
    size_t operator()(const Key& key) const noexcept {
      const uint64_t packed = (uint64_t{key.root} << 32) | (uint64_t{key.choice} << 16) |
                              (uint64_t{static_cast<uint8_t>(key.collective)} << 1) | uint64_t{key.in_place};
      return std::hash<uint64_t>()(packed);
    }
  };
  size_t capacity_;
  std::list<Entry> entries_;
  std::unordered_map<Key, std::list<Entry>::iterator, Hash> index_;
};

}  // namespace tutti
