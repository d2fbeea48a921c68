// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "errors.hpp"
#include "sizes.hpp"

namespace tutti_perf {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::pair<std::string_view, Spread> kSpreads[] = {{"even", Spread::even},
                                                            {"linear", Spread::linear},
                                                            {"random", Spread::random},
                                                            {"one", Spread::one},
                                                            {"sparse", Spread::sparse}};

uint64_t scramble(uint64_t seed, uint64_t a, uint64_t b) {
  uint64_t value = seed;
  for (const uint64_t word : {a, b}) {
    value = (value + word + 1) * 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 32)) * 0xd6e8feb86659fd93;
    value ^= value >> 32;
  }
  return value;
}

/// Parts of a rank, or of a pair.
uint64_t weight(const Counts& counts, uint32_t rank_count, uint32_t from, uint32_t to, bool pairs) {
  switch (counts.spread) {
    case Spread::linear:
      return pairs ? (uint64_t{from} + to) % rank_count + 1 : from + 1;
    case Spread::random:
      return 1 + scramble(counts.seed, std::min(from, to), std::max(from, to)) % 1000;
    case Spread::one:
      return from == 0 ? 1 : 0;
    case Spread::sparse:
      return rank_count == 1 || (pairs ? (uint64_t{from} + to) % 4 == 1 : from % 4 == 1) ? 1 : 0;
    case Spread::even:
      break;
  }
  return 1;
}

uint64_t share(uint64_t total, uint64_t part, uint64_t parts) {
  return parts == 0 ? 0 : static_cast<uint64_t>(Wide{total} * part / parts);
}

Blocks one_after_another(std::vector<uint64_t> counts) {
  Blocks blocks{std::move(counts), {}};
  uint64_t place = 0;
  for (const uint64_t count : blocks.counts) {
    blocks.places.push_back(place);
    place += count;
  }
  return blocks;
}

/// The blocks of all ranks; what the division leaves over goes to the last that has any.
Blocks blocks_of_ranks(const Counts& counts, uint64_t total, uint32_t rank_count) {
  std::vector<uint64_t> weights;
  uint64_t parts = 0;
  for (uint32_t rank = 0; rank < rank_count; ++rank) {
    weights.push_back(weight(counts, rank_count, rank, rank, false));
    parts += weights.back();
  }
  std::vector<uint64_t> lengths;
  uint64_t left = total;
  for (const uint64_t one : weights) {
    lengths.push_back(share(total, one, parts));
    left -= lengths.back();
  }
  for (uint32_t rank = rank_count; rank-- > 0 && left != 0;) {
    if (weights[rank] == 0) continue;
    lengths[rank] += left;
    left = 0;
  }
  return one_after_another(std::move(lengths));
}

/// What each pair exchanges when all ranks together have `total` elements.
class PairCounts {
 public:
  PairCounts(const Counts& counts, uint64_t total, uint32_t rank_count)
      : counts_(counts), total_(total), rank_count_(rank_count) {
    if (counts.spread == Spread::even) {
      parts_ = uint64_t{rank_count} * rank_count;
      return;
    }
    for (uint32_t from = 0; from < rank_count; ++from) {
      for (uint32_t to = 0; to < rank_count; ++to) parts_ += weight(counts, rank_count, from, to, true);
    }
  }
  uint64_t between(uint32_t from, uint32_t to) const {
    return share(total_, weight(counts_, rank_count_, from, to, true), parts_);
  }
  Blocks sent_by(uint32_t from) const {
    std::vector<uint64_t> lengths;
    for (uint32_t to = 0; to < rank_count_; ++to) lengths.push_back(between(from, to));
    return one_after_another(std::move(lengths));
  }
  Blocks received_by(uint32_t to) const {
    std::vector<uint64_t> lengths;
    for (uint32_t from = 0; from < rank_count_; ++from) lengths.push_back(between(from, to));
    return one_after_another(std::move(lengths));
  }

 private:
  Counts counts_;
  uint64_t total_;
  uint32_t rank_count_;
  uint64_t parts_ = 0;
};

bool is_alltoall(Collective collective) {
  return collective == Collective::alltoall || collective == Collective::alltoallv || collective == Collective::alltoallw;
}

bool is_gathering(Collective collective) {
  return collective == Collective::allgather || collective == Collective::allgatherv || collective == Collective::gather ||
         collective == Collective::gatherv;
}

/// Without the v the blocks are even, whatever --counts says.
Counts effective(Collective collective, const Counts& counts) { return traits(collective).varying ? counts : Counts{}; }

Contents alltoall_contents(const Counts& counts, const Layout& layout, const Place& place) {
  Contents contents;
  if (place.in_place) contents.before.push_back({0, layout.recv.total(), {place.rank, 0}});
  const PairCounts pairs(counts, layout.total * place.rank_count, place.rank_count);
  for (uint32_t from = 0; from < place.rank_count; ++from) {
    uint64_t first = 0;
    for (uint32_t to = 0; to < place.rank; ++to) first += pairs.between(from, to);
    contents.after.push_back({layout.recv.places[from], layout.recv.counts[from], {from, first}});
  }
  return contents;
}

