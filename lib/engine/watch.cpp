// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine's other half: peers that go, groups that fail, deadlines, and what engines tell each other about these.
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>

#include "engine/engine.hpp"

namespace tutti {
namespace {

constexpr uint64_t kFirstQuestionNs = 250'000'000;  // a wait this long makes us ask the peers
constexpr uint64_t kNextQuestionNs = 1'000'000'000;
constexpr size_t kMostEarly = 64;
constexpr size_t kMostLeft = 1024;
constexpr size_t kMostToSend = 4096;

}  // namespace

void Engine::add(Group& group) {
  exclusively([this, &group] {
    active_.reserve(groups_.size() + 1);  // activate() must not fail
    groups_.push_back(&group);
    // What was said about it before it existed here.
    std::vector<PendingNotice> early;
    early.swap(early_);
    for (const PendingNotice& notice : early) handle_notice(notice);
    for (const uint32_t peer : group.channels_.world_ranks())
      if (const auto state = fabric_.route(peer).state;
          state == PeerRoute::State::failed || state == PeerRoute::State::unreachable)
        fail(group, lost(group, peer), peer);
  });
}

void Engine::remove(Group& group) {
  exclusively([this, &group] {
    Status why(TUTTI_ERR_ABORTED);
    try {
      Notice failure;
      if (group.failed_.load(std::memory_order_relaxed)) failure = failure_notice(group);
      NoticeCall last_call;
      if (const CallRecord* last = group.calls_.last()) last_call = {fabric_.rank(), last->mark, last->sequence, last->call};
      remember({group.id_, group.collectives_ended_, group.messages_.sent_counts(), group.channels_.world_ranks(), failure,
                last_call});
      why = error(TUTTI_ERR_ABORTED, "the communicator was destroyed while the operation was outstanding");
    } catch (const std::bad_alloc&) {
      // Then peers that ask have no answer, and need their timeout.
    }
    end_outstanding(group, why);
    groups_.erase(std::remove(groups_.begin(), groups_.end(), &group), groups_.end());
  });
}

void Engine::never_made(uint64_t id, const std::vector<uint32_t>& members) {
  exclusively([&] { remember({id, 0, {}, members, Notice(), NoticeCall()}); });
}

void Engine::failed_to_make(uint64_t id, const std::vector<uint32_t>& members, tutti_status_t code) {
  exclusively([&] {
    Notice failure;
    failure.kind = Notice::failed;
    failure.id = id;
    failure.code = code;
    failure.culprit = Group::kNobody;
    for (const uint32_t member : members)
      if (member != fabric_.rank()) tell(member, failure);
    remember({id, 0, {}, members, failure, NoticeCall()});
  });
}

void Engine::remember(Left left) {
  left_.push_back(std::move(left));
  if (left_.size() > kMostLeft) left_.pop_front();
}

void Engine::abort(Group& group) {
  group.abort_wanted_.store(true, std::memory_order_seq_cst);
  attention_.store(true, std::memory_order_seq_cst);
  if (try_drive()) {
    pump(false);
    stop_driving();
  } else if (sleeping_.load(std::memory_order_seq_cst)) {
    kick();
  }
}

void Engine::on_peer_gone(uint32_t peer, int cause, std::string text) noexcept {
  try {
    gone_.push_back({peer, cause, std::move(text)});
  } catch (const std::bad_alloc&) {
    events_lost_ = true;
  }
}

void Engine::on_notice(uint32_t peer, const void* bytes, size_t count) noexcept {
  PendingNotice received{peer, {}};
  if (count != sizeof received.notice || peer >= fabric_.size()) return;
  std::memcpy(&received.notice, bytes, count);
  if (received.notice.magic != Notice::kMagic) return;
  try {
    received_.push_back(received);
  } catch (const std::bad_alloc&) {
    events_lost_ = true;
  }
}

std::string Engine::who(const Group& group, uint32_t world_rank) const {
  const std::vector<uint32_t>& members = group.channels_.world_ranks();
  const auto member = std::find(members.begin(), members.end(), world_rank);
  const auto rank = static_cast<uint32_t>(member - members.begin());
  if (member == members.end() || rank == world_rank) return fmt::format("rank {}", world_rank);
  return fmt::format("rank {} (rank {} of the job)", rank, world_rank);
}

// ---- failing --------------------------------------------------------------------------------------------------------

void Engine::end_outstanding(Group& group, const Status& why) noexcept {
  // The channels go first: after that no transport touches the callers' buffers.
  group.channels_.close_all();
  Operation* operation = group.head_;
  group.head_ = group.tail_ = nullptr;
  while (operation) {
    Operation* next = operation->next_;
    if (operation->begun_) operation->abandon();
    finish(*operation, copy_of(why));
    operation = next;
  }
  group.messages_.fail_all(why, [this](Operation& message, Status status) { finish(message, std::move(status)); });
  deactivate(group);
}

Notice Engine::failure_notice(const Group& group) {
  Notice notice;
  notice.kind = Notice::failed;
  notice.id = group.id_;
  notice.code = group.failure_.code();  // written by the driver alone
  notice.culprit = group.culprit_;
  std::copy(std::begin(group.disputed_), std::end(group.disputed_), notice.calls);
  return notice;
}

void Engine::fail(Group& group, Status why, uint32_t culprit) noexcept {
  if (group.failed_.load(std::memory_order_relaxed)) return;
  ++counters_.failures;
  options_.log->info("communicator {:x} failed: {}", group.id_, why.message());
  {
    const std::lock_guard<std::mutex> hold(group.failure_mutex_);
    group.failure_ = copy_of(why);
  }
  group.culprit_ = culprit;
  group.failed_.store(true, std::memory_order_release);
  try {
    flood(group, failure_notice(group));
  } catch (const std::bad_alloc&) {
    // Who waits for us asks after a while, and is answered.
  }
  end_outstanding(group, why);
}

// To all it has a channel with, since these may wait for us, and along powers of two, so that everybody has the news after
// log2(size) hops even if many channels were never opened.
void Engine::flood(Group& group, const Notice& notice) {
  std::vector<uint32_t> targets = group.channels_.neighbours();
  for (uint32_t distance = 1; distance < group.size(); distance *= 2) {
    targets.push_back((group.rank_ + distance) % group.size());
    targets.push_back((group.rank_ + group.size() - distance) % group.size());
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  for (const uint32_t rank : targets)
    if (rank != group.rank_) tell(group.channels_.world_ranks()[rank], notice);
}

void Engine::tell(uint32_t peer, const Notice& notice) {
  if (to_send_.size() < kMostToSend) to_send_.push_back({peer, notice});
}

void Engine::send_notices() noexcept {
  size_t kept = 0;
  for (const PendingNotice& pending : to_send_)
    if (fabric_.notify(pending.peer, &pending.notice, sizeof pending.notice) == TUTTI_TP_AGAIN) to_send_[kept++] = pending;
  to_send_.resize(kept);
}

void Engine::send_last_notices(Deadline deadline) {
  const auto news = [this] {
    return std::any_of(to_send_.begin(), to_send_.end(), [](const PendingNotice& p) { return p.notice.kind == Notice::failed; });
  };
  if (!try_drive()) return;
  while (news() && !deadline.passed(*options_.clock)) {
    fabric_.arm();
    armed_ = true;
    epoll_event event{};
    const uint64_t soon = options_.clock->now_ns() + kRetryNs;
    if (!pump(true)) ::epoll_wait(event_fd_, &event, 1, Deadline{std::min(soon, deadline.at_ns)}.poll_ms(*options_.clock));
  }
  to_send_.clear();
  stop_driving();
}

// ---- events ---------------------------------------------------------------------------------------------------------

// One that cannot be handled for want of memory fails what it is about, and only that.
void Engine::handle_events() noexcept {
  gone_.handle_all([this](const Gone& gone) {
    try {
      handle_gone(gone);
    } catch (const std::bad_alloc&) {
      events_lost_ = true;
    }
  });
  received_.handle_all([this](const PendingNotice& received) {
    try {
      handle_notice(received);
    } catch (const std::bad_alloc&) {
      // About one that is not here yet: who waits in it asks, and is told again.
      const bool says_why = received.notice.kind == Notice::failed && received.notice.code < 0;
      Group* group = find(received.notice.id);
      if (group != nullptr) fail(*group, Status(says_why ? received.notice.code : TUTTI_ERR_MEMORY), Group::kNobody);
    }
  });
  if (attention_.exchange(false, std::memory_order_seq_cst)) handle_abort_wanted();
  if (!to_send_.empty()) send_notices();
  if (!events_lost_) return;
  // Nobody knows any more what was to be told: no group may wait for it.
  events_lost_ = false;
  for (Group* group : groups_) fail(*group, Status(TUTTI_ERR_MEMORY), Group::kNobody);
}

void Engine::handle_abort_wanted() noexcept {
  for (Group* group : groups_) {
    if (!group->abort_wanted_.exchange(false, std::memory_order_seq_cst)) continue;
    Status why(TUTTI_ERR_ABORTED);
    try {
      why = error(TUTTI_ERR_ABORTED, "the communicator was aborted here");
    } catch (const std::bad_alloc&) {
      // Then without words.
    }
    fail(*group, std::move(why), fabric_.rank());
  }
}

void Engine::handle_gone(const Gone& gone) {
  if (!fabric_.mark_gone(gone.peer, gone.cause, gone.text)) return;
  options_.log->info("rank {} is gone: {}", gone.peer, gone.text);
  if (gone.cause == TUTTI_TP_GONE_LEFT) return;  // see look_after
  // One that cannot be reached may have ended in order before anybody here needed it: that is for those alone who wait for it.
  // Had it failed, those who had a connection say so.
  const bool unreachable = gone.cause == TUTTI_TP_GONE_UNREACHABLE && !is_known_to_have_failed(gone.peer);
  for (Group* group : std::vector<Group*>(groups_)) {
    const std::vector<uint32_t>& members = group->channels_.world_ranks();
    if (std::find(members.begin(), members.end(), gone.peer) == members.end()) continue;
    if (unreachable && !waits_for(*group, gone.peer)) continue;
    fail(*group, lost(*group, gone.peer), gone.peer);
  }
}

Status Engine::lost(const Group& group, uint32_t peer) const {
  const PeerRoute& route = fabric_.route(peer);
  if (route.state == PeerRoute::State::left)
    return error(TUTTI_ERR_PEER_FAILED, "{} has left, and this call waits for it: {}", who(group, peer), route.gone_text);
  if (route.state == PeerRoute::State::unreachable)
    return error(TUTTI_ERR_CONNECT, "{} cannot be reached: {}", who(group, peer), route.gone_text);
  return error(TUTTI_ERR_PEER_FAILED, "{} has failed: {}", who(group, peer), route.gone_text);
}

/// By what others said of it.
bool Engine::is_known_to_have_failed(uint32_t peer) const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const Group* group) {
    return group->failed_.load(std::memory_order_relaxed) && group->culprit_ == peer &&
           group->failure_.code() == TUTTI_ERR_PEER_FAILED;
  });
}

