// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "schedule/verify.hpp"

namespace tutti::mutants {

/// SplitMix64: quick to seed, and most of what an interleaving costs is drawing numbers.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }
  /// Below `limit`, which is small.
  size_t below(size_t limit) { return static_cast<size_t>(((*this)() >> 32) * limit >> 32); }

 private:
  uint64_t state_;
};

/// Runs a job on numbers, one action at a time, in an order drawn from a seed: with the smallest credits, sends that complete
/// early or late, posted receives that scribble over their bytes before the data comes, and one rank that is as slow as can be.
/// It shares nothing with the verifier but the program: what the verifier derives, this one tries.
class Interpreter {
 public:
  Interpreter(std::span<const Program> job, const Call& call, uint64_t seed);

  /// "" if all ranks end with the right result, else what went wrong.
  std::string run();

 private:
  /// Tells apart what it was made from: the multiset of contributions (sum), their order (an affine map) and the association
  /// (hash).
  struct Number {
    uint64_t sum = 0;
    uint64_t scale = 1;
    uint64_t offset = 0;
    uint64_t hash = 0;
    bool operator==(const Number&) const = default;
  };
  enum class Progress : uint8_t { moved, blocked, wrong };
  struct Transfer {
    uint32_t rank = 0;
    uint32_t channel = 0;
    size_t number = 0;
    Number* bytes = nullptr;
    uint64_t length = 0;
    bool receives = false;
    bool captured = false;
    bool done = false;
  };
  struct Message {
    std::vector<Number> payload;
    size_t transfer = SIZE_MAX;
  };
  struct Channel {
    uint16_t lane = 0;
    uint32_t from = 0;
    uint32_t to = 0;
    std::vector<Message> sent;
    std::vector<size_t> receives;
    size_t next = 0;  ///< first message that was not released or delivered
  };
  struct Lane {
    uint64_t segment = 1;
    uint64_t longest = 0;              ///< of its slices
    std::vector<uint64_t> iterations;  ///< of each of its loops
    size_t loop = 0;
    uint64_t iteration = 0;
    uint32_t step = 0;
    bool done = false;
  };
  /// A buffer: the elements [origin, origin + length) of the vector, from numbers[first] on.
  struct Memory {
    std::vector<Number>* numbers = nullptr;
    uint64_t first = 0;
    uint64_t origin = 0;
    uint64_t length = 0;
  };
  struct Rank {
    std::vector<Number> store[kBufferCount];
    Memory memory[kBufferCount];
    std::vector<std::vector<Number>> stages;
    std::vector<std::vector<size_t>> tickets;
    std::vector<uint32_t> channels;
    std::vector<Lane> lanes;
    bool begun = false;
    bool ended = false;
  };

  void set_up_rank(uint32_t rank);
  void set_up_memory(uint32_t rank);
  void set_up_lane(uint32_t rank, const ProgramLane& lane);
  void set_up_loop(uint32_t rank, Lane& lane, const ProgramLoop& loop);
  uint32_t channel_index(uint16_t lane, uint32_t from, uint32_t to);
  Number random_number();
  static Number contribution(uint32_t rank, uint64_t element);
  static Number fold(const Number& a, const Number& b);
  static Number finalized(Number number);

  /// A lane of a rank, a rank's end, or a channel.
  struct Actor {
    uint32_t rank;
    uint32_t lane;  ///< kEnd: the rank's end; kChannel: channel number `rank`
  };
  static constexpr uint32_t kEnd = UINT32_MAX;
  static constexpr uint32_t kChannel = UINT32_MAX - 1;
  Progress act(const Actor& actor);
  Progress act_one_of(std::vector<Actor>& actors);
  Progress step_lane(uint32_t rank, Lane& lane, const ProgramLane& program_lane);
  Progress step_loop(uint32_t rank, Lane& lane, const ProgramLoop& loop);
  Progress run_step(uint32_t rank, Lane& lane, const ProgramStep& step, uint64_t chunk);
  Progress run_fold(uint32_t rank, Lane& lane, const ProgramStep& step, uint64_t chunk);
  Progress run_post(uint32_t rank, Lane& lane, const ProgramStep& step, uint64_t chunk);
  Progress settle(uint32_t rank, size_t& ticket);
  Progress end_rank(uint32_t rank);
  Progress move_channel(Channel& channel);
  Number* place(uint32_t rank, const Lane& lane, const ProgramOperand& operand, uint64_t chunk, uint64_t length);
  uint64_t count_of(uint32_t rank, Cut cut, uint32_t block) const;
  uint64_t bound(uint32_t rank, uint16_t division, uint32_t part) const;
  uint64_t length_of(uint32_t rank, const ProgramOperand& operand) const {
    return bound(rank, operand.division, operand.last) - bound(rank, operand.division, operand.first);
  }
  uint64_t chunk_length(uint32_t rank, const Lane& lane, const ProgramOperand& operand, uint64_t chunk) const;
  std::string judge() const;
  std::string judge_element(uint32_t rank, uint64_t place, uint64_t element) const;
  Number moved_here(uint32_t rank, uint64_t element) const;
  Progress wrong(std::string why);

  std::span<const Program> job_;
  Call call_;
  Random random_;
  uint32_t slowest_;
  bool buffers_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;
  std::deque<Transfer> transfers_;
  std::string why_;
};

}  // namespace tutti::mutants
