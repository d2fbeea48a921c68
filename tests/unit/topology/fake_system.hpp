// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tutti::test {

/// A folder like /sys (and /proc, in it) of a machine that is not there. Gone with the object.
class FakeSystem {
 public:
  FakeSystem() {
    static int count = 0;
    root_ = std::filesystem::temp_directory_path() / fmt::format("tutti-topology-{}-{}", getpid(), count++);
    std::filesystem::create_directories(root_);
  }
  ~FakeSystem() { std::filesystem::remove_all(root_); }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  std::string path() const { return root_.string(); }
  std::string put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
    return (root_ / file).string();
  }
  void cpu(int number, const std::string& file, const std::string& text) {
    put(fmt::format("devices/system/cpu/cpu{}/{}", number, file), text + "\n");
  }

 private:
  std::filesystem::path root_;
};

/// Two packages of two NUMA nodes of two cores of two hardware threads; the second threads are CPUs 8 to 15. An L3 for each NUMA
/// node, an L2 for each core. A GPU near node 3, a network device near node 0, and a disk.
inline void fill_two_packages(FakeSystem& system) {
  const auto pair = [](int first, int count) { return fmt::format("{}-{},{}-{}", first, first + count - 1, first + 8, first + count + 7); };
  system.put("devices/system/cpu/online", "0-15\n");
  for (int cpu = 0; cpu < 16; ++cpu) {
    const int core = cpu % 8;
    system.cpu(cpu, "topology/physical_package_id", fmt::format("{}", core / 4));
    system.cpu(cpu, "topology/package_cpus_list", pair(core / 4 * 4, 4));
    system.cpu(cpu, "topology/thread_siblings_list", fmt::format("{},{}", core, core + 8));
    system.cpu(cpu, fmt::format("node{}/cpulist", core / 2), pair(core / 2 * 2, 2));
    const auto cache = [&](int index, const char* level, const char* type, const char* size, const std::string& cpus) {
      const std::string folder = fmt::format("cache/index{}/", index);
      system.cpu(cpu, folder + "level", level);
      system.cpu(cpu, folder + "type", type);
      system.cpu(cpu, folder + "size", size);
      system.cpu(cpu, folder + "shared_cpu_list", cpus);
    };
    cache(0, "1", "Data", "32K", fmt::format("{},{}", core, core + 8));
    cache(1, "2", "Unified", "512K", fmt::format("{},{}", core, core + 8));
    cache(2, "3", "Unified", "32768K", pair(core / 2 * 2, 2));
  }
  system.put("devices/system/node/online", "0-3\n");
  for (int node = 0; node < 4; ++node) {
    const std::string folder = fmt::format("devices/system/node/node{}/", node);
    system.put(folder + "cpulist", pair(node * 2, 2) + "\n");
    system.put(folder + "meminfo", fmt::format("\nNode {0} MemTotal:       1048576 kB\nNode {0} MemFree:  1 kB\n", node));
  }
  const auto pci = [&](const std::string& address, const char* type, int numa) {
    const std::string folder = "bus/pci/devices/" + address + "/";
    system.put(folder + "class", std::string(type) + "\n");
    system.put(folder + "vendor", "0x10de\n");
    system.put(folder + "device", "0x2335\n");
    system.put(folder + "numa_node", fmt::format("{}\n", numa));
    return folder;
  };
  system.put(pci("0000:81:00.0", "0x030200", 3) + "drm/card1/dev", "");
  const std::string network = pci("0000:01:00.0", "0x020700", 0);
  system.put(network + "net/ib0/mtu", "");
  system.put(network + "infiniband/mlx5_0/dev", "");
  pci("0000:02:00.0", "0x010802", 0);
  system.put("meminfo", "MemTotal:        4194304 kB\nMemFree: 1 kB\n");
  system.put("cpuinfo", "processor : 0\nmodel name\t: Some Processor\nmodel name\t: Another\n");
}

}  // namespace tutti::test
