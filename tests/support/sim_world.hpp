// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.hpp"
#include "sim/world.hpp"

namespace tutti {

/// The virtual time of a simulated world, for everything that asks a Clock.
class SimClock final : public Clock {
 public:
  explicit SimClock(const sim::World& world) : world_(world) {}
  uint64_t now_ns() const noexcept override { return world_.now_ns(); }

 private:
  const sim::World& world_;
};

/// The world's seeded chance.
class SimRandom final : public Random {
 public:
  explicit SimRandom(sim::World& world) : world_(world) {}
  void fill(std::span<std::byte> bytes) override { world_.random(bytes.data(), bytes.size()); }

 private:
  sim::World& world_;
};

}  // namespace tutti
