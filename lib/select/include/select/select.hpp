// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "schedule/algorithm.hpp"

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
};

/// What carries the messages: decides the prices that algorithms are compared by.
enum class Distance : uint8_t { within_node, between_nodes };

/// The prices: the same numbers on every rank, whatever each measured, since the choice must not differ between ranks.
CostModel cost_model(Distance distance);

/// What a call asks of its algorithm beside its collective; the same on all ranks.
struct Requirements {
  bool uneven = false;     ///< blocks of different lengths
  bool ordered = false;    ///< an operation that does not commute
  bool canonical = false;  ///< deterministic mode
  /// A number below kKinds, different for each.
  uint8_t kind() const noexcept { return static_cast<uint8_t>(int{uneven} | int{ordered} << 1 | int{canonical} << 2); }
  static constexpr size_t kKinds = 8;
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
  Result<std::span<const SelectionRow>> table(Collective collective, const Requirements& required);
  const Shape& shape() const noexcept { return shape_; }

 private:
  Shape shape_;
  CostModel model_;
  Overrides overrides_;
  std::array<std::array<std::vector<SelectionRow>, Requirements::kKinds>, kCollectiveCount> tables_;
};

/// The row for `bytes`. The table must not be empty. Allocates nothing.
const SelectionRow& select(std::span<const SelectionRow> table, uint64_t bytes);

/// An override as one would write it: "ring:segment_bytes=256K,channels=2".
std::string describe(const AlgorithmInfo& algorithm, const Parameters& parameters);

}  // namespace tutti
