// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "terms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace tutti {

Terms::Terms(uint32_t ranks) : words_((ranks + 63) / 64), nodes_(size_t{ranks} + 1), ranks_((size_t{ranks} + 1) * words_) {
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Facts& facts = nodes_[leaf(rank)].facts;
    facts.contributions = 1;
    facts.first = facts.last = facts.highest = rank;
    ranks_of(leaf(rank))[rank / 64] |= uint64_t{1} << (rank % 64);
  }
}

uint32_t Terms::fold(const uint32_t* children, uint32_t count) {
  return count == 1 ? children[0] : intern(children, count, false);
}

uint32_t Terms::finalize(uint32_t term) { return intern(&term, 1, true); }

uint32_t Terms::canonical(uint32_t ranks) {
  std::vector<uint32_t> terms;
  const uint32_t active = std::bit_floor(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const bool paired = rank < 2 * (ranks - active);
    const uint32_t pair[] = {leaf(rank), leaf(rank + 1)};
    terms.push_back(paired ? fold(pair, 2) : leaf(rank));
    if (paired) ++rank;
  }
  for (; terms.size() > 1; terms.resize(terms.size() / 2)) {
    for (size_t n = 0; n < terms.size() / 2; ++n) terms[n] = fold(&terms[2 * n], 2);
  }
  return terms.empty() ? kUndefined : terms[0];
}

uint32_t Terms::find(uint64_t hash, const uint32_t* children, uint32_t count, bool finalizes) const {
  const auto [begin, end] = index_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry) {
    const Node& node = nodes_[entry->second];
    const auto first = children_.begin() + node.first_child;
    if (node.child_count == count && node.finalizes == finalizes && std::equal(children, children + count, first)) {
      return entry->second;
    }
  }
  return kUndefined;
}

uint32_t Terms::intern(const uint32_t* children, uint32_t count, bool finalizes) {
  uint64_t hash = finalizes ? 3 : 7;
  for (uint32_t n = 0; n < count; ++n) hash = (hash ^ children[n]) * 0x100000001b3;
  if (const uint32_t known = find(hash, children, count, finalizes)) return known;
  const auto term = static_cast<uint32_t>(nodes_.size());
  ranks_.resize(ranks_.size() + words_);
  Node node;
  node.facts = combine(children, count, ranks_of(term));
  node.first_child = static_cast<uint32_t>(children_.size());
  node.child_count = count;
  node.finalizes = finalizes;
  if (finalizes) node.facts.finalized = true;
  children_.insert(children_.end(), children, children + count);
  nodes_.push_back(node);
  index_.emplace(hash, term);
  return term;
}

Terms::Facts Terms::combine(const uint32_t* children, uint32_t count, uint64_t* ranks) const {
  Facts all;
  all.first = facts(children[0]).first;
  for (uint32_t n = 0; n < count; ++n) {
    const Facts& part = facts(children[n]);
    all.repeated |= part.repeated;
    all.in_order &= part.in_order && (n == 0 || all.last < part.first);
    all.misfinalized |= part.misfinalized || part.finalized;
    all.last = part.last;
    all.highest = std::max(all.highest, part.highest);
    all.contributions += part.contributions;
    for (uint32_t word = 0; word < words_; ++word) {
      all.repeated |= (ranks[word] & ranks_of(children[n])[word]) != 0;
      ranks[word] |= ranks_of(children[n])[word];
    }
  }
  return all;
}

std::string Terms::text(uint32_t term) const {
  constexpr size_t kLongest = 200;
  const Node& node = nodes_[term];
  if (term == kUndefined) return "undefined";
  if (node.child_count == 0) return fmt::format("{}", node.facts.first);
  std::string text = node.finalizes ? "final(" : "(";
  for (uint32_t n = 0; n < node.child_count; ++n) {
    if (text.size() > kLongest) return text + " ...)";
    if (n > 0) text += ' ';
    text += this->text(children_[node.first_child + n]);
  }
  return text + ')';
}

}  // namespace tutti
