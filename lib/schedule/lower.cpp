// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "schedule/program.hpp"
#include "touch_index.hpp"
#include "tutti/transport.h"

/// Lowering of one loop of a lane has four passes:
///   draft     each Step becomes verbs in order; receives are posted where they are awaited
///   prefetch  the largest distance by which all receives of the loop may be posted earlier
///   guard     an await_sent before every write to bytes that a send may still read, a drain_sent if that was of an earlier loop
///   emit      into the Program's flat arrays
/// The passes reason about *times*: a verb with lag L at place n of its loop works on chunk k at time (k + L, n), and times
/// compare lexicographically. For two verbs on the same slice only equal chunks touch; for overlapping slices that differ any
/// two chunks may.
namespace tutti {
namespace {

/// Tickets of one posting step; also the number of segments of a stage that is sent from.
constexpr uint16_t kSendDepth = 4;
/// Receives posted ahead need one ticket more than the distance, and tickets come in powers of two.
constexpr uint16_t kMaxPrefetch = kSendDepth - 1;
/// Staging segments of one loop beyond which receives are not posted ahead but share a stage.
constexpr size_t kMaxStageSegments = 64;

/// A verb before it has its final numbers. `place` in the loop is its index in Draft.
struct Item {
  Verb verb = Verb::fold;
  std::vector<ProgramOperand> operands;  ///< fold: sources, then destinations; else the posted extent
  uint8_t source_count = 0;
  bool finalize = false;
  uint32_t lag = 0;
  uint32_t channel = 0;
  uint32_t pending = 0;
};

struct Time {
  uint32_t iteration;
  size_t place;
  bool operator<(const Time& other) const { return std::tie(iteration, place) < std::tie(other.iteration, other.place); }
};

struct Draft {
  std::vector<Item> items;
  std::vector<Stage> stages;  ///< from Lowering::program_.stages.size() on
  uint32_t pending_count = 0;
};

/// What a send of an earlier loop may still read.
struct OpenSend {
  ProgramOperand bytes;
  uint32_t pending = 0;  ///< of the program
};

enum class Overlap : uint8_t { none, same, partial };

bool is_callers(BufferId buffer) { return buffer == BufferId::input || buffer == BufferId::output; }

/// `alias`: input and output may be the same memory. Lowering is not told whether they are, so they are taken to be.
Overlap overlap(const ProgramOperand& a, const ProgramOperand& b, bool alias) {
  using Kind = ProgramOperand::Kind;
  if (a.division == ProgramOperand::kNoData || b.division == ProgramOperand::kNoData) return Overlap::none;
  if (a.kind != b.kind || a.kind == Kind::slot) return Overlap::none;
  if (a.kind == Kind::staged) return a.index == b.index ? Overlap::same : Overlap::none;
  const bool one_memory = a.buffer == b.buffer || (alias && is_callers(a.buffer) && is_callers(b.buffer));
  if (!one_memory || a.first == a.last || b.first == b.last) return Overlap::none;
  // Bounds of different divisions compare differently for different counts.
  if (a.division != b.division) return Overlap::partial;
  if (a.first == b.first && a.last == b.last) return Overlap::same;
  return a.first < b.last && b.first < a.last ? Overlap::partial : Overlap::none;
}

uint16_t power_of_two_at_least(uint32_t value) {
  uint16_t power = 1;
  while (power < value) power = static_cast<uint16_t>(power * 2);
  return power;
}

class Lowering {
 public:
  Lowering(const Schedule& schedule, const Capabilities& capabilities)
      : schedule_(schedule), capabilities_(capabilities), alias_(may_alias(schedule.collective)) {
    program_.collective = schedule.collective;
    program_.rank = schedule.rank;
    program_.size = schedule.size;
    for (const BufferId buffer : {BufferId::input, BufferId::output}) {
      keep_window(buffer, window(schedule.collective, buffer, schedule.rank, schedule.root, schedule.size));
    }
    for (size_t n = 0; n < schedule.scratch.size(); ++n) {
      keep_window(static_cast<BufferId>(static_cast<size_t>(BufferId::scratch) + n), schedule.scratch[n]);
    }
  }

  Program run() {
    for (size_t lane = 0; lane < schedule_.lanes.size(); ++lane) lower_lane(static_cast<uint16_t>(lane));
    return std::move(program_);
  }

