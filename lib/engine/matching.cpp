// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/matching.hpp"

namespace tutti {
namespace {

PostedReceive* first_that_takes(const Matching::Receives& receives, const Envelope& message) noexcept {
  PostedReceive* one = receives.front();
  while (one && !one->takes(message)) one = one->next;
  return one;
}

}  // namespace

void Matching::post(PostedReceive& receive) noexcept {
  receive.order = ++posted_count_;
  queue_of(receive).push_back(receive);
}

PostedReceive* Matching::take(const Envelope& message) noexcept {
  PostedReceive* named = first_that_takes(posted_[message.source], message);
  PostedReceive* any = first_that_takes(any_, message);
  PostedReceive* first = !any || (named && named->order < any->order) ? named : any;
  if (first) withdraw(*first);
  return first;
}

void Matching::add(WaitingMessage& message) noexcept {
  waiting_.push_back(message);
  waiting_from_[message.envelope.source].push_back(message);
}

WaitingMessage* Matching::find(const PostedReceive& receive) const noexcept {
  const bool any = receive.from == kAnySource;
  WaitingMessage* one = any ? waiting_.front() : waiting_from_[receive.from].front();
  while (one && !receive.takes(one->envelope)) one = any ? one->next : one->next_of_source;
  return one;
}

void Matching::remove(WaitingMessage& message) noexcept {
  waiting_.remove(message);
  waiting_from_[message.envelope.source].remove(message);
}

}  // namespace tutti
