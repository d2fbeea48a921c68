// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace tutti {

/// 2^m + extra ranks act as 2^m: of each of the first `extra` pairs of neighbours one acts for both. The others act for
/// themselves. Acting ranks are numbered in rank order, so that each stands for neighbouring ranks: folds stay in rank order, in
/// the association of deterministic mode.
class Pairs {
 public:
  /// `preferred` acts for its pair, whichever of the two it is; else the odd one does.
  explicit Pairs(uint32_t size, uint32_t preferred = UINT32_MAX)
      : active_(std::bit_floor(size)), extra_(size - active_), preferred_(preferred) {}

  uint32_t active() const { return active_; }
  uint32_t extra() const { return extra_; }
  uint32_t rounds() const { return static_cast<uint32_t>(std::countr_zero(active_)); }
  bool paired(uint32_t rank) const { return rank < 2 * extra_; }
  bool acts(uint32_t rank) const { return rank_of(number_of(rank)) == rank; }
  /// Of a rank, or of the one that acts for it.
  uint32_t number_of(uint32_t rank) const { return paired(rank) ? rank / 2 : rank - extra_; }
  uint32_t rank_of(uint32_t number) const {
    if (number >= extra_) return number + extra_;
    return preferred_ == 2 * number ? preferred_ : 2 * number + 1;
  }

 private:
  uint32_t active_;
  uint32_t extra_;
  uint32_t preferred_;
};

}  // namespace tutti
