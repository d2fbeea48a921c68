// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "built_in.hpp"

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
  void step() override { world_.step(); }
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

}  // namespace tutti::conformance