/// Something that names the peer, or has met its link.
bool Engine::waits_for(const Group& group, uint32_t peer) const {
  const std::vector<uint32_t> messages = group.messages_.waiting_for();
  if (std::find(messages.begin(), messages.end(), peer) != messages.end() || group.messages_.culprit() == peer) return true;
  if (!group.head_ || !group.head_->begun_) return false;
  const std::vector<uint32_t> awaited = group.head_->waiting_for();
  return std::find(awaited.begin(), awaited.end(), peer) != awaited.end() || group.head_->culprit() == peer;
}

Group* Engine::find(uint64_t id) const noexcept {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const Group* g) { return g->id_ == id; });
  return found == groups_.end() ? nullptr : *found;
}

void Engine::handle_notice(const PendingNotice& received) {
  const Notice& notice = received.notice;
  Group* group = find(notice.id);
  const bool asks = notice.kind == Notice::question || notice.kind == Notice::inquiry;
  if (!group) {
    if (asks) return answer_for_left(received);
    if (notice.kind != Notice::failed) return;
    const auto same = [&](const auto& other) { return other.id == notice.id; };
    if (std::any_of(left_.begin(), left_.end(), same)) return;
    const auto said = [&](const PendingNotice& early) { return early.notice.id == notice.id && early.peer == received.peer; };
    if (std::any_of(early_.begin(), early_.end(), said)) return;
    if (early_.size() >= kMostEarly) early_.erase(early_.begin());
    early_.push_back(received);
    return;
  }
  // Only members have a say.
  const std::vector<uint32_t>& members = group->channels_.world_ranks();
  const auto member = std::find(members.begin(), members.end(), received.peer);
  if (member == members.end()) return;
  if (asks) answer_question(*group, received);
  if (notice.kind == Notice::answer) handle_answer(*group, received);
  if (notice.kind == Notice::departed) handle_departed(*group, received, static_cast<uint32_t>(member - members.begin()));
  if (notice.kind == Notice::failed) handle_failed(*group, received);
}

