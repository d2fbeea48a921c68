// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// On one rank every single allocation of every call fails once. Either the call has not taken place, and the same call made again
// does, or the communicator fails on all ranks; nothing is lost, and other communicators work.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "failing_memory.hpp"
#include "job.hpp"
#include "memory_cases.hpp"

using namespace tutti::test;

namespace {

// ---- the walk --------------------------------------------------------------------------------------------------------------

/// Handles of requests and the requests themselves go back to where they were taken from: so many at once allocate nothing.
constexpr size_t kWarmRequests = 8;
int64_t allocations_for_requests(tutti_comm_t comm, Complaints& complaints) {
  tutti_request_t requests[kWarmRequests] = {};
  tutti_status_t first = TUTTI_OK;
  const auto see = [&first](tutti_status_t status) { first = first == TUTTI_OK ? status : first; };
  const int64_t before = allocations_here();
  for (tutti_request_t& request : requests) see(tutti_recv_init(comm, nullptr, 0, TUTTI_BYTE, 0, 0, &request));
  const int64_t made = allocations_here() - before;
  for (tutti_request_t& request : requests) see(tutti_request_free(&request));
  complaints.expect_status(first, TUTTI_OK, "requests");
  return made;
}

/// How it ended on one rank, for all.
struct Verdict {
  int64_t failed = 0;  // an allocation
  int64_t complains = 0;
  int64_t status = 0;
  int64_t next_status = 0;  // of another collective of that communicator
};

// ThreadSanitizer takes minutes for all, and looks for something else: a sample does there.
#if defined(__SANITIZE_THREAD__)
constexpr int64_t kStride = 11;
#else
constexpr int64_t kStride = 1;
#endif

class Walk {
 public:
  Walk(tutti_comm_t parent, int number, int failing, Complaints& complaints)
      : parent_(parent), failing_(failing), complaints_(complaints) {
    rank_.number = number;
    tutti_comm_size(parent, &rank_.size);
    complaints.expect_status(tutti_type_create(2 * sizeof(int64_t), &rank_.wide), TUTTI_OK, "type_create");
    complaints.expect_status(tutti_op_create(add_words, 1, &words_, &rank_.add), TUTTI_OK, "op_create");
    complaints.expect_status(tutti_op_create_scaled_sum(0.5, &rank_.halves), TUTTI_OK, "op_create_scaled_sum");
    allocations_for_requests(parent, complaints);
  }
  ~Walk() {
    tutti_op_destroy(rank_.halves);
    tutti_op_destroy(rank_.add);
    tutti_type_destroy(rank_.wide);
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  /// Until none fails.
  void run(const Case& one, Form form) {
    if (over_) return;
    int64_t which = 0;
    while (step(one, form, which)) which += kStride;
    complaints_.expect(over_ || which > 0 || rank_.number != failing_,
                       std::string(one.name) + " allocates nothing, and proves nothing");
  }
  int64_t steps() const noexcept { return steps_; }

 private:
  bool step(const Case& one, Form form, int64_t which);
  void judge(const std::string& what, const Case& one, const std::vector<Verdict>& verdicts);

  tutti_comm_t parent_;
  int failing_;
  Complaints& complaints_;
  Rank rank_;
  uint64_t words_ = 2;
  int64_t steps_ = 0;
  bool over_ = false;  // somebody complains; the same on all ranks
};

bool Walk::step(const Case& one, Form form, int64_t which) {
  const std::string what =
      std::string(one.name) + " in form " + std::to_string(static_cast<int>(form)) + ", allocation " + std::to_string(which);
  complaints_.expect_status(tutti_comm_split(parent_, 0, 0, &rank_.comm), TUTTI_OK, what + ": split");
  rank_.fill();
  Verdict verdict;
  {
    const FailingAllocation failing(rank_.number == failing_ ? which : -1);
    verdict.status = one.act(rank_, form);
  }
  verdict.failed = rank_.number == failing_ && FailingAllocation::has_failed();
  complaints_.expect(verdict.status != TUTTI_OK || one.right(rank_), what + ": wrong data");
  if (rank_.comm != nullptr) {
    int64_t one_each[kMostRanks] = {};
    const int64_t own = rank_.number;
    verdict.next_status = tutti_allgather(rank_.comm, &own, one_each, 1, TUTTI_INT64);
    complaints_.expect(verdict.next_status != TUTTI_OK || one_each[1] == 1, what + ": wrong data of the next");
  }
  complaints_.expect(allocations_for_requests(parent_, complaints_) == 0, what + ": a request was lost");
  verdict.complains = complaints_.lines().empty() ? 0 : 1;
  std::vector<Verdict> verdicts(static_cast<size_t>(rank_.size));
  const tutti_status_t told = tutti_allgather(parent_, &verdict, verdicts.data(), sizeof verdict, TUTTI_BYTE);
  complaints_.expect_status(told, TUTTI_OK, what + ": another communicator");
  judge(what, one, verdicts);
  if (rank_.comm != nullptr) complaints_.expect_status(tutti_comm_destroy(rank_.comm), TUTTI_OK, what + ": destroy");
  ++steps_;
  const auto complains = [](const Verdict& one_of) { return one_of.complains != 0; };
  over_ = told != TUTTI_OK || std::any_of(verdicts.begin(), verdicts.end(), complains);
  return !over_ && verdicts[static_cast<size_t>(failing_)].failed != 0;
}

/// Either all is well everywhere, or the communicator has failed everywhere, for want of memory.
void Walk::judge(const std::string& what, const Case&, const std::vector<Verdict>& verdicts) {
  const Verdict& first = verdicts[static_cast<size_t>(failing_)];
  const bool well = first.status == TUTTI_OK && first.next_status == TUTTI_OK;
  complaints_.expect(well || first.failed, what + ": " + std::to_string(first.status) + " though it has memory");
  const Verdict& own = verdicts[static_cast<size_t>(rank_.number)];
  if (well) {
    complaints_.expect(own.status == TUTTI_OK && own.next_status == TUTTI_OK,
                       what + ": well where memory failed, but not here: " + std::to_string(own.status) + " and " +
                           std::to_string(own.next_status) + " (" + tutti_last_error() + ")");
    return;
  }
  const auto clear = [](int64_t status) { return status == TUTTI_ERR_MEMORY || status == TUTTI_ERR_ABORTED; };
  complaints_.expect(own.status == TUTTI_OK || clear(own.status), what + ": ends with " + std::to_string(own.status));
  complaints_.expect(clear(own.next_status),
                     what + ": the communicator ends with " + std::to_string(own.next_status) + " (" + tutti_last_error() + ")");
}

/// Handles that are live, told by how many more there are until the table grows: by chunks of 256, from the last number on.
int64_t live_handles() {
  constexpr int32_t kIndexMask = (1 << 20) - 1;
  static int32_t highest = -1;
  std::vector<tutti_op_t> ops;
  static uint64_t words = 1;
  for (bool grown = false; !grown;) {
    tutti_op_t op = 0;
    REQUIRE(tutti_op_create(add_words, 1, &words, &op) == TUTTI_OK);
    ops.push_back(op);
    const int32_t index = op & kIndexMask;
    grown = index > highest && index % 256 == 0 && (highest >= 0 || index > 0);
    highest = std::max(highest, index);
  }
  const int64_t live = (ops.back() & kIndexMask) - static_cast<int64_t>(ops.size() - 1);
  for (const tutti_op_t op : ops) REQUIRE(tutti_op_destroy(op) == TUTTI_OK);
  return live;
}

/// The rank whose memory fails is moved by its own calls alone, so that its allocations are in one thread.
SettingsOf settings_of(int failing, Settings more) {
  return [failing, more = std::move(more)](int rank) {
    Settings all = more;
    all.emplace_back("transports", "shm");
    if (rank == failing) all.emplace_back("control_thread", "off");
    return all;
  };
}

/// fewest_steps: a walk that ends early proves nothing.
void walk_job(int size, int failing, const Settings& settings, int64_t fewest_steps, const std::function<void(Walk&)>& body) {
  int64_t steps = 0;
  const auto job = [&](const std::function<void(Walk&)>& walk) {
    return run_ranks_with(
        size, settings_of(failing, settings),
        [&](tutti_comm_t comm, int rank, Complaints& c) {
          Walk own(comm, rank, failing, c);
          walk(own);
          if (rank == failing) steps = own.steps();
        },
        30000, memory_hooks());
  };
  REQUIRE(job([](Walk&) {}) == "");  // what is made once in a process
  REQUIRE(live_handles() == 0);
  const int64_t live_before = live_everywhere();
  const std::string complaints = job(body);
  const int64_t live = live_everywhere() - (complaints.capacity() > 15 ? 1 : 0);
  CHECK(complaints == "");
  CHECK(live == live_before);
  CHECK(live_handles() == 0);
  INFO(steps << " allocations failed");
  CHECK(steps > fewest_steps / kStride);
}

}  // namespace

TEST_CASE("whichever allocation of a collective fails") {
  const Form form = GENERATE(Form::blocking, Form::started, Form::persistent);
  walk_job(2, 0, {}, 1000, [&](Walk& walk) {
    for (const Case& one : collective_cases()) walk.run(one, form);
  });
}

TEST_CASE("whichever allocation fails on the last of three ranks") {
  walk_job(3, 2, {}, 1500, [&](Walk& walk) {
    for (const Case& one : collective_cases()) walk.run(one, Form::started);
    for (const Case& one : message_cases()) walk.run(one, Form::blocking);
    for (const Case& one : other_cases()) walk.run(one, Form::blocking);
  });
}

TEST_CASE("whichever allocation fails where calls are compared, and where sums are deterministic") {
  walk_job(2, 0, {{"check", "full"}, {"deterministic", "on"}}, 1500, [&](Walk& walk) {
    for (const Case& one : collective_cases()) walk.run(one, Form::persistent);
    for (const Case& one : other_cases()) walk.run(one, Form::blocking);
  });
}

TEST_CASE("whichever allocation of a message fails") {
  walk_job(2, 0, {}, 100, [&](Walk& walk) {
    for (const Case& one : message_cases()) walk.run(one, Form::blocking);
  });
}

TEST_CASE("whichever allocation of a group, an operation or a communicator fails") {
  walk_job(2, 0, {}, 300, [&](Walk& walk) {
    for (const Case& one : other_cases()) walk.run(one, Form::blocking);
  });
}

TEST_CASE("whichever allocation fails while the pool of requests grows, none is lost") {
  const std::string complaints = run_ranks(1, {{"control_thread", "off"}}, [](tutti_comm_t comm, int, Complaints& c) {
    constexpr size_t kMost = 64;
    tutti_request_t requests[kMost] = {};
    const auto all_at_once = [&](size_t count) {
      tutti_status_t ended = TUTTI_OK;
      for (size_t i = 0; i < count && ended == TUTTI_OK; ++i)
        ended = again([&] { return tutti_recv_init(comm, nullptr, 0, TUTTI_BYTE, 0, 0, &requests[i]); });
      for (tutti_request_t& request : requests)
        if (request != nullptr) tutti_request_free(&request);
      return ended;
    };
    c.expect_status(all_at_once(1), TUTTI_OK, "the first");
    bool failed = true;
    size_t count = 2;
    for (int64_t which = 0; failed && count <= kMost; ++which, ++count) {
      const int64_t before = live_here();
      {
        const FailingAllocation failing(which);
        c.expect_status(all_at_once(count), TUTTI_OK, "allocation " + std::to_string(which));
      }
      failed = FailingAllocation::has_failed();
      const int64_t kept = live_here() - before;
      c.expect(kept == 1,
               "one request more, and nothing else, after allocation " + std::to_string(which) + ", not " + std::to_string(kept));
    }
    c.expect(!failed && count > 4, "the walk came to " + std::to_string(count));
  });
  CHECK(complaints == "");
}

TEST_CASE("whichever allocation fails while the table of handles grows, it goes on to work") {
  const int64_t live = live_handles();
  static uint64_t words = 1;
  std::vector<tutti_op_t> ops(1 << 16);
  bool failed = true;
  for (int64_t which = 0; failed; ++which) {
    failed = false;
    size_t count = 0;
    // Up to a chunk's end and beyond: what fails is there, or it is the operation itself.
    for (; count < 2000; ++count) {
      tutti_status_t made = TUTTI_OK;
      {
        const FailingAllocation failing(which);
        made = tutti_op_create(add_words, 1, &words, &ops[count]);
      }
      if (!FailingAllocation::has_failed()) continue;
      failed = true;
      REQUIRE(made == TUTTI_ERR_MEMORY);
      REQUIRE(tutti_op_create(add_words, 1, &words, &ops[count]) == TUTTI_OK);
    }
    for (size_t i = 0; i < count; ++i) REQUIRE(tutti_op_destroy(ops[i]) == TUTTI_OK);
    if (which == 0) CHECK(failed);
  }
  CHECK(live_handles() == live);
}