Contents gathering_contents(const Layout& layout, const Place& place) {
  Contents contents;
  if (place.in_place)
    contents.before.push_back({layout.recv.places[place.rank], layout.recv.counts[place.rank], {place.rank, 0}});
  for (uint32_t from = 0; from < place.rank_count; ++from) {
    contents.after.push_back({layout.recv.places[from], layout.recv.counts[from], {from, 0}});
  }
  return contents;
}

}  // namespace

Counts parse_counts(std::string_view text) {
  const size_t colon = text.find(':');
  const auto* const found =
      std::find_if(std::begin(kSpreads), std::end(kSpreads), [&](const auto& one) { return one.first == text.substr(0, colon); });
  if (found == std::end(kSpreads)) {
    throw UsageError(fmt::format("--counts: '{}' is unknown; known are even, linear, random, random:SEED, one, sparse", text));
  }
  Counts counts{found->second, 1};
  if (colon == std::string_view::npos) return counts;
  if (counts.spread != Spread::random) throw UsageError(fmt::format("--counts: '{}': only random has a seed", text));
  counts.seed = parse_count("--counts random:SEED", text.substr(colon + 1), 0, UINT64_MAX);
  return counts;
}

std::string text_of(const Counts& counts) {
  for (const auto& [word, spread] : kSpreads) {
    if (spread == counts.spread) return spread == Spread::random ? fmt::format("{}:{}", word, counts.seed) : std::string(word);
  }
  return "";
}

Layout make_layout(Collective collective, const Counts& counts, uint64_t total, uint32_t rank_count, uint32_t rank) {
  Layout layout;
  layout.total = total;
  layout.count = total;
  layout.send_elements = layout.recv_elements = total;
  if (!traits(collective).blocks) return layout;
  layout.count = total / rank_count;
  if (is_alltoall(collective)) {
    const PairCounts pairs(effective(collective, counts), total * rank_count, rank_count);
    layout.send = pairs.sent_by(rank);
    layout.recv = pairs.received_by(rank);
    layout.send_elements = layout.send.total();
    layout.recv_elements = layout.recv.total();
    return layout;
  }
  layout.send = layout.recv = blocks_of_ranks(effective(collective, counts), total, rank_count);
  if (is_gathering(collective)) layout.send_elements = layout.send.counts[rank];
  return layout;
}

Contents make_contents(Collective collective, const Counts& counts, const Layout& layout, const Place& place) {
  const bool is_root = !traits(collective).rooted || place.rank == place.root;
  const uint32_t previous = (place.rank + place.rank_count - 1) % place.rank_count;
  const uint32_t partner = partner_of(place.rank, place.rank_count);
  if (is_alltoall(collective)) return alltoall_contents(effective(collective, counts), layout, place);
  if (is_gathering(collective)) return is_root ? gathering_contents(layout, place) : Contents{};
  const Piece own{0, layout.total, {place.rank, 0}};
  const Piece all{0, layout.total, {}};
  Contents contents;
  switch (collective) {
    case Collective::broadcast:
      if (is_root) contents.before.push_back(own);
      contents.after.push_back({0, layout.total, {place.root, 0}});
      return contents;
    case Collective::scatter:
    case Collective::scatterv:
      if (is_root && place.in_place) return {};  // the own block stays where it is
      return {{}, {{0, layout.recv.counts[place.rank], {place.root, layout.send.places[place.rank]}}}};
    case Collective::reduce_scatter:
    case Collective::reduce_scatterv: {
      if (place.in_place) contents.before.push_back(own);
      const uint64_t first = layout.recv.places[place.rank];
      contents.after.push_back({place.in_place ? first : 0, layout.recv.counts[place.rank], {0, first}});
      return contents;
    }
    case Collective::sendrecv:
      return {{}, {{0, layout.total, {previous, 0}}}};
    case Collective::pingpong:
      if (partner == place.rank) return {};
      return {{}, {{0, layout.total, {partner, 0}}}};
    case Collective::message_rate:  // the upper half receives
      if (partner >= place.rank) return {};
      return {{}, {{0, layout.total, {partner, 0}}}};
    case Collective::barrier:
      return {};
    default:
      break;
  }
  if (!is_root) return {};
  if (place.in_place) contents.before.push_back(own);
  // The first rank's result of exscan is left alone.
  if (collective != Collective::exscan || place.rank != 0) contents.after.push_back(all);
  return contents;
}

bool has_in_place(Collective collective, const Counts& counts) {
  if (is_alltoall(collective) && effective(collective, counts).spread == Spread::one) return false;
  return traits(collective).in_place;
}

uint32_t partner_of(uint32_t rank, uint32_t rank_count) {
  const uint32_t half = rank_count / 2;
  if (rank < half) return rank + half;
  return rank < 2 * half ? rank - half : rank;
}

}  // namespace tutti_perf
