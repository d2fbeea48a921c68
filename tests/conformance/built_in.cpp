// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "built_in.hpp"

#ifdef WITH_FAULT
#include <chrono>

#include "fault/plan.hpp"
#endif
#ifdef WITH_SIM
#include "sim/world.hpp"
#endif
#ifdef WITH_SHM
extern "C" const tutti_tp_table_t* tutti_shm_transport_entry(uint32_t host_abi_version);
#endif
#ifdef WITH_TCP
extern "C" const tutti_tp_table_t* tutti_tcp_transport_entry(uint32_t host_abi_version);
#endif

namespace tutti::conformance {
namespace {

#ifdef WITH_SIM
class SimWorld final : public World {
 public:
  explicit SimWorld(uint32_t ranks) : world_(next_seed(), options(ranks)) {}
  void* pointer() override { return &world_; }
  /// Time passes even when nothing is under way: somebody may wait for it.
  void step() override {
    if (!world_.step()) world_.call_at(world_.now_ns() + 10'000, [] {});
  }
  uint64_t now_ns() override { return world_.now_ns(); }

 private:
  static uint64_t next_seed() {
    static uint64_t seed = 0;
    return ++seed;
  }
  static sim::Options options(uint32_t ranks) {
    sim::Options options;
    options.size = ranks;
    options.again_percent = 10;
    return options;
  }
  sim::World world_;
};
#endif

#ifdef WITH_FAULT
class FaultyWorld final : public World {
 public:
  FaultyWorld(const tutti_tp_table_t* table, std::unique_ptr<World> beneath)
      : beneath_(std::move(beneath)),
        plan_(1, table, beneath_ == nullptr ? nullptr : beneath_->pointer(), rules()) {}
  static fault::Rules rules() {
    fault::Rules rules;
    rules.again_percent = 15;
    rules.delay_percent = 15;
    rules.max_delay_ns = 50'000;
    return rules;
  }
  void* pointer() override { return &plan_; }
  void step() override {
    if (beneath_ != nullptr) beneath_->step();
  }
  uint64_t now_ns() override {
    if (beneath_ != nullptr) return beneath_->now_ns();
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
  }

 private:
  std::unique_ptr<World> beneath_;
  fault::Plan plan_;
};
#endif

}  // namespace

std::vector<tutti_transport_entry_t> built_in_entries() {
  return {
#ifdef WITH_SHM
      tutti_shm_transport_entry,
#endif
#ifdef WITH_TCP
      tutti_tcp_transport_entry,
#endif
#ifdef WITH_SIM
      tutti_sim_transport_entry,
#endif
  };
}

std::function<std::unique_ptr<World>(uint32_t)> world_of([[maybe_unused]] const tutti_tp_table_t* table) {
#ifdef WITH_SIM
  if (table == tutti_sim_transport_entry(TUTTI_TP_ABI_VERSION)) {
    return [](uint32_t ranks) { return std::make_unique<SimWorld>(ranks); };
  }
#endif
  return {};
}

Subject with_faults([[maybe_unused]] const Subject& plain) {
#ifdef WITH_FAULT
  // Every plan's table has the same functions: this one gives them their name, those of the jobs the rest.
  static const fault::Plan all(1, plain.table, nullptr, {});
  return {all.table(), [plain](uint32_t ranks) {
            return std::make_unique<FaultyWorld>(plain.table, plain.make_world ? plain.make_world(ranks) : nullptr);
          }};
#else
  return {};
#endif
}

}  // namespace tutti::conformance
