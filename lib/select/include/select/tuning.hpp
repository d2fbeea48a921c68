// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "base/types.hpp"
#include "schedule/algorithm.hpp"

/// What was measured on a machine, as tutti-tune writes it and the setting tuning_file names it. A line-based text:
///
///     tutti-tuning 1
///     machine Intel Xeon, 2 cores, Linux 6.1
///     use allreduce ranks=4 nodes=1 links=shm type=float bytes<=64K recursive_doubling
///     use allreduce ranks=4 nodes=1 links=shm type=float bytes=any ring:channels=2
///     time allreduce ranks=4 nodes=1 links=shm type=float bytes=4K flat 5.2us
///
/// `use` lines are the table; `time` lines are the evidence, for people and for a later run of tutti-tune.
namespace tutti {

/// Types that cost a fold alike. Collectives that do not fold have TypeClass::integers and no type= in the file.
enum class TypeClass : uint8_t { integers, floats, small_floats, user };
inline constexpr size_t kTypeClassCount = 4;
std::string_view name(TypeClass type) noexcept;  // "int", "float", "small_float", "user"
TypeClass type_class(DType dtype) noexcept;

/// What a table is for.
struct TuningKey {
  Collective collective = Collective::allreduce;
  TypeClass type = TypeClass::floats;
  uint32_t ranks = 1;
  uint32_t nodes = 1;
  std::string links;  ///< transports within a node / between nodes: "shm", "tcp", "shm/tcp"; "" in a file: any
  auto operator<=>(const TuningKey&) const = default;
};
/// As in a file: "allreduce ranks=4 nodes=1 links=shm type=float".
std::string describe(const TuningKey& key);
/// The text of TuningKey::links: transport names, joined by '+' where a part has several.
std::string links_text(std::string_view within_node, std::string_view between_nodes);

struct TuningRow {
  uint64_t up_to_bytes = UINT64_MAX;
  const AlgorithmInfo* algorithm = nullptr;
  Parameters parameters;
  uint32_t line = 0;  ///< of the file; 0: made here
};

struct TuningTime {
  uint64_t bytes = 0;
  const AlgorithmInfo* algorithm = nullptr;
  Parameters parameters;
  double ns = 0;
};

struct TuningSection {
  TuningKey key;
  std::vector<TuningRow> rows;  ///< ascending
  std::vector<TuningTime> times;
};

class TuningTable {
 public:
  /// TUTTI_ERR_CONFIG says "origin:line: ", what is wrong there, and the nearest known name.
  static Result<TuningTable> parse(std::string_view text, std::string origin);

  /// As a file, sections in order.
  std::string text() const;
  const std::string& origin() const noexcept { return origin_; }
  std::span<const TuningSection> sections() const noexcept { return sections_; }
  const TuningSection* find(const TuningKey& key) const noexcept;
  /// Made if it is not there. Valid until the next call.
  TuningSection& section(const TuningKey& key);
  const std::vector<std::string>& machines() const noexcept { return machines_; }
  void add_machine(std::string_view machine);

  struct Match {
    const TuningSection* section = nullptr;  ///< nullptr: none does
    std::string how;                         ///< for people: what it was measured on, or why none does
  };
  /// Of the sections for this collective and these links, the one for so many ranks and nodes; else the nearest, by the product
  /// of the two ratios, none of which is above kFarthest, among those that are alike in having one node, several, or one for each
  /// rank. Of equals the one of the same type class, then floats. Pure: the same on all ranks.
  Match match(const TuningKey& wanted) const;
  static constexpr double kFarthest = 2;

 private:
  std::string origin_;
  std::vector<TuningSection> sections_;  // ascending
  std::vector<std::string> machines_;
};

/// The text without what the choice does not depend on; lines keep their numbers.
std::string without_evidence(std::string_view text);

}  // namespace tutti