 private:
  void lower_lane(uint16_t lane) {
    lane_ = lane;
    channel_of_.clear();
    shared_stages_.clear();
    open_sends_.clear();
    ProgramLane result;
    result.first_loop = static_cast<uint32_t>(program_.loops.size());
    const uint64_t longest = capabilities_.max_segment_bytes;
    const uint64_t segment_bytes = schedule_.lanes[lane].segment_bytes;
    result.segment_bytes = segment_bytes == 0 ? longest : std::min(segment_bytes, longest);
    std::span<const Step> left = schedule_.lanes[lane].steps;
    do {  // a lane without steps has a loop too, of none
      const auto in_loop = [loop = left.empty() ? 0 : left.front().loop](const Step& step) { return step.loop == loop; };
      const auto end = std::find_if_not(left.begin(), left.end(), in_loop);
      lower_loop({left.begin(), end}, end == left.end());
      left = {end, left.end()};
    } while (!left.empty());
    result.loop_count = static_cast<uint32_t>(program_.loops.size()) - result.first_loop;
    program_.lanes.push_back(result);
  }

  void lower_loop(std::span<const Step> steps, bool is_last) {
    const std::vector<uint32_t> shared_before = shared_stages_;
    const auto draft_with = [&](uint32_t prefetch) {
      shared_stages_ = shared_before;
      Draft draft;
      for (const Step& step : steps) draft_step(draft, step, prefetch);
      return draft;
    };
    uint32_t prefetch = std::min(capabilities_.prefetch, kMaxPrefetch);
    Draft draft = draft_with(prefetch);
    while (prefetch > 0 && !prefetch_is_safe(draft, prefetch)) draft = draft_with(--prefetch);
    const bool posts_receives =
        std::any_of(draft.items.begin(), draft.items.end(), [](const Item& item) { return item.verb == Verb::post_recv; });
    if (posts_receives) {
      for (Item& item : draft.items) {
        if (item.verb != Verb::post_recv) item.lag += prefetch;
      }
    }
    guard_sends(draft);
    if (!is_last) keep_open_sends(draft);
    emit(draft, power_of_two_at_least(prefetch + 1));
  }

  // ---- draft

  void draft_step(Draft& draft, const Step& step, uint32_t prefetch) {
    std::vector<ProgramOperand> sources;
    std::vector<ProgramOperand> destinations;  // of the fold
    std::vector<const Operand*> posted;        // destinations by message
    for (const Operand& operand : step.destinations) {
      if (by_message(operand)) {
        posted.push_back(&operand);
      } else {
        destinations.push_back(operand.kind == Operand::Kind::local ? local(operand) : slot(operand, TUTTI_TP_SEND));
      }
    }
    // A local destination goes first: it is received into, and sent from.
    std::stable_partition(destinations.begin(), destinations.end(), is_local);
    const bool keeps_local = !destinations.empty() && is_local(destinations.front());
    const bool plain = step.sources.size() == 1 && !step.finalize;

    if (plain && keeps_local && by_message(step.sources[0])) {
      draft_receive(draft, step, {destinations.front()});
      sources = {destinations.front()};
      destinations.erase(destinations.begin());
    } else {
      sources = draft_sources(draft, step, prefetch, plain && !posted.empty());
    }
    const bool sends_source = plain && sources[0].kind != ProgramOperand::Kind::slot;
    ProgramOperand sent_from = sources.empty() ? ProgramOperand{} : sources[0];
    if (!posted.empty() && !sends_source) {
      if (!keeps_local) destinations.insert(destinations.begin(), new_stage(draft, posted[0]->slice, kSendDepth));
      sent_from = destinations.front();
    }
    if (!destinations.empty()) draft_fold(draft, step, sources, destinations);
    for (const Operand* operand : posted) {
      Item item;
      item.verb = Verb::post_send;
      item.operands = {sent_from};
      item.lag = step.lag;
      item.channel = channel(operand->peer, TUTTI_TP_SEND);
      item.pending = draft.pending_count++;
      draft.items.push_back(std::move(item));
    }
  }

  /// Sources of the fold; those that come by message are received into stages first, all posted before the first is awaited.
  std::vector<ProgramOperand> draft_sources(Draft& draft, const Step& step, uint32_t prefetch, bool forwards) {
    std::vector<ProgramOperand> sources;
    std::vector<ProgramOperand> stages;
    for (const Operand& operand : step.sources) {
      if (!by_message(operand)) {
        sources.push_back(operand.kind == Operand::Kind::local ? local(operand) : slot(operand, TUTTI_TP_RECV));
        continue;
      }
      if (forwards) {
        stages.push_back(new_stage(draft, operand.slice, kSendDepth));
      } else if (prefetch == 0) {
        stages.push_back(shared_stage(draft, operand.slice, stages.size()));
      } else {
        stages.push_back(new_stage(draft, operand.slice, power_of_two_at_least(prefetch + 1)));
      }
      sources.push_back(stages.back());
    }
    if (!stages.empty()) draft_receive(draft, step, stages);
    return sources;
  }

