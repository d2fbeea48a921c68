// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/status.hpp"
#include "engine/fabric.hpp"
#include "engine/group.hpp"
#include "engine/notice.hpp"
#include "engine/operation.hpp"

namespace tutti {

struct EngineOptions {
  const Clock* clock = nullptr;
  const Log* log = nullptr;
  uint64_t spin_ns = 50'000;  ///< how long a wait polls before it sleeps
  bool yield = false;         ///< more ranks than cores on this node: give the core away between polls
  bool timer = false;         ///< fd() also tells when time has passed, for who does not see when to call again
};

struct EngineCounters {
  uint64_t operations = 0;  ///< completed
  uint64_t sleeps = 0;      ///< times that a driver slept on descriptors
  uint64_t failures = 0;    ///< groups that failed
};

/// What transports tell in the midst of other work, to be handled afterwards. Keeps its memory: a few at a time allocate nothing.
template <class Event>
class Inbox {
 public:
  Inbox() {
    waiting_.reserve(kRoom);
    spare_.reserve(kRoom);
  }
  bool empty() const noexcept { return waiting_.empty(); }
  /// Throws std::bad_alloc.
  void push_back(Event event) { waiting_.push_back(std::move(event)); }
  /// handle(event), which does not throw, and may lead to more events.
  template <class Handle>
  void handle_all(Handle&& handle) noexcept {
    while (!waiting_.empty()) {
      std::vector<Event> now;
      now.swap(spare_);
      now.swap(waiting_);
      for (const Event& event : now) handle(event);
      now.clear();
      if (now.capacity() > spare_.capacity()) spare_.swap(now);
    }
  }

 private:
  static constexpr size_t kRoom = 32;
  std::vector<Event> waiting_;
  std::vector<Event> spare_;  // empty
};

/// The one executor. At most one thread drives it at a time: whoever waits tries to become the driver and moves everything of the
/// context, its own operation and others'; the rest sleep until their operation is done or the role is free. A blocking call that
/// finds the role free runs on its caller's thread from beginning to end.
///
/// No wake-up is lost: a sleeper publishes that it sleeps (seq_cst), looks once more at what it waits for, and sleeps; a waker
/// publishes the event first and then looks for sleepers.
///
/// Driving never throws: for want of memory a group fails, with TUTTI_ERR_MEMORY, and only that.
class Engine {
 public:
  Engine(Fabric& fabric, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Opens what sleeping needs, once the fabric has its transports.
  Status open();

  // ---- any thread
  void add(Group& group);
  /// Ends what is outstanding with TUTTI_ERR_ABORTED and closes the channels; afterwards the group may go.
  void remove(Group& group);
  /// Hands an operation over. Never waits. group: a registered one.
  void submit(Group& group, Operation& operation);
  void submit(Group& group, CollectiveOperation& operation);
  /// Returns when it is done; drives the engine meanwhile, or sleeps while another thread does.
  void wait(Operation& operation);
  /// submit and wait.
  void run(Group& group, Operation& operation);
  void run(Group& group, CollectiveOperation& operation);
  /// Likewise with two at once.
  void run_both(Group& group, Operation& first, Operation& second);
  /// Ends a receive that was submitted and has met no message with TUTTI_ERR_CANCELLED; leaves any other as it is.
  void cancel(MessageOperation& receive);
  /// Drives as far as possible without blocking, if nobody else does.
  void poke();
  /// Fails the group here and on all its members with TUTTI_ERR_ABORTED. Does not wait.
  void abort(Group& group);
  /// This rank will not make the group `id`, which others of `members` may be waiting in.
  void never_made(uint64_t id, const std::vector<uint32_t>& members);
  /// Likewise, for an error of its own, of which `members` (world ranks) are told at once: they have made it, or are about to.
  void failed_to_make(uint64_t id, const std::vector<uint32_t>& members, tutti_status_t code);
  /// Sees to it that news of failures is on its way before everything is closed.
  void send_last_notices(Deadline deadline);
  /// Runs `work` with the exclusive hold of fabric and groups.
  void exclusively(const std::function<void()>& work);
  EngineCounters counters();

  // ---- for whoever sleeps on the descriptor: the control thread or an embedder
  /// Readable while armed() and something may have happened.
  int fd() const noexcept { return event_fd_; }
  /// Drives, then arms: from then on the descriptor tells. The result is when to call again even if it does not (on the engine's
  /// clock; UINT64_MAX: never); nullopt: somebody else drives, and will go on.
  std::optional<uint64_t> progress_and_arm();
  /// Rises with every call that drove.
  uint64_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }
  /// Called (with no lock held): true, when operations stay behind that nobody drives; false, when a call undid the arming of
  /// progress_and_arm(). Without a hook the descriptor tells.
  void set_watcher(std::function<void(bool left_behind)> hook) { watcher_ = std::move(hook); }
  /// Whether somebody drives now.
  bool driven() const noexcept { return role_.load(std::memory_order_seq_cst); }

  // ---- callbacks of transports, from within fabric calls
  void on_peer_gone(uint32_t peer, int cause, std::string text) noexcept;
  void on_notice(uint32_t peer, const void* bytes, size_t count) noexcept;
  /// Something was to be told, but there was no memory to keep it.
  void on_events_lost() noexcept { events_lost_ = true; }

