// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace tutti {

/// What an element can hold, each different expression once: equal ids mean the same operations in the same order, so the same
/// bits.
class Terms {
 public:
  static constexpr uint32_t kUndefined = 0;

  struct Facts {
    uint32_t contributions = 0;
    uint32_t first = 0;  ///< leftmost and rightmost rank
    uint32_t last = 0;
    uint32_t highest = 0;
    bool repeated = false;      ///< a contribution is in it twice
    bool in_order = true;       ///< ranks ascend from left to right
    bool finalized = false;     ///< as its last operation
    bool misfinalized = false;  ///< finalized twice, or before the end
  };

  explicit Terms(uint32_t ranks);

  static uint32_t leaf(uint32_t rank) { return rank + 1; }
  /// The fold of several terms in one call, which is not the same as two calls (floats are rounded once a call).
  uint32_t fold(const uint32_t* children, uint32_t count);
  uint32_t finalize(uint32_t term);
  /// The association of deterministic mode over ranks [0, ranks): with 2^m + extra ranks the first `extra` pairs of neighbours are
  /// folded, then neighbours in m rounds.
  uint32_t canonical(uint32_t ranks);
  const Facts& facts(uint32_t term) const { return nodes_[term].facts; }
  std::string text(uint32_t term) const;

 private:
  struct Node {
    Facts facts;
    uint32_t first_child = 0;
    uint32_t child_count = 0;  ///< 0: a contribution
    bool finalizes = false;
  };

  uint32_t intern(const uint32_t* children, uint32_t count, bool finalizes);
  uint32_t find(uint64_t hash, const uint32_t* children, uint32_t count, bool finalizes) const;
  Facts combine(const uint32_t* children, uint32_t count, uint64_t* ranks) const;
  uint64_t* ranks_of(uint32_t term) { return ranks_.data() + size_t{term} * words_; }
  const uint64_t* ranks_of(uint32_t term) const { return ranks_.data() + size_t{term} * words_; }

  uint32_t words_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> ranks_;  ///< a bit for each contribution, words_ a node
  std::vector<uint32_t> children_;
  std::unordered_multimap<uint64_t, uint32_t> index_;
};

}  // namespace tutti
