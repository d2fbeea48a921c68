// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.hpp"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>

namespace tutti {
namespace {

constexpr uint32_t kProgressEvery = 16;        // pumps that moved something between looks at the transports
constexpr uint32_t kPollsPerClock = 16;        // polls of a waiting driver between looks at the clock
constexpr uint64_t kLookAfterNs = 10'000'000;  // between looks at deadlines while something keeps moving
constexpr uint64_t kLookAfterIdleNs = 250'000'000;
constexpr uint32_t kMostRounds = 1000;
constexpr uint32_t kPollsOfSlots = 64;  // of a call by itself, before it waits as all do

inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Work that needs the driver's hold.
class Errand final : public Operation {
 public:
  explicit Errand(const std::function<void()>& work) : work_(work) {}
  bool is_errand() const noexcept override { return true; }
  Execution::Outcome advance(bool& moved) override {
    try {
      work_();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    moved = true;
    return Execution::Outcome::done;
  }
  /// For its owner, once it is done.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  const std::function<void()>& work_;
  std::exception_ptr thrown_;
};

}  // namespace

Engine::Engine(Fabric& fabric, const EngineOptions& options)
    : fabric_(fabric), options_(options), polls_of_slots_(options.yield ? 0 : kPollsOfSlots) {
  active_.reserve(64);
  groups_.reserve(64);
}

Engine::~Engine() {
  if (event_fd_ >= 0) ::close(event_fd_);
  if (kick_fd_ >= 0) ::close(kick_fd_);
  if (timer_fd_ >= 0) ::close(timer_fd_);
}

Status Engine::open() {
  kick_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (kick_fd_ < 0) return system_error("eventfd", errno);
  event_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (event_fd_ < 0) return system_error("epoll_create1", errno);
  std::vector<int> descriptors = fabric_.descriptors();
  descriptors.push_back(kick_fd_);
  if (options_.timer) {
    timer_fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_fd_ < 0) return system_error("timerfd_create", errno);
    descriptors.push_back(timer_fd_);
  }
  for (const int fd : descriptors) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(event_fd_, EPOLL_CTL_ADD, fd, &event) != 0) return system_error("epoll_ctl", errno);
  }
  return Status();
}

// ---- the role -------------------------------------------------------------------------------------------------------

bool Engine::take_role() noexcept {
  if (role_.load(std::memory_order_seq_cst) || role_.exchange(true, std::memory_order_seq_cst)) return false;
  if (armed_) {
    fabric_.disarm();
    armed_ = false;
  }
  return true;
}

bool Engine::try_drive() noexcept {
  if (!take_role()) return false;
  if (watched_) {  // once for many calls: until it has armed again
    watched_ = false;
    count_drive();  // so that the watcher sees that calls come
    if (watcher_)
      watcher_(false);
    else
      owes_kick_ = true;
  }
  return true;
}

void Engine::leave_role() noexcept {
  role_.store(false, std::memory_order_seq_cst);
  wake_waiters();
  if (turned_away_.load(std::memory_order_seq_cst) && turned_away_.exchange(false, std::memory_order_seq_cst)) kick();
}

void Engine::stop_driving() noexcept {
  for (;;) {
    const bool left_behind = !active_.empty() || !to_send_.empty();
    if (left_behind) {
      fabric_.arm();
      armed_ = true;
      uint32_t round = 0;
      while (pump(true) && ++round < kMostRounds) {
      }
      if (round == kMostRounds) kick();
      if (timer_fd_ >= 0) set_timer(next_ns());
    }
    if (owes_kick_) kick();
    leave_role();
    if (left_behind && watcher_) watcher_(true);
    // Who submitted while we were leaving relies on us.
    const bool more = submitted_count_.load(std::memory_order_seq_cst) != 0 || attention_.load(std::memory_order_seq_cst);
    if (!more || !try_drive()) return;
    pump(false);
  }
}

void Engine::wake_waiters() noexcept {
  if (waiter_count_.load(std::memory_order_seq_cst) == 0) return;
  { const std::lock_guard<std::mutex> hold(mutex_); }
  changed_.notify_all();
}

