// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include "board.hpp"

namespace tutti {
namespace {

class StoreBoard final : public Board {
 public:
  StoreBoard(const tutti_store_t& store, Poller& sleeper, const Clock& clock)
      : store_(store),
        sleeper_(sleeper),
        clock_(clock),
        key_(std::string(store.prefix == nullptr ? "" : store.prefix) + "tutti/invitation") {}

  Result<bool> post(std::string_view text) override {
    const int failed = store_.set(store_.user, key_.c_str(), text.data(), text.size());
    if (failed != 0) return error(TUTTI_ERR_SYSTEM, "the caller's store does not take key '{}': set returned {}", key_, failed);
    return true;
  }

  Result<bool> look(std::string* text) override {
    std::array<char, 4096> buffer{};
    size_t bytes = 0;
    const int outcome = store_.get(store_.user, key_.c_str(), buffer.data(), buffer.size(), &bytes);
    if (outcome == 1) return false;
    if (outcome != 0 || bytes > buffer.size()) {
      return error(TUTTI_ERR_SYSTEM, "the caller's store does not give key '{}': get returned {}, {} bytes", key_, outcome,
                   bytes);
    }
    text->assign(buffer.data(), bytes);
    return true;
  }

  void wait(Deadline deadline) override {
    const int timeout_ms = deadline.poll_ms(clock_);
    if (store_.wait != nullptr && timeout_ms > 0 && store_.wait(store_.user, key_.c_str(), timeout_ms) != 0) return;
    // The key is there, perhaps an old one: then wait() of the caller's returns at once for ever, and we must not spin.
    std::vector<uint64_t> ready;
    sleeper_.wait(Deadline{std::min(deadline.at_ns, Deadline::after(clock_, 2'000'000).at_ns)}, &ready);
  }
  std::string place() const override { return fmt::format("key '{}' of the caller's store", key_); }

 private:
  const tutti_store_t& store_;
  Poller& sleeper_;
  const Clock& clock_;
  std::string key_;
};

}  // namespace

std::unique_ptr<Board> make_store_board(const tutti_store_t& store, Poller& sleeper, const Clock& clock) {
  return std::make_unique<StoreBoard>(store, sleeper, clock);
}

}  // namespace tutti