void Engine::handle_departed(Group& group, const PendingNotice& received, uint32_t rank) {
  const auto said = [&](const Group::Departed& departed) { return departed.rank == rank; };
  if (std::any_of(group.departed_.begin(), group.departed_.end(), said)) return;
  // Judged where the group is looked after, once nothing moves any more.
  group.departed_.push_back({rank, received.notice.collectives, received.notice.messages});
}

void Engine::handle_failed(Group& group, const PendingNotice& received) {
  const Notice& notice = received.notice;
  if (notice.code >= 0) return;
  const std::vector<uint32_t>& members = group.channels_.world_ranks();
  const bool named = std::find(members.begin(), members.end(), notice.culprit) != members.end();
  const std::string reporter = who(group, received.peer);
  if (notice.code == TUTTI_ERR_MISMATCH && notice.calls[0].sequence != 0)
    conclude(group, notice.calls[0], notice.calls[1]);
  else if (!named)
    fail(group, error(notice.code, "{} reports a failure of its own ({})", reporter, status_name(notice.code)), received.peer);
  else if (notice.code == TUTTI_ERR_TIMEOUT)
    fail(group, error(notice.code, "the timeout of {} passed", who(group, notice.culprit)), notice.culprit);
  else if (notice.code == TUTTI_ERR_ABORTED)
    fail(group, error(notice.code, "the communicator was aborted by {}", who(group, notice.culprit)), notice.culprit);
  else
    fail(group,
         error(notice.code, "{} has failed, as {} reports ({})", who(group, notice.culprit), reporter, status_name(notice.code)),
         notice.culprit);
  // Then it had not merely ended before we tried to reach it.
  if (named && notice.code == TUTTI_ERR_PEER_FAILED && fabric_.route(notice.culprit).state == PeerRoute::State::unreachable)
    handle_gone({notice.culprit, TUTTI_TP_GONE_FAILED, fabric_.route(notice.culprit).gone_text});
}

