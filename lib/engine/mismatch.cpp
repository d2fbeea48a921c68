// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of ranks that do not go together: seen by a mark or a length, or by a peer's question; named on every rank.
#include <algorithm>

#include "engine/engine.hpp"

namespace tutti {
namespace {

constexpr uint64_t kAnswerNs = 1'000'000'000;  // then a mismatch is told without the other's call

NoticeCall call_of(uint32_t world_rank, const CallRecord* record) {
  NoticeCall result;
  result.rank = world_rank;
  if (!record) return result;
  result.mark = record->mark;
  result.sequence = record->sequence;
  result.call = record->call;
  return result;
}

/// Of all our calls the one that does not go with theirs; else the one that sent the message; else the last.
const CallRecord* call_in_question(const CallLog& calls, const NoticeCall& theirs, uint32_t message_mark) {
  const CallRecord* same_number = calls.find(theirs.sequence);
  if (same_number && !agree(same_number->call, theirs.call)) return same_number;
  if (const CallRecord* sender = calls.find_mark(message_mark)) return sender;
  return same_number ? same_number : calls.last();
}

}  // namespace

NoticeCall Engine::own_call(const Group& group) const {
  return call_of(fabric_.rank(), group.calls_.find(group.collectives_ended_ + 1));
}

// True: the group has failed, or the peer was asked; its answer, or that there is none, ends the group. Until then its
// collectives stand still.
bool Engine::inquire(Group& group, Operation& operation) {
  if (const NoticeCall* calls = operation.disputed()) {
    conclude(group, calls[0], calls[1]);
    return true;
  }
  const uint32_t peer = operation.culprit();
  if (operation.failure().code() != TUTTI_ERR_MISMATCH || peer >= fabric_.size()) return false;
  if (fabric_.route(peer).state != PeerRoute::State::alive) {
    conclude(group, own_call(group), call_of(peer, nullptr));
    return true;
  }
  Notice notice;
  notice.kind = Notice::inquiry;
  notice.id = group.id_;
  notice.calls[0] = own_call(group);
  notice.calls[1].mark = operation.foreign_mark();
  tell(peer, notice);
  send_notices();
  group.asked_about_ = {peer, options_.clock->now_ns() + kAnswerNs};
  operation.hold();
  return true;
}

void Engine::handle_inquiry(const Group& group, const PendingNotice& received) {
  Notice answer;
  answer.kind = Notice::answer;
  answer.id = group.id_;
  answer.calls[0] =
      call_of(fabric_.rank(), call_in_question(group.calls_, received.notice.calls[0], received.notice.calls[1].mark));
  tell(received.peer, answer);
}

void Engine::handle_answer(Group& group, const PendingNotice& received) {
  if (group.asked_about_.peer != received.peer) return;
  NoticeCall theirs = received.notice.calls[0];
  theirs.rank = received.peer;
  const CallRecord* same_number = group.calls_.find(theirs.sequence);
  const bool differs = same_number && !agree(same_number->call, theirs.call);
  conclude(group, differs ? call_of(fabric_.rank(), same_number) : own_call(group), theirs);
}

// A peer that waits in a call that does not go with ours of the same number would wait for ever: their messages never meet.
void Engine::compare_calls(Group& group, const PendingNotice& received) {
  NoticeCall theirs = received.notice.calls[0];
  theirs.rank = received.peer;
  const CallRecord* ours = group.calls_.find(theirs.sequence);
  if (!ours || agree(ours->call, theirs.call)) return;
  // The parts of a group have one number, and a rank may be some of them ahead: their marks tell what does not go together.
  const bool grouped = (ours->call.flags & theirs.call.flags & CallSignature::kGrouped) != 0;
  if (grouped && ours->call.part != theirs.call.part) return;
  conclude(group, call_of(fabric_.rank(), ours), theirs);
}

bool Engine::inquiry_over(Group& group, uint64_t now_ns) {
  const uint32_t peer = group.asked_about_.peer;
  if (peer == Group::kNobody) return false;
  const bool left = std::any_of(group.departed_.begin(), group.departed_.end(), [&](const Group::Departed& departed) {
    return group.channels_.world_ranks()[departed.rank] == peer;
  });
  if (!left && fabric_.route(peer).state == PeerRoute::State::alive && now_ns < group.asked_about_.give_up_ns) return false;
  conclude(group, own_call(group), call_of(peer, nullptr));
  return true;
}

void Engine::conclude(Group& group, const NoticeCall& ours, const NoticeCall& theirs) {
  if (group.failed_.load(std::memory_order_relaxed)) return;
  group.disputed_[0] = ours;
  group.disputed_[1] = theirs;
  fail(group, mismatch(group, group.disputed_), theirs.rank);
}

Status Engine::mismatch(const Group& group, const NoticeCall (&calls)[2]) const {
  const bool swap = calls[1].rank < calls[0].rank;  // so that all ranks say the same
  const NoticeCall& first = calls[swap ? 1 : 0];
  const NoticeCall& second = calls[swap ? 0 : 1];
  const auto said = [&](const NoticeCall& call) {
    const std::string rank = who(group, call.rank);
    return call.sequence == 0 ? rank + " another call, which it has not told" : rank + " " + text(call.call, call.sequence);
  };
  const bool known = first.sequence != 0 && second.sequence != 0;
  const bool counts = known && first.mark == second.mark;
  const std::string what = counts  ? "one collective with different counts for each other"
                           : known ? difference(first.call, second.call)
                                   : "different collectives, or one with different arguments";
  return error(TUTTI_ERR_MISMATCH, "ranks called {}: {}; {}", what, said(first), said(second));
}

}  // namespace tutti