  void draft_receive(Draft& draft, const Step& step, const std::vector<ProgramOperand>& into) {
    const size_t first = draft.items.size();
    size_t next = 0;
    for (const Operand& operand : step.sources) {
      if (!by_message(operand)) continue;
      Item item;
      item.verb = Verb::post_recv;
      item.operands = {into[next++]};
      item.lag = step.lag;
      item.channel = channel(operand.peer, TUTTI_TP_RECV);
      item.pending = draft.pending_count++;
      draft.items.push_back(std::move(item));
    }
    const size_t last = draft.items.size();
    for (size_t n = first; n < last; ++n) {
      Item item = draft.items[n];
      item.verb = Verb::await_received;
      item.channel = 0;
      draft.items.push_back(std::move(item));
    }
  }

  static void draft_fold(Draft& draft, const Step& step, const std::vector<ProgramOperand>& sources,
                         const std::vector<ProgramOperand>& destinations) {
    Item item;
    item.operands = sources;
    item.operands.insert(item.operands.end(), destinations.begin(), destinations.end());
    item.source_count = static_cast<uint8_t>(sources.size());
    item.finalize = step.finalize;
    item.lag = step.lag;
    draft.items.push_back(std::move(item));
  }

  // ---- prefetch

  /// Posting a receive into caller's memory earlier must not overtake a step that still uses the old contents.
  bool prefetch_is_safe(const Draft& draft, uint32_t prefetch) const {
    size_t segments = 0;
    for (const Stage& stage : draft.stages) segments += stage.depth;
    if (segments > kMaxStageSegments) return false;
    const TouchIndex users = index(
        draft, [](const Item& item) { return item.verb != Verb::post_recv; }, Touches::all);
    bool safe = true;
    for (size_t post = 0; post < draft.items.size() && safe; ++post) {
      if (draft.items[post].verb != Verb::post_recv || !is_local(draft.items[post].operands[0])) continue;
      users.each(draft.items[post].operands[0], [&](size_t other) { return safe = !overtakes(draft, post, other, prefetch); });
    }
    return safe;
  }

  bool overtakes(const Draft& draft, size_t post, size_t other, uint32_t prefetch) const {
    const Item& receive = draft.items[post];
    const Item& user = draft.items[other];
    if (user.verb == Verb::await_received && user.pending == receive.pending) return false;
    const Time posted = {receive.lag, post};
    for (const ProgramOperand& operand : user.operands) {
      const Overlap kind = overlap(operand, receive.operands[0], alias_);
      if (kind == Overlap::partial) return true;
      if (kind == Overlap::none) continue;
      const bool before = Time{user.lag, other} < posted;
      if (before && !(Time{user.lag + prefetch, other} < posted)) return true;
    }
    return false;
  }

  // ---- index

  enum class Touches : uint8_t { written, all };

  template <class Wanted>
  TouchIndex index(const Draft& draft, Wanted&& wanted, Touches touches) const {
    TouchIndex result(alias_);
    for (size_t place = 0; place < draft.items.size(); ++place) {
      const Item& item = draft.items[place];
      if (!wanted(item)) continue;
      for (size_t n = touches == Touches::all ? 0 : item.source_count; n < item.operands.size(); ++n) {
        result.add(item.operands[n], static_cast<uint32_t>(place));
      }
    }
    return result;
  }

  // ---- guard

  struct Guard {
    size_t before;  ///< place of the verb that must wait
    Item await;
  };

