// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "schedule/algorithm.hpp"
#include "select/tuning.hpp"

namespace tutti {

/// An algorithm with the values of its parameters, and why it was taken.
struct Choice {
  const AlgorithmInfo* algorithm = nullptr;
  Parameters parameters;
  std::string reason;  ///< for people: "ring: 412 us predicted at 1M, next best tree 530 us"
};

/// Applies to calls of up to `up_to_bytes` bytes, beyond the row before.
struct SelectionRow {
  uint64_t up_to_bytes = UINT64_MAX;
  Choice choice;
  uint16_t number = 0;  ///< given by Selector: the same for rows of a collective with the same algorithm and parameters
};

/// The prices that algorithms are compared by: the same numbers on every rank, whatever each measured, since the choice must not
/// differ between ranks. node_of[rank]: numbers from 0. node_slots: the ranks of a node reach each other through shared memory.
/// cpus_per_rank: where ranks have the fewest; INFINITY: enough.
CostModel cost_model(std::span<const uint32_t> node_of, bool node_slots, double cpus_per_rank);

/// What a call asks of its algorithm beside its collective; the same on all ranks.
struct Requirements {
  bool uneven = false;     ///< blocks of different lengths
  bool ordered = false;    ///< an operation that does not commute
  bool canonical = false;  ///< deterministic mode
  TypeClass type = TypeClass::integers;
  /// A number below kKinds, different for each.
  uint8_t kind() const noexcept {
    return static_cast<uint8_t>(int{uneven} | int{ordered} << 1 | int{canonical} << 2 | static_cast<int>(type) << 3);
  }
  static constexpr size_t kKinds = 8 * kTypeClassCount;
};

/// The choice for every size, rows ascending, the last up to UINT64_MAX. Pure: ranks that give the same arguments get the same
/// table, so that all of them run the same algorithm.
///
/// override_text forces an algorithm, with parameters: "ring:segment_bytes=256K,channels=2"; parameters that it leaves out have
/// their defaults; "" forces nothing. An unknown algorithm or parameter, a value out of range, or an algorithm that does not do
/// for this shape gives TUTTI_ERR_CONFIG that names it and says what there is. Where the forced one does not do what is required,
/// the choice is free, and the reason says so.
Result<std::vector<SelectionRow>> selection_table(Collective collective, const Shape& shape, std::string_view override_text,
                                                  const CostModel& model, const Requirements& required = {});

/// The tables of one communicator, each made when it is first asked for.
class Selector {
 public:
  using Overrides = std::array<std::string, kCollectiveCount>;
  Selector(Shape shape, CostModel model, Overrides overrides);

  /// Judges the overrides.
  Status check() const;
  /// What was measured, to be taken before what the model says. links: TuningKey::links of the communicator.
  void set_tuning(std::shared_ptr<const TuningTable> tuning, uint32_t nodes, std::string links);
  /// Another override from now on; "": none. Tables and rows of the collective that were given out are gone.
  Status force(Collective collective, std::string_view override_text);
  /// Rows have their numbers.
  Result<std::span<const SelectionRow>> table(Collective collective, const Requirements& required) {
    const auto c = static_cast<size_t>(collective);
    const size_t kind = tuning_ == nullptr ? required.kind() % kModelKinds : required.kind();
    if (tables_[c] == nullptr || (*tables_[c])[kind].empty()) return make(collective, required);
    return std::span<const SelectionRow>((*tables_[c])[kind]);
  }
  const Shape& shape() const noexcept { return shape_; }

 private:
  static constexpr size_t kModelKinds = Requirements::kKinds / kTypeClassCount;  // the model knows no types
  using Tables = std::array<std::vector<SelectionRow>, Requirements::kKinds>;
  struct Known {
    const AlgorithmInfo* algorithm;
    Parameters parameters;
  };
  Result<std::span<const SelectionRow>> make(Collective collective, const Requirements& required);
  uint16_t number_of(Collective collective, const Choice& choice);

  Shape shape_;
  CostModel model_;
  Overrides overrides_;
  std::shared_ptr<const TuningTable> tuning_;
  uint32_t nodes_ = 1;
  std::string links_;
  std::array<std::unique_ptr<Tables>, kCollectiveCount> tables_;
  std::array<std::vector<Known>, kCollectiveCount> known_;  // by number
};

/// The row for `bytes`. The table must not be empty. Allocates nothing.
const SelectionRow& select(std::span<const SelectionRow> table, uint64_t bytes);

/// An override as one would write it: "ring:segment_bytes=256K,channels=2".
std::string describe(const AlgorithmInfo& algorithm, const Parameters& parameters);

}  // namespace tutti