void Engine::answer_question(Group& group, const PendingNotice& received) {
  const bool was_failed = group.failed_.load(std::memory_order_relaxed);
  if (!was_failed && received.notice.kind == Notice::inquiry) return handle_inquiry(group, received);
  if (!was_failed) compare_calls(group, received);
  // Still in it; unless it has failed here and the peer, for whatever reason, has not heard of it.
  if (group.failed_.load(std::memory_order_relaxed)) tell(received.peer, failure_notice(group));
}

void Engine::answer_for_left(const PendingNotice& received) {
  const auto left = std::find_if(left_.rbegin(), left_.rend(), [&](const Left& one) { return one.id == received.notice.id; });
  if (left == left_.rend()) return;
  const auto member = std::find(left->world_ranks.begin(), left->world_ranks.end(), received.peer);
  if (member == left->world_ranks.end()) return;
  if (left->failure.code != 0) return tell(received.peer, left->failure);
  const auto rank = static_cast<size_t>(member - left->world_ranks.begin());
  Notice answer;
  answer.kind = received.notice.kind == Notice::inquiry ? Notice::answer : Notice::departed;
  answer.id = received.notice.id;
  answer.collectives = left->collectives;
  answer.messages = rank < left->messages.size() ? left->messages[rank] : 0;
  answer.calls[0] = left->last_call;
  tell(received.peer, answer);
}

// ---- deadlines and peers that left ------------------------------------------------------------------------------------

bool Engine::look_after_groups() noexcept {
  const uint64_t now = options_.clock->now_ns();
  looked_after_ns_ = now;
  bool moved = false;
  for (size_t i = 0; i < active_.size();) {
    Group* group = active_[i];
    try {
      moved |= look_after(*group, now);
    } catch (...) {
      fail_for_exception(*group);
      moved = true;
    }
    if (i < active_.size() && active_[i] == group) ++i;
  }
  if (!to_send_.empty()) send_notices();
  return moved;
}