  /// An await_sent goes before the earliest write that could reach bytes still being sent. If the ticket is used again before
  /// that, it goes there: with as many chunks the post would wait for the same send, and the last ones have no post after them.
  void guard_sends(Draft& draft) {
    const TouchIndex writers = index(draft, writes, Touches::written);
    std::vector<Guard> guards = drains(draft, writers);
    for (size_t place = 0; place < draft.items.size(); ++place) {
      const Item& send = draft.items[place];
      if (send.verb != Verb::post_send) continue;
      const Time reused = {send.lag + kSendDepth, place};
      const std::optional<Time> write = first_write_after(draft, writers, place);
      if (!write) continue;
      const Time needed = std::min(*write, reused);
      Item await = send;
      await.verb = Verb::await_sent;
      await.channel = 0;
      await.lag = needed.iteration;
      guards.push_back({needed.place, std::move(await)});
    }
    std::stable_sort(guards.begin(), guards.end(), [](const Guard& a, const Guard& b) { return a.before < b.before; });
    std::vector<Item> merged;
    merged.reserve(draft.items.size() + guards.size());
    auto guard = guards.begin();
    for (size_t place = 0; place < draft.items.size(); ++place) {
      for (; guard != guards.end() && guard->before == place; ++guard) merged.push_back(std::move(guard->await));
      merged.push_back(std::move(draft.items[place]));
    }
    draft.items = std::move(merged);
  }

  /// For each send of an earlier loop whose bytes this one writes: before the first write to them.
  std::vector<Guard> drains(const Draft& draft, const TouchIndex& writers) {
    std::vector<Guard> guards;
    const auto drain = [&](const OpenSend& send) {
      std::optional<Time> first;
      writers.each(send.bytes, [&](size_t place) {
        const Item& writer = draft.items[place];
        const Time write = {writer.lag, place};
        if (first && !(write < *first)) return true;
        for (size_t n = writer.source_count; n < writer.operands.size(); ++n) {
          if (overlap(writer.operands[n], send.bytes, alias_) != Overlap::none) first = write;
        }
        return true;
      });
      if (!first) return false;
      Item item;
      item.verb = Verb::drain_sent;
      item.lag = first->iteration;
      item.pending = send.pending;
      guards.push_back({first->place, std::move(item)});
      return true;
    };
    open_sends_.erase(std::remove_if(open_sends_.begin(), open_sends_.end(), drain), open_sends_.end());
    return guards;
  }

  /// Staged bytes are written by their own loop only.
  void keep_open_sends(const Draft& draft) {
    const auto first_pending = static_cast<uint32_t>(program_.pendings.size());
    for (const Item& item : draft.items) {
      if (item.verb != Verb::post_send || !is_local(item.operands[0])) continue;
      open_sends_.push_back({item.operands[0], first_pending + item.pending});
    }
  }

  static bool writes(const Item& item) { return item.verb == Verb::fold || item.verb == Verb::post_recv; }

  std::optional<Time> first_write_after(const Draft& draft, const TouchIndex& writers, size_t place) const {
    const Item& send = draft.items[place];
    const ProgramOperand& bytes = send.operands[0];
    const Time sent = {send.lag, place};
    std::optional<Time> first;
    writers.each(bytes, [&](size_t other) {
      const Item& writer = draft.items[other];
      for (size_t n = writer.source_count; n < writer.operands.size(); ++n) {
        Time write = {writer.lag, other};
        switch (overlap(writer.operands[n], bytes, alias_)) {
          case Overlap::none:
            continue;
          case Overlap::partial:  // every chunk posted so far
            write.iteration = send.lag + (other < place ? 1 : 0);
            break;
          case Overlap::same:
            // The segment of a stage comes round again `depth` chunks later.
            if (bytes.kind == ProgramOperand::Kind::staged) write.iteration += stage_depth(draft, bytes.index);
            if (!(sent < write)) continue;
            break;
        }
        if (!first || write < *first) first = write;
      }
      return true;
    });
    return first;
  }

  uint16_t stage_depth(const Draft& draft, uint32_t index) const { return draft.stages[index - program_.stages.size()].depth; }

  // ---- emit