void Engine::kick() noexcept {
  if (kicked_.exchange(true, std::memory_order_seq_cst)) return;  // it is readable still
  const uint64_t one = 1;
  while (::write(kick_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

// Whoever clears it looks at everything afterwards.
void Engine::clear_kick() noexcept {
  uint64_t cleared = 0;
  while (::read(kick_fd_, &cleared, sizeof cleared) < 0 && errno == EINTR) {
  }
  kicked_.store(false, std::memory_order_seq_cst);
}

void Engine::set_timer(uint64_t at_ns) noexcept {
  const uint64_t now = options_.clock->now_ns();
  if (timer_at_ns_ > now && timer_at_ns_ <= at_ns && timer_at_ns_ != Deadline::kNever) return;  // early enough
  timer_at_ns_ = at_ns;
  itimerspec when{};
  if (at_ns != Deadline::kNever) {
    const uint64_t left_ns = at_ns > now ? at_ns - now : 1;
    when.it_value.tv_sec = static_cast<time_t>(left_ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(left_ns % 1'000'000'000);
  }
  ::timerfd_settime(timer_fd_, 0, &when, nullptr);
}

void Engine::enqueue(Operation& operation) noexcept {
  const std::lock_guard<std::mutex> hold(mutex_);
  operation.next_ = nullptr;
  if (submitted_tail_)
    submitted_tail_->next_ = &operation;
  else
    submitted_head_ = &operation;
  submitted_tail_ = &operation;
  submitted_count_.fetch_add(1, std::memory_order_seq_cst);
}

/// For whoever found somebody else driving.
void Engine::leave_in_queue(Operation& operation) noexcept {
  enqueue(operation);
  if (try_drive()) {
    pump(false);
    stop_driving();
  } else if (sleeping_.load(std::memory_order_seq_cst)) {
    kick();
  }
}

/// Drives for the operation, behind all that was submitted before: calls keep their order. False: somebody else drives, and has
/// it in the queue.
[[gnu::always_inline]] inline bool Engine::drive_for(Group& group, Operation& operation) noexcept {
  operation.group_ = &group;
  if (!try_drive()) {
    leave_in_queue(operation);
    return false;
  }
  count_drive();
  accept_submitted();
  return true;
}

/// Nothing else is going on, and what is called may begin.
inline bool Engine::is_alone(const Group& group) const noexcept {
  return active_.empty() && !group.failed_.load(std::memory_order_relaxed);
}

/// The usual call, if it is alone: passes by the queues as long as it does not wait, or waits for slots, which are
/// memory to look at, so often. True: it has ended, and is to be completed. False: it has been accepted, begun or not, for it has
/// to wait, or has failed.
[[gnu::always_inline]] inline bool Engine::run_alone(Group& group, CollectiveOperation& operation, uint32_t most_polls) noexcept {
  Execution::Outcome outcome = Execution::Outcome::blocked;
  try {
    if (Status begun = operation.begin(group.calls_.open(group.collectives_ended_ + 1)); !begun.ok()) {
      accept(operation);
      fail(group, std::move(begun), Group::kNobody);
      return false;
    }
    operation.begun_ = true;
    bool moved = false;
    outcome = operation.advance(moved);
    for (uint32_t polls = 0; outcome == Execution::Outcome::blocked && polls < most_polls; ++polls) {
      if (!operation.waits_for_slots()) break;
      outcome = operation.advance(moved);
    }
  } catch (...) {
    accept(operation);
    fail_for_exception(group);
    return false;
  }
  if (outcome != Execution::Outcome::done) {
    accept(operation);
    if (outcome == Execution::Outcome::failed) handle_failed(group, operation);
    return false;
  }
  ++group.collectives_ended_;
  ++counters_.operations;
  if (++pumps_ % kProgressEvery == 0) pump(false);
  return true;
}

void Engine::submit(Group& group, Operation& operation) {
  if (!drive_for(group, operation)) return;
  accept(operation);
  pump(false);
  stop_driving();
}

void Engine::submit(Group& group, CollectiveOperation& operation) {
  if (!drive_for(group, operation)) return;
  if (!is_alone(group)) {
    accept(operation);
    pump(false);
  } else if (run_alone(group, operation, 0)) {
    operation.complete_well();
  }
  stop_driving();
}

void Engine::run(Group& group, Operation& operation) {
  if (drive_for(group, operation)) {
    accept(operation);
    drive_until(&operation);
    stop_driving();
  } else {
    wait(operation);
  }
}

void Engine::run(Group& group, CollectiveOperation& operation) {
  if (!drive_for(group, operation)) {
    wait(operation);
    return;
  }
  const bool alone = is_alone(group);
  if (alone && run_alone(group, operation, polls_of_slots_)) {
    operation.complete_here();
  } else {
    if (!alone) accept(operation);
    drive_until(&operation);
  }
  stop_driving();
}

void Engine::run_both(Group& group, Operation& first, Operation& second) {
  if (drive_for(group, first)) {
    second.group_ = &group;
    accept(first);
    accept(second);
    drive_until(&first);
    drive_until(&second);
    stop_driving();
  } else {
    submit(group, second);
  }
  wait(first);
  wait(second);
}

void Engine::wait(Operation& operation) {
  while (!operation.done()) {
    if (try_drive()) {
      drive_until(&operation);
      stop_driving();
      continue;
    }
    waiter_count_.fetch_add(1, std::memory_order_seq_cst);
    {
      std::unique_lock<std::mutex> hold(mutex_);
      changed_.wait(hold, [&] { return operation.done() || !role_.load(std::memory_order_seq_cst); });
    }
    waiter_count_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void Engine::poke() {
  if (!try_drive()) return;
  count_drive();
  // A program that polls may have nobody else to look at its deadlines.
  if (!pump(true) && options_.clock->now_ns() - looked_after_ns_ > kLookAfterNs) look_after_groups();
  completed_some_ = false;
  stop_driving();
}

void Engine::exclusively(const std::function<void()>& work) {
  Errand errand(work);
  errand.reset(Deadline());
  if (try_drive()) {
    accept_submitted();  // what was handed over before may be about what `work` ends
    accept(errand);
    stop_driving();
  } else {
    // An errand belongs to no group; the queue does not look at it.
    enqueue(errand);
    if (sleeping_.load(std::memory_order_seq_cst)) kick();
    wait(errand);
  }
  errand.rethrow();
}

void Engine::cancel(MessageOperation& receive) {
  exclusively([this, &receive] {
    if (receive.done()) return;  // then its group may be gone
    receive.group_->messages_.cancel(receive,
                                     [this](Operation& operation, Status status) { finish(operation, std::move(status)); });
  });
}

EngineCounters Engine::counters() {
  EngineCounters result;
  exclusively([&] { result = counters_; });
  return result;
}

std::optional<uint64_t> Engine::progress_and_arm() {
  while (!take_role()) {
    if (watcher_) return std::nullopt;  // it looks again by itself
    turned_away_.store(true, std::memory_order_seq_cst);
    if (driven()) return std::nullopt;
  }
  clear_kick();
  owes_kick_ = false;
  watched_ = true;
  fabric_.arm();
  armed_ = true;
  uint32_t rounds = 0;
  while ((pump(true) || look_after_groups()) && ++rounds < kMostRounds) {
  }
  completed_some_ = false;
  if (rounds == kMostRounds) kick();  // it goes on: come back
  const uint64_t next = next_ns();
  if (timer_fd_ >= 0) set_timer(next);
  leave_role();
  if (submitted_count_.load(std::memory_order_seq_cst) != 0 || attention_.load(std::memory_order_seq_cst)) kick();
  return next;
}

uint64_t Engine::next_ns() const {
  const uint64_t now = options_.clock->now_ns();
  uint64_t next = earliest_deadline().at_ns;
  if (const uint64_t interval = fabric_.poll_interval_ns(); interval != UINT64_MAX) next = std::min(next, now + interval);
  if (!to_send_.empty()) next = std::min(next, now + kRetryNs);
  if (!active_.empty()) next = std::min(next, now + kLookAfterIdleNs);
  return next;
}

// ---- driving --------------------------------------------------------------------------------------------------------

bool Engine::pump(bool all) noexcept {
  bool moved = false;
  if (submitted_count_.load(std::memory_order_seq_cst) != 0) {
    accept_submitted();
    moved = true;
  }
  for (size_t i = 0; i < active_.size();) {
    Group* group = active_[i];
    moved |= advance(*group);
    if (i < active_.size() && active_[i] == group) ++i;
  }
  if (!moved || all || ++pumps_ % kProgressEvery == 0) moved |= fabric_.progress(all) > 0;
  if (!gone_.empty() || !received_.empty() || !to_send_.empty() || events_lost_ || attention_.load(std::memory_order_seq_cst))
    handle_events();
  return moved;
}

void Engine::drive_until(const Operation* operation) noexcept {
  count_drive();
  uint64_t waiting_since_ns = 0;
  uint32_t idle_polls = 0;
  uint32_t busy_pumps = 0;
  while (!operation->done()) {
    if (pump(false)) {
      idle_polls = 0;
      if (completed_some_ && waiter_count_.load(std::memory_order_seq_cst) != 0) {
        completed_some_ = false;
        wake_waiters();
      }
      if (++busy_pumps % 256 == 0 && options_.clock->now_ns() - looked_after_ns_ > kLookAfterNs) look_after_groups();
      continue;
    }
    if (operation->done()) break;
    if (options_.yield)
      ::sched_yield();
    else
      pause_cpu();
    if (idle_polls++ % kPollsPerClock != 0 && !options_.yield) continue;
    const uint64_t now = options_.clock->now_ns();
    if (idle_polls == 1) waiting_since_ns = now;
    if (now - waiting_since_ns < options_.spin_ns) continue;
    sleep(operation);
    idle_polls = 0;
  }
}

void Engine::sleep(const Operation* operation) noexcept {
  sleeping_.store(true, std::memory_order_seq_cst);
  fabric_.arm();
  armed_ = true;
  const bool moved = pump(true) || look_after_groups();
  if (!moved && !operation->done() && submitted_count_.load(std::memory_order_seq_cst) == 0 &&
      !attention_.load(std::memory_order_seq_cst)) {
    if (completed_some_) wake_waiters();
    completed_some_ = false;
    epoll_event event{};
    ++counters_.sleeps;
    const int ready = ::epoll_wait(event_fd_, &event, 1, Deadline{next_ns()}.poll_ms(*options_.clock));
    if (ready > 0) {
      if (event.data.fd == kick_fd_) clear_kick();
      if (event.data.fd == timer_fd_) {
        timer_at_ns_ = 0;
        set_timer(Deadline::kNever);
      }
      fabric_.progress(true);
      handle_events();  // before anything meets a channel of a peer that has left
    }
  }
  sleeping_.store(false, std::memory_order_seq_cst);
  fabric_.disarm();
  armed_ = false;
}

void Engine::accept_submitted() noexcept {
  if (submitted_count_.load(std::memory_order_seq_cst) == 0) return;
  Operation* operation = nullptr;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    operation = submitted_head_;
    submitted_head_ = submitted_tail_ = nullptr;
    submitted_count_.store(0, std::memory_order_seq_cst);
  }
  while (operation) {
    Operation* next = operation->next_;
    accept(*operation);
    operation = next;
  }
}

void Engine::accept(Operation& operation) noexcept {
  operation.next_ = nullptr;
  if (operation.is_errand()) {
    bool moved = false;
    operation.advance(moved);
    finish(operation, Status());
    return;
  }
  Group& group = *operation.group_;
  if (group.failed_.load(std::memory_order_relaxed)) {
    finish(operation, group.failure());
    return;
  }
  if (MessageOperation* message = operation.as_message()) {
    try {
      group.messages_.submit(*message);
    } catch (...) {
      finish(operation, Status(TUTTI_ERR_MEMORY));  // it was not taken over
      fail_for_exception(group);
      return;
    }
  } else {
    if (group.tail_)
      group.tail_->next_ = &operation;
    else
      group.head_ = &operation;
    group.tail_ = &operation;
  }
  activate(group);
}

}  // namespace tutti
