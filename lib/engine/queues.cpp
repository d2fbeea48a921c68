// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// What the driver does with the operations of a group.
#include <algorithm>
#include <exception>

#include "engine/engine.hpp"

namespace tutti {

bool Engine::advance(Group& group) noexcept {
  try {
    return advance_queues(group);
  } catch (...) {
    fail_for_exception(group);
    return true;
  }
}

void Engine::fail_for_exception(Group& group) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    fail(group, Status(TUTTI_ERR_MEMORY), Group::kNobody);
  } catch (const std::exception& e) {
    options_.log->error("communicator {:x}: {}", group.id_, e.what());
    fail(group, Status(TUTTI_ERR_INTERNAL), Group::kNobody);
  } catch (...) {
    fail(group, Status(TUTTI_ERR_INTERNAL), Group::kNobody);
  }
}

bool Engine::advance_queues(Group& group) {
  bool moved = false;
  const auto finish_one = [this](Operation& operation, Status status) { finish(operation, std::move(status)); };
  while (Operation* operation = group.head_) {
    if (!operation->begun_) {
      if (Status begun = operation->begin(group.calls_.open(group.collectives_ended_ + 1)); !begun.ok()) {
        fail(group, std::move(begun), Group::kNobody);
        return true;
      }
      operation->begun_ = true;
    }
    const Execution::Outcome outcome = operation->advance(moved);
    if (outcome == Execution::Outcome::blocked) break;
    if (outcome == Execution::Outcome::failed) {
      handle_failed(group, *operation);
      return true;
    }
    group.head_ = operation->next_;
    if (!group.head_) group.tail_ = nullptr;
    ++group.collectives_ended_;
    group.asked_at_ns_ = 0;
    moved = true;
    finish(*operation, Status());
  }
  if (!group.messages_.idle()) {
    group.messages_.advance(moved, finish_one);
    if (!group.messages_.broken().ok()) {
      handle_events();
      fail(group, group.messages_.broken(), group.messages_.culprit());
      return true;
    }
  }
  if (!group.head_ && group.messages_.idle()) deactivate(group);
  return moved;
}

void Engine::handle_failed(Group& group, Operation& operation) noexcept {
  handle_events();  // the transport may have said more about it
  try {
    if (!group.failed_.load(std::memory_order_relaxed) && !inquire(group, operation))
      fail(group, operation.failure(), operation.culprit());
  } catch (...) {
    fail_for_exception(group);
  }
}

void Engine::finish(Operation& operation, Status status) noexcept {
  completed_some_ = true;
  ++counters_.operations;
  operation.complete(std::move(status));
}

void Engine::activate(Group& group) noexcept {
  if (group.active_) return;
  group.active_ = true;
  active_.push_back(&group);  // add() has made room
}

void Engine::deactivate(Group& group) noexcept {
  if (!group.active_) return;
  group.active_ = false;
  if (active_.back() == &group)
    active_.pop_back();
  else
    active_.erase(std::find(active_.begin(), active_.end(), &group));
}

Deadline Engine::earliest_deadline() const {
  Deadline earliest;
  for (const Group* group : active_) {
    for (const Operation* operation = group->head_; operation; operation = operation->next_)
      earliest.at_ns = std::min(earliest.at_ns, operation->deadline_.at_ns);
    if (!group->messages_.idle()) earliest.at_ns = std::min(earliest.at_ns, group->messages_.earliest_deadline().at_ns);
  }
  return earliest;
}

}  // namespace tutti
