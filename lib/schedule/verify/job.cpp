// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole jobs: who can do what with whom, lowering all ranks, judging schedules.
#include <algorithm>
#include <random>

#include "schedule/verify.hpp"

namespace tutti {
namespace {

constexpr uint64_t kLongSegmentBytes = 65536;

std::vector<std::vector<Capabilities>> standard_mixes(uint32_t size, uint32_t element_bytes) {
  std::vector<std::vector<Capabilities>> mixes;
  for (const uint64_t segment_bytes : {kLongSegmentBytes, uint64_t{element_bytes} * 2}) {
    for (uint16_t prefetch = 0; prefetch <= 2; ++prefetch) {
      mixes.push_back(uniform_pairs(size, Carrier::messages, segment_bytes, prefetch));
      mixes.push_back(uniform_pairs(size, Carrier::slots, segment_bytes, prefetch));
      mixes.push_back(node_pairs(size, 2, segment_bytes, prefetch));
      mixes.push_back(node_pairs(size, 3, segment_bytes, prefetch));
      mixes.push_back(random_pairs(size, segment_bytes, prefetch));
    }
  }
  return mixes;
}

}  // namespace

std::vector<Program> lower_job(std::span<const Schedule> job, std::span<const Capabilities> capabilities) {
  std::vector<Program> programs;
  programs.reserve(job.size());
  for (size_t rank = 0; rank < job.size(); ++rank) programs.push_back(lower(job[rank], capabilities[rank]));
  return programs;
}

std::vector<Capabilities> uniform_pairs(uint32_t size, Carrier carrier, uint64_t max_segment_bytes, uint16_t prefetch) {
  return std::vector<Capabilities>(size, {std::vector<Carrier>(size, carrier), max_segment_bytes, prefetch});
}

std::vector<Capabilities> node_pairs(uint32_t size, uint32_t node_size, uint64_t max_segment_bytes, uint16_t prefetch) {
  std::vector<Capabilities> pairs = uniform_pairs(size, Carrier::messages, max_segment_bytes, prefetch);
  for (uint32_t a = 0; a < size; ++a) {
    for (uint32_t b = 0; b < size; ++b) {
      if (a / node_size == b / node_size) pairs[a].carrier[b] = Carrier::slots;
    }
  }
  return pairs;
}

std::vector<Capabilities> random_pairs(uint32_t size, uint64_t max_segment_bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Capabilities> pairs = uniform_pairs(size, Carrier::messages, max_segment_bytes, 0);
  for (uint32_t a = 0; a < size; ++a) {
    pairs[a].prefetch = static_cast<uint16_t>(random() % 4);
    for (uint32_t b = 0; b < a; ++b) {
      if (random() % 2 == 0) pairs[a].carrier[b] = pairs[b].carrier[a] = Carrier::slots;
    }
  }
  return pairs;
}

Status verify(std::span<const Program> job, const Call& call) { return Verifier(job).judge(call); }

Status verify(std::span<const Schedule> job, const Call& call) {
  for (const Schedule& schedule : job) TUTTI_TRY(check(schedule));
  for (const std::vector<Capabilities>& mix : standard_mixes(static_cast<uint32_t>(job.size()), call.element_bytes)) {
    const std::vector<Program> programs = lower_job(job, mix);
    TUTTI_TRY(verify(programs, call));
  }
  return Status();
}

}  // namespace tutti
