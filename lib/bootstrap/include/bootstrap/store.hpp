// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/status.hpp"

namespace tutti {

/// The first ranks of a set, and how many there are.
struct RankSet {
  uint32_t count = 0;
  std::vector<int> first;  // ascending, at most kNamed
  static constexpr size_t kNamed = 32;
  std::string text() const;  // "2, 5, 7 and 31 more"
};

/// The key-value store in which ranks find each other. Calls never block but wait(). Asking is idempotent: repeat the same
/// call until it says true; the store remembers the question, so that repeating costs nothing.
class Store {
 public:
  static constexpr size_t kMostKeyBytes = 256;
  static constexpr size_t kMostValueBytes = size_t{64} << 20;

  virtual ~Store() = default;
  virtual Status set(std::string_view key, std::string_view value) = 0;
  /// true: the key is there and *value is its value. false: not (known) yet.
  virtual Result<bool> get(std::string_view key, std::string* value) = 0;
  /// Sets the key unless it is there. true: *holder is the value that the key has now, own or earlier.
  virtual Result<bool> claim(std::string_view key, std::string_view value, std::string* holder) = 0;
  /// Of prefix0 ... prefix<count-1>, which are not set? true: *absent is the answer as of some time after the first asking;
  /// the next call asks anew.
  virtual Result<bool> find_absent(std::string_view prefix, uint32_t count, RankSet* absent) = 0;
  /// Removes all keys that start with prefix.
  virtual Status erase(std::string_view prefix) = 0;
  /// Everything set, erased or claimed so far has reached the store.
  virtual Result<bool> flushed() = 0;
  /// Returns when something may have changed, or at the deadline.
  virtual Status wait(Deadline deadline) = 0;
  /// Readable when a call may give something new; -1: there is none, call again after a millisecond or so.
  virtual int fd() const noexcept = 0;
  /// Point in time at which the store wants another call even if fd() is silent (a retry).
  virtual uint64_t next_ns() const noexcept { return Deadline::kNever; }
  /// Rises when the client finds itself connected to another server than before: what was set is gone, start over.
  virtual uint32_t incarnation() const noexcept { return 0; }
  /// Why nothing has come yet, for a person ("connecting to 10.0.0.5:4711: connection refused"); "" when all is well.
  virtual std::string trouble() const { return {}; }
};

/// A dictionary shared by stores of one thread, for tests and simulation.
class MemoryStore final : public Store {
 public:
  using Table = std::map<std::string, std::string, std::less<>>;
  explicit MemoryStore(Table& table) : table_(table) {}
  Status set(std::string_view key, std::string_view value) override;
  Result<bool> get(std::string_view key, std::string* value) override;
  Result<bool> claim(std::string_view key, std::string_view value, std::string* holder) override;
  Result<bool> find_absent(std::string_view prefix, uint32_t count, RankSet* absent) override;
  Status erase(std::string_view prefix) override;
  Result<bool> flushed() override { return true; }
  Status wait(Deadline) override { return {}; }
  int fd() const noexcept override { return -1; }

 private:
  Table& table_;
};

}  // namespace tutti
