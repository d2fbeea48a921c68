// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// How far apart are two CPUs now? In virtual machines CPUs move. Answers each command on its channel with the nanoseconds of a
// cache line's round trip between the first two of PEERS_CPUS. Sleeps between commands.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "channel.hpp"

namespace {

constexpr uint32_t batches = 8;
constexpr uint32_t trips_in_batch = 100;

struct alignas(128) Line {
  std::atomic<uint32_t> value{0};
};

void wait_for(const Line& line, uint32_t value) {
  while (line.value.load(std::memory_order_acquire) != value) {
  }
}

// The best batch: an interruption lengthens some.
double round_trip_ns(int other_cpu) {
  Line there;
  Line back;
  std::thread other([&] {
    peers::bind_to(other_cpu);
    for (uint32_t trip = 1; trip <= (batches + 1) * trips_in_batch; ++trip) {
      wait_for(there, trip);
      back.value.store(trip, std::memory_order_release);
    }
  });
  double best_ns = 1e9;
  uint32_t trip = 0;
  for (uint32_t batch = 0; batch <= batches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (uint32_t count = 0; count < trips_in_batch; ++count) {
      there.value.store(++trip, std::memory_order_release);
      wait_for(back, trip);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    if (batch != 0) best_ns = std::min(best_ns, took.count() / trips_in_batch);  // in the first the other thread starts
  }
  other.join();
  return best_ns;
}

}  // namespace

int main(int, char** argv) {
  try {
    const std::vector<int> cpus = peers::bound_cpus();
    if (cpus.size() < 2) throw std::runtime_error("PEERS_CPUS must name two CPUs");
    peers::bind_to(cpus[0]);
    peers::Channel channel(peers::channel_folder(), 0, 1);
    channel.answer("{\"rank\":0,\"ranks\":1,\"version\":\"probe\"}");
    while (channel.command()) channel.answer("{\"rank\":0,\"ns\":[" + std::to_string(round_trip_ns(cpus[1])) + "]}");
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
    return 1;
  }
}