// Runs whenever a driver is about to sleep: costs next to nothing, and allocates nothing, unless something is amiss. True:
// something moved.
bool Engine::look_after(Group& group, uint64_t now_ns) {
  Deadline earliest = group.messages_.idle() ? Deadline() : group.messages_.earliest_deadline();
  for (const Operation* operation = group.head_; operation; operation = operation->next_)
    earliest.at_ns = std::min(earliest.at_ns, operation->deadline_.at_ns);
  const bool late = earliest.at_ns <= now_ns;
  if (inquiry_over(group, late ? UINT64_MAX : now_ns)) return true;
  if (group.asked_at_ns_ == 0) group.asked_at_ns_ = now_ns + kFirstQuestionNs - kNextQuestionNs;
  const bool ask_now = static_cast<int64_t>(now_ns - group.asked_at_ns_) >= static_cast<int64_t>(kNextQuestionNs);
  const bool some_left = !group.departed_.empty() || fabric_.some_left();
  if (!ask_now && !late && !some_left) return false;
  // What a peer sent before it left may have come after the last look and before the news that it left.
  if (some_left && advance(group)) return true;
  if (!group.head_ && group.messages_.idle()) return false;

  std::vector<uint32_t> awaited;
  if (group.head_ && group.head_->begun_) awaited = group.head_->waiting_for();
  if (!group.messages_.idle()) {
    const std::vector<uint32_t> more = group.messages_.waiting_for();
    awaited.insert(awaited.end(), more.begin(), more.end());
  }
  std::sort(awaited.begin(), awaited.end());
  awaited.erase(std::unique(awaited.begin(), awaited.end()), awaited.end());
  if (waits_in_vain(group, awaited)) return true;
  if (late) {
    fail(group, error(TUTTI_ERR_TIMEOUT, "the timeout passed while waiting for {}", explain_wait(group, awaited)),
         fabric_.rank());
    return true;
  }
  if (!ask_now) return false;
  group.asked_at_ns_ = now_ns;
  Notice question;
  question.kind = Notice::question;
  question.id = group.id_;
  if (group.head_ && group.head_->begun_) question.calls[0] = own_call(group);
  // Whoever may send is asked, when a message of any is awaited.
  for (const uint32_t peer : group.messages_.waits_for_any() ? group.channels_.world_ranks() : awaited)
    if (peer != fabric_.rank() && fabric_.route(peer).state == PeerRoute::State::alive) tell(peer, question);
  return false;
}

std::string Engine::explain_wait(const Group& group, const std::vector<uint32_t>& awaited) const {
  std::string ranks;
  for (const uint32_t peer : awaited) ranks += (ranks.empty() ? "" : ", ") + who(group, peer);
  if (group.messages_.waits_for_any()) ranks += ranks.empty() ? "a message of any rank" : ", and a message of any rank";
  std::string text =
      fmt::format("{}: alive, but not in this call, or only slow; see `timeout`", ranks.empty() ? "its turn" : ranks);
  if (const uint32_t peer = group.messages_.held_back(); peer != UINT32_MAX)
    text += fmt::format(
        "; messages of {} that no receive takes are held back, since {} bytes of such have been set aside and no more than {} can"
        " be: post receives in the order of the messages",
        who(group, group.channels_.world_ranks()[peer]), group.messages_.unexpected_bytes(), PointToPoint::kUnexpectedLimitBytes);
  return text;
}

// True: the group has failed, for what it waits for will never come.
bool Engine::waits_in_vain(Group& group, const std::vector<uint32_t>& awaited) {
  // A peer that closed its endpoint delivered everything before.
  for (const uint32_t peer : awaited)
    if (fabric_.is_silent(peer)) {
      fail(group, lost(group, peer), peer);
      return true;
    }
  for (const Group::Departed& departed : group.departed_)
    if ((group.head_ && group.collectives_ended_ >= departed.collectives) ||
        group.messages_.waits_in_vain(departed.rank, departed.messages)) {
      const uint32_t peer = group.channels_.world_ranks()[departed.rank];
      fail(group, error(TUTTI_ERR_PEER_FAILED, "{} has destroyed the communicator, and this call waits for it", who(group, peer)),
           peer);
      return true;
    }
  if (group.messages_.waits_for_any() && all_have_left(group)) {
    fail(group,
         error(TUTTI_ERR_PEER_FAILED,
               "all other ranks have left or destroyed the communicator, and this call waits for a message of any"),
         group.channels_.world_ranks()[group.rank_ == 0 ? 1 : 0]);
    return true;
  }
  return false;
}

// All others, and nothing that they sent is still to come.
bool Engine::all_have_left(const Group& group) const {
  for (uint32_t rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank_ || fabric_.is_silent(group.channels_.world_ranks()[rank])) continue;
    const auto departed = std::find_if(group.departed_.begin(), group.departed_.end(),
                                       [&](const Group::Departed& one) { return one.rank == rank; });
    if (departed == group.departed_.end() || !group.messages_.has_all(rank, departed->messages)) return false;
  }
  return group.size() > 1;
}

}  // namespace tutti
