// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tutti {

/// Time as everything in Tutti sees it: monotone nanoseconds. Real in production, virtual under `sim`.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual uint64_t now_ns() const noexcept = 0;
};

/// Unpredictable bytes in production (secrets, nonces, ids), seeded ones under `sim`.
class Random {
 public:
  virtual ~Random() = default;
  virtual void fill(std::span<std::byte> bytes) = 0;
};

/// CLOCK_MONOTONIC.
class SystemClock final : public Clock {
 public:
  uint64_t now_ns() const noexcept override;
};

/// getrandom(2), falling back on /dev/urandom; aborts the process only if neither exists.
class SystemRandom final : public Random {
 public:
  void fill(std::span<std::byte> bytes) override;
};

/// Point in a Clock's time after which a wait gives up. kNever never comes.
struct Deadline {
  uint64_t at_ns = kNever;
  static constexpr uint64_t kNever = UINT64_MAX;
  static Deadline after(const Clock& clock, uint64_t duration_ns) {
    const uint64_t now = clock.now_ns();
    return {duration_ns > kNever - now ? kNever : now + duration_ns};
  }
  bool passed(const Clock& clock) const noexcept { return at_ns != kNever && clock.now_ns() >= at_ns; }
  /// Milliseconds for poll(2)/epoll_wait(2): rounded up, -1 for never, 0 when passed.
  int poll_ms(const Clock& clock) const noexcept {
    if (at_ns == kNever) return -1;
    const uint64_t now = clock.now_ns();
    if (now >= at_ns) return 0;
    const uint64_t ms = (at_ns - now + 999'999) / 1'000'000;
    return ms > 1'000'000 ? 1'000'000 : static_cast<int>(ms);
  }
};

}  // namespace tutti