  void emit(const Draft& draft, uint16_t receive_depth) {
    ProgramLoop result;
    result.first_step = static_cast<uint32_t>(program_.steps.size());
    result.step_count = static_cast<uint32_t>(draft.items.size());
    const auto first_pending = static_cast<uint32_t>(program_.pendings.size());
    program_.pendings.resize(program_.pendings.size() + draft.pending_count);
    std::vector<uint32_t> extent_of(draft.pending_count, UINT32_MAX);

    for (const Item& item : draft.items) {
      if (item.verb == Verb::fold || item.verb == Verb::drain_sent) continue;
      program_.pendings[first_pending + item.pending].depth =
          item.verb == Verb::post_recv || item.verb == Verb::await_received ? receive_depth : kSendDepth;
    }
    for (const Item& item : draft.items) {
      ProgramStep step;
      step.verb = item.verb;
      step.source_count = item.source_count;
      step.destination_count =
          item.verb == Verb::fold ? static_cast<uint8_t>(item.operands.size() - item.source_count) : uint8_t{0};
      step.finalize = item.finalize;
      step.lag = static_cast<uint16_t>(item.lag);
      step.channel = item.channel;
      step.first_operand = static_cast<uint32_t>(program_.operands.size());
      bool shares_extent = false;
      if (item.verb == Verb::drain_sent) {
        step.first_operand = 0;
        step.pending = item.pending;
      } else if (item.verb != Verb::fold) {
        step.pending = first_pending + item.pending;
        uint32_t& extent = extent_of[item.pending];
        shares_extent = extent != UINT32_MAX;
        if (shares_extent) step.first_operand = extent;
        extent = step.first_operand;
      }
      if (!shares_extent) program_.operands.insert(program_.operands.end(), item.operands.begin(), item.operands.end());
      result.max_lag = std::max(result.max_lag, step.lag);
      program_.steps.push_back(step);
    }
    program_.stages.insert(program_.stages.end(), draft.stages.begin(), draft.stages.end());
    program_.loops.push_back(result);
  }

  // ---- operands

  static bool is_local(const ProgramOperand& operand) { return operand.kind == ProgramOperand::Kind::local; }

  Carrier carrier(uint32_t peer) const {
    return peer < capabilities_.carrier.size() ? capabilities_.carrier[peer] : Carrier::messages;
  }
  bool by_message(const Operand& operand) const {
    return operand.kind == Operand::Kind::message && carrier(operand.peer) == Carrier::messages;
  }

  uint16_t division(Slice slice) {
    const Division wanted{slice.cut, slice.parts};
    auto found = std::find(program_.divisions.begin(), program_.divisions.end(), wanted);
    if (found == program_.divisions.end()) found = program_.divisions.insert(found, wanted);
    return static_cast<uint16_t>(found - program_.divisions.begin());
  }

  void keep_window(BufferId buffer, Slice slice) {
    if (slice == kNothing) return;
    program_.windows[static_cast<size_t>(buffer)] = {division(slice), slice.first, slice.last};
  }

  ProgramOperand extent(ProgramOperand::Kind kind, Slice slice) {
    ProgramOperand result;
    result.kind = kind;
    if (slice.parts == 0) {
      result.division = ProgramOperand::kNoData;
      return result;
    }
    result.division = division(slice);
    result.first = slice.first;
    result.last = slice.last;
    return result;
  }

  ProgramOperand local(const Operand& operand) {
    ProgramOperand result = extent(ProgramOperand::Kind::local, operand.slice);
    result.buffer = operand.buffer;
    return result;
  }

  ProgramOperand slot(const Operand& operand, uint8_t direction) {
    ProgramOperand result = extent(ProgramOperand::Kind::slot, operand.slice);
    result.index = channel(operand.peer, direction);
    return result;
  }

  ProgramOperand new_stage(Draft& draft, Slice slice, uint16_t depth) {
    ProgramOperand result = extent(ProgramOperand::Kind::staged, slice);
    result.index = static_cast<uint32_t>(program_.stages.size() + draft.stages.size());
    draft.stages.push_back({lane_, depth});
    return result;
  }

  /// Without prefetch a received segment is folded at once: one stage for each source of a step serves all loops of the lane.
  ProgramOperand shared_stage(Draft& draft, Slice slice, size_t nth) {
    if (nth < shared_stages_.size()) {
      ProgramOperand result = extent(ProgramOperand::Kind::staged, slice);
      result.index = shared_stages_[nth];
      return result;
    }
    const ProgramOperand result = new_stage(draft, slice, 1);
    shared_stages_.push_back(result.index);
    return result;
  }

  uint32_t channel(uint32_t peer, uint8_t direction) {
    const auto [entry, is_new] = channel_of_.try_emplace({peer, direction}, static_cast<uint32_t>(program_.channels.size()));
    if (is_new) program_.channels.push_back({peer, direction, carrier(peer), lane_});
    return entry->second;
  }

  const Schedule& schedule_;
  const Capabilities& capabilities_;
  const bool alias_;
  Program program_;
  uint16_t lane_ = 0;
  std::map<std::pair<uint32_t, uint8_t>, uint32_t> channel_of_;
  std::vector<uint32_t> shared_stages_;
  std::vector<OpenSend> open_sends_;
};

}  // namespace

Program lower(const Schedule& schedule, const Capabilities& capabilities) { return Lowering(schedule, capabilities).run(); }

}  // namespace tutti
