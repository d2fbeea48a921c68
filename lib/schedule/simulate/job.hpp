// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "schedule/network.hpp"
#include "schedule/simulate.hpp"

/// The schedules of a whole job in the form in which they are walked: small, and once where ranks do the same with other peers.
namespace tutti::sim {

using Picoseconds = int64_t;

/// How long a slice is, whatever the rank: a part of a vector, or of a block times the number of ranks.
struct SliceSize {
  uint32_t parts = 1;
  uint32_t taken = 1;
  bool of_blocks = false;
  bool operator==(const SliceSize&) const = default;
};
inline constexpr uint32_t kNoSlice = UINT32_MAX;  // of a signal

struct CompactStep {
  uint32_t slice = kNoSlice;   ///< into Job::slices
  uint32_t first_message = 0;  ///< into CompactProgram::messages: receives, then sends
  uint16_t lag = 0;
  uint16_t smallest_later_lag = 0;  ///< of this step and those after it in its loop
  uint16_t receives = 0;
  uint16_t sends = 0;
  uint16_t folds = 0;  ///< operands folded into the first
  uint16_t local_copies = 0;
  bool operator==(const CompactStep&) const = default;
};

struct CompactLoop {
  uint32_t first_step = 0;
  uint32_t step_count = 0;
  uint16_t max_lag = 0;
  bool operator==(const CompactLoop&) const = default;
};

struct CompactLane {
  uint32_t first_loop = 0;
  uint32_t loop_count = 0;
  uint64_t segment_bytes = 0;
  bool operator==(const CompactLane&) const = default;
};

/// What a rank does. Its peers have names of its own: place n of Actor::channels.
struct CompactProgram {
  std::vector<CompactStep> steps;
  std::vector<uint32_t> messages;
  std::vector<CompactLoop> loops;
  std::vector<CompactLane> lanes;
  uint32_t channel_count = 0;
  bool operator==(const CompactProgram&) const = default;
};

inline std::span<const CompactLoop> loops_of(const CompactProgram& program, const CompactLane& lane) {
  return std::span(program.loops).subspan(lane.first_loop, lane.loop_count);
}

/// Where a channel ends: the `local`-th channel of an actor, used by one of its lanes.
struct End {
  uint32_t actor = 0;
  uint32_t local = 0;
  uint32_t lane = 0;
};

/// A link that a channel's messages take. Where an actor stands for many, so does its message: `weight` of them share the link.
struct Hop {
  uint32_t link = 0;
  uint32_t weight = 1;
};

struct Channel {
  End from;
  End to;
  uint32_t first_hop = 0;
  uint32_t hop_count = 0;
  Picoseconds latency = 0;
  bool within_node = false;
};

/// One rank, or all ranks of a class.
struct Actor {
  uint32_t rank = 0;
  uint32_t members = 1;
  uint32_t program = 0;
  uint32_t first_channel = 0;  ///< into Job::channel_of
};

struct Link {
  uint32_t number = 0;  ///< Network's
  double ps_per_byte = 0;
};

struct Job {
  std::vector<SliceSize> slices;
  std::vector<CompactProgram> programs;
  std::vector<Actor> actors;
  std::vector<uint32_t> channel_of;
  std::vector<Channel> channels;
  std::vector<Hop> hops;
  std::vector<Link> links;  ///< those that somebody uses
  uint32_t rank_count = 0;
  bool has_blocks = false;

  std::span<const Hop> path(const Channel& channel) const { return {hops.data() + channel.first_hop, channel.hop_count}; }
  uint32_t channel(const Actor& actor, uint32_t local) const { return channel_of[actor.first_channel + local]; }
};

/// Builds every rank's schedule and joins their channels. TUTTI_ERR_RESOURCE when it would have more than `max_steps` steps,
/// all ranks together; TUTTI_ERR_INTERNAL when a message has one end only.
Result<Job> build_job(const Network& network, const SimulationRequest& request, uint64_t max_steps);

/// What one call makes of the slices: bytes of each.
std::vector<uint64_t> slice_bytes(const Job& job, uint64_t bytes, uint32_t element_bytes);
/// Messages and local steps that a walk takes, one a chunk; the most chunks of any slice, and
/// how deep its pipelines are.
struct Extent {
  uint64_t steps = 0;
  uint64_t longest_chunks = 0;
  uint64_t max_lag = 0;
};
Extent extent(const Job& job, std::span<const uint64_t> bytes_of_slice);

inline uint64_t chunk_count(uint64_t slice_bytes, uint64_t segment_bytes) {
  if (slice_bytes <= segment_bytes) return slice_bytes == 0 ? 0 : 1;  // most are, and a division is slow
  return (slice_bytes + segment_bytes - 1) / segment_bytes;
}

/// The job with one actor for each class of ranks that do the same, at like places of the network, with peers that do. Nothing
/// where there would be more than half as many classes as ranks.
std::optional<Job> reduce_to_classes(const Job& job);

}  // namespace tutti::sim