 private:
  static constexpr uint64_t kRetryNs = 5'000'000;  // for notices that a transport did not take yet
  struct Gone {
    uint32_t peer;
    int cause;
    std::string text;
  };
  struct PendingNotice {
    uint32_t peer;
    Notice notice;
  };
  struct Left {  // a group that was here
    uint64_t id;
    uint64_t collectives;
    std::vector<uint64_t> messages;
    std::vector<uint32_t> world_ranks;
    Notice failure;  // code 0: it had not failed
    NoticeCall last_call;
  };

  void leave_in_queue(Operation& operation) noexcept;
  bool drive_for(Group& group, Operation& operation) noexcept;
  bool is_alone(const Group& group) const noexcept;
  bool run_alone(Group& group, CollectiveOperation& operation, uint32_t most_polls) noexcept;
  bool take_role() noexcept;
  bool try_drive() noexcept;
  void leave_role() noexcept;
  void stop_driving() noexcept;
  bool pump(bool all) noexcept;
  void drive_until(const Operation* operation) noexcept;
  void sleep(const Operation* operation) noexcept;
  void enqueue(Operation& operation) noexcept;
  void accept_submitted() noexcept;
  void accept(Operation& operation) noexcept;
  bool advance(Group& group) noexcept;
  bool advance_queues(Group& group);
  uint64_t next_ns() const;
  bool look_after_groups() noexcept;
  bool look_after(Group& group, uint64_t now_ns);
  bool waits_in_vain(Group& group, const std::vector<uint32_t>& awaited);
  bool all_have_left(const Group& group) const;
  bool waits_for(const Group& group, uint32_t peer) const;
  bool is_known_to_have_failed(uint32_t peer) const;
  Status lost(const Group& group, uint32_t peer) const;
  std::string explain_wait(const Group& group, const std::vector<uint32_t>& awaited) const;
  void end_outstanding(Group& group, const Status& why) noexcept;
  void handle_events() noexcept;
  void handle_abort_wanted() noexcept;
  void handle_gone(const Gone& gone);
  void handle_notice(const PendingNotice& received);
  void handle_departed(Group& group, const PendingNotice& received, uint32_t rank);
  void handle_failed(Group& group, const PendingNotice& received);
  void answer_question(Group& group, const PendingNotice& received);
  void answer_for_left(const PendingNotice& received);
  NoticeCall own_call(const Group& group) const;
  bool inquire(Group& group, Operation& operation);
  void handle_inquiry(const Group& group, const PendingNotice& received);
  void handle_answer(Group& group, const PendingNotice& received);
  void compare_calls(Group& group, const PendingNotice& received);
  bool inquiry_over(Group& group, uint64_t now_ns);
  void conclude(Group& group, const NoticeCall& ours, const NoticeCall& theirs);
  Status mismatch(const Group& group, const NoticeCall (&calls)[2]) const;
  void remember(Left left);
  void fail(Group& group, Status why, uint32_t culprit) noexcept;
  void fail_for_exception(Group& group) noexcept;
  static Notice failure_notice(const Group& group);
  void activate(Group& group) noexcept;
  void deactivate(Group& group) noexcept;
  void handle_failed(Group& group, Operation& operation) noexcept;
  void finish(Operation& operation, Status status) noexcept;
  /// For who drives, as all that writes it is: no locked instruction.
  void count_drive() noexcept { generation_.store(generation_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void tell(uint32_t peer, const Notice& notice);
  void flood(Group& group, const Notice& notice);
  void send_notices() noexcept;
  Group* find(uint64_t id) const noexcept;
  Deadline earliest_deadline() const;
  void wake_waiters() noexcept;
  void kick() noexcept;
  void clear_kick() noexcept;
  void set_timer(uint64_t at_ns) noexcept;
  std::string who(const Group& group, uint32_t world_rank) const;

  Fabric& fabric_;
  EngineOptions options_;
  uint32_t polls_of_slots_;
  int event_fd_ = -1;  // epoll: the transports' descriptors, kick_fd_ and timer_fd_
  int kick_fd_ = -1;
  int timer_fd_ = -1;  // only for who does not see when to call again

  std::atomic<bool> role_{false};
  std::atomic<bool> sleeping_{false};  // somebody sleeps on event_fd_
  std::atomic<uint64_t> generation_{0};
  std::atomic<bool> attention_{false};    // an abort is wanted
  std::atomic<bool> kicked_{false};       // kick_fd_ has been written and not yet read
  std::atomic<bool> turned_away_{false};  // progress_and_arm() found somebody else driving
  std::atomic<uint32_t> submitted_count_{0};
  std::atomic<uint32_t> waiter_count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  Operation* submitted_head_ = nullptr;  // under mutex_
  Operation* submitted_tail_ = nullptr;

  // The driver's.
  bool armed_ = false;
  bool watched_ = false;    // somebody relies on what progress_and_arm() armed
  bool owes_kick_ = false;  // somebody did, until a call undid it
  bool events_lost_ = false;
  uint64_t timer_at_ns_ = Deadline::kNever;
  bool completed_some_ = false;
  uint32_t pumps_ = 0;
  uint64_t looked_after_ns_ = 0;
  std::vector<Group*> groups_;
  std::vector<Group*> active_;
  Inbox<Gone> gone_;
  Inbox<PendingNotice> received_;
  std::vector<PendingNotice> to_send_;
  std::vector<PendingNotice> early_;  // about groups that do not exist here yet
  std::deque<Left> left_;             // groups that existed
  EngineCounters counters_;
  std::function<void(bool)> watcher_;
};

}  // namespace tutti
