// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/arguments.hpp"
#include "engine/plan.hpp"

namespace tutti {

/// What a call does to its data at its own ends, where the algorithm cannot work on the caller's buffers as they are:
/// contributions that are multiplied first; 8- and 16-bit floats that travel as f32 and are rounded once (deterministic mode); an
/// alltoall in place; blocks that do not follow each other in memory where the algorithm takes several as one piece.
///
/// Memory is kept from call to call: a repeated call allocates nothing.
class Staging {
 public:
  struct Conditions {
    uint32_t rank;
    uint32_t size;
    bool canonical;  ///< deterministic mode, for a fold that needs it
    CpuLevel level;
  };

  /// Whether any of it is needed, as far as can be told without the plan. The algorithm then works on memory of the staging, and
  /// is not in place.
  static bool is_needed(const CollectiveArguments& arguments, const Conditions& conditions) noexcept;
  /// Whether blocks have to be brought together for this plan.
  static bool must_join(const Bindings& bindings, const Plan& plan) noexcept;

  /// Fills the memory and binds it in place of the caller's.
  void before(const CollectiveArguments& arguments, const Conditions& conditions, Bindings& bindings);
  /// Brings the results to the caller's buffers, if before() was called.
  void after() noexcept;
  bool active() const noexcept { return active_; }
  /// What before() prepared is not wanted any more: its call has failed.
  void drop() noexcept { active_ = false; }
  /// Memory kept for the next call, while none runs; and without it.
  uint64_t kept_bytes() const noexcept { return input_.capacity() + output_.capacity(); }
  void free_memory() noexcept {
    input_ = std::vector<std::byte>();
    output_ = std::vector<std::byte>();
  }

 private:
  /// A caller's buffer: blocks of bytes, in memory at `places`.
  struct Layout {
    std::byte* memory = nullptr;
    Slice window = kNothing;
    const uint64_t* places = nullptr;
  };
  uint64_t count_of(Cut cut, uint32_t block) const noexcept;
  uint64_t elements(const Slice& window) const noexcept;
  template <class Visit>
  void each_block(const Layout& layout, Visit&& visit) const;
  void gather_input(const Layout& layout);

  bool active_ = false;
  bool widens_ = false;
  CollectiveArguments arguments_;
  Conditions conditions_{};
  Layout output_layout_;
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;
};

}  // namespace tutti
