// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Which ranks are alike. Colour refinement, over the ranks, the channels between them and the links that these take: at first
// ranks have the colour of their program and links that of their bandwidth. Then each rank takes a new colour from its own and
// those of its channels, each link from its own and those of the channels that take it, where a channel's colour is made of the
// colours of its ends, its places in their programs, and its links. When no class falls apart any more, ranks of one class do the
// same with ranks of the same classes over links with the same load, and so, by induction over the events, at the same times.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "hash.hpp"
#include "job.hpp"

namespace tutti::sim {
namespace {

/// A round looks at each link of each channel. A ring needs half as many rounds as it has classes.
constexpr size_t kMaxLooks = 400'000'000;

size_t distinct(std::vector<uint64_t> colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

class Refinement {
 public:
  explicit Refinement(const Job& job) : job_(job), ranks_(job.actors.size()), links_(job.links.size()) {
    for (size_t n = 0; n < ranks_.size(); ++n) ranks_[n] = mix(1, job.actors[n].program);
    for (size_t n = 0; n < links_.size(); ++n) links_[n] = mix(2, static_cast<uint64_t>(job.links[n].ps_per_byte * 1e6));
  }

  /// False when it comes to more classes than half the ranks, or to no end.
  bool run() {
    size_t rank_classes = distinct(ranks_);
    size_t link_classes = distinct(links_);
    for (size_t looks = 0; looks < kMaxLooks; looks += job_.channels.size() + job_.hops.size()) {
      refine();
      const size_t now_ranks = distinct(ranks_);
      const size_t now_links = distinct(links_);
      if (2 * now_ranks > ranks_.size()) return false;
      if (now_ranks == rank_classes && now_links == link_classes) return true;
      rank_classes = now_ranks;
      link_classes = now_links;
    }
    return false;
  }

  uint64_t rank_colour(size_t rank) const { return ranks_[rank]; }
  uint64_t link_colour(size_t link) const { return links_[link]; }

 private:
  void refine() {
    // Sums: what a link carries has no order.
    std::vector<uint64_t> ranks(ranks_.size(), 0);
    std::vector<uint64_t> links(links_.size(), 0);
    for (const Channel& channel : job_.channels) {
      uint64_t colour = mix(ranks_[channel.from.actor], channel.from.local);
      colour = mix(mix(colour, ranks_[channel.to.actor]), channel.to.local);
      colour = mix(colour, static_cast<uint64_t>(channel.latency) << 1 | uint64_t{channel.within_node});
      for (const Hop& hop : job_.path(channel)) colour = mix(colour, links_[hop.link]);
      ranks[channel.from.actor] += mix(colour, 3);
      ranks[channel.to.actor] += mix(colour, 4);
      uint64_t place = 5;
      for (const Hop& hop : job_.path(channel)) links[hop.link] += mix(colour, place++);
    }
    for (size_t n = 0; n < ranks.size(); ++n) ranks_[n] = mix(ranks_[n], ranks[n]);
    for (size_t n = 0; n < links.size(); ++n) links_[n] = mix(links_[n], links[n]);
  }

  const Job& job_;
  std::vector<uint64_t> ranks_;
  std::vector<uint64_t> links_;
};

struct Class {
  uint32_t first = 0;  ///< the lowest member
  uint32_t members = 0;
};

/// Numbers classes in the order of their first members.
struct Partition {
  std::vector<uint32_t> class_of;
  std::vector<Class> classes;

  template <class Colour>
  Partition(size_t count, Colour colour) {
    std::unordered_map<uint64_t, uint32_t> known;
    for (size_t n = 0; n < count; ++n) {
      const auto [entry, is_new] = known.try_emplace(colour(n), static_cast<uint32_t>(classes.size()));
      if (is_new) classes.push_back({static_cast<uint32_t>(n), 0});
      ++classes[entry->second].members;
      class_of.push_back(entry->second);
    }
  }
};

class QuotientBuilder {
 public:
  QuotientBuilder(const Job& job, const Partition& ranks, const Partition& links) : job_(job), ranks_(ranks), links_(links) {}

  /// Nothing if the classes do not fit together, as for a collision of hashes.
  std::optional<Job> run() {
    copy_what_is_shared();
    for (const Class& of_links : links_.classes) result_.links.push_back(job_.links[of_links.first]);
    for (const Class& of_ranks : ranks_.classes) add_actor(of_ranks);
    result_.channel_of.assign(channel_count_, UINT32_MAX);
    for (size_t n = 0; n < ranks_.classes.size(); ++n) {
      if (!add_channels(static_cast<uint32_t>(n))) return std::nullopt;
    }
    const auto unset = [](uint32_t channel) { return channel == UINT32_MAX; };
    if (std::any_of(result_.channel_of.begin(), result_.channel_of.end(), unset)) return std::nullopt;
    return std::move(result_);
  }

 private:
  void copy_what_is_shared() {
    result_.slices = job_.slices;
    result_.rank_count = job_.rank_count;
    result_.has_blocks = job_.has_blocks;
    program_of_.assign(job_.programs.size(), UINT32_MAX);
  }

  void add_actor(const Class& of_ranks) {
    const Actor& first = job_.actors[of_ranks.first];
    uint32_t& program = program_of_[first.program];
    if (program == UINT32_MAX) {
      program = static_cast<uint32_t>(result_.programs.size());
      result_.programs.push_back(job_.programs[first.program]);
    }
    result_.actors.push_back({first.rank, of_ranks.members, program, channel_count_});
    channel_count_ += result_.programs[program].channel_count;
  }

  /// Those that the class sends on, with their far ends.
  bool add_channels(uint32_t sender) {
    const Actor& first = job_.actors[ranks_.classes[sender].first];
    const uint32_t count = job_.programs[first.program].channel_count;
    for (uint32_t local = 0; local < count; ++local) {
      const Channel& original = job_.channels[job_.channel(first, local)];
      if (original.from.actor != ranks_.classes[sender].first || original.from.local != local) continue;
      Channel channel = original;
      channel.from.actor = sender;
      channel.to.actor = ranks_.class_of[original.to.actor];
      if (result_.actors[channel.to.actor].members != result_.actors[sender].members) return false;
      channel.first_hop = static_cast<uint32_t>(result_.hops.size());
      for (const Hop& hop : job_.path(original)) {
        const uint32_t link = links_.class_of[hop.link];
        if (result_.actors[sender].members % links_.classes[link].members != 0) return false;
        result_.hops.push_back({link, result_.actors[sender].members / links_.classes[link].members});
      }
      for (const End& end : {channel.from, channel.to}) {
        result_.channel_of[result_.actors[end.actor].first_channel + end.local] = static_cast<uint32_t>(result_.channels.size());
      }
      result_.channels.push_back(channel);
    }
    return true;
  }

  const Job& job_;
  const Partition& ranks_;
  const Partition& links_;
  Job result_;
  std::vector<uint32_t> program_of_;
  uint32_t channel_count_ = 0;
};

}  // namespace

std::optional<Job> reduce_to_classes(const Job& job) {
  Refinement refinement(job);
  if (!refinement.run()) return std::nullopt;
  const Partition ranks(job.actors.size(), [&](size_t n) { return refinement.rank_colour(n); });
  const Partition links(job.links.size(), [&](size_t n) { return refinement.link_colour(n); });
  return QuotientBuilder(job, ranks, links).run();
}

}  // namespace tutti::sim
