// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Every single allocation of the engine fails once: calls may, the process and other communicators do not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>

#include "job.hpp"

namespace {

int64_t allocations_left = -1;  // until one fails; negative: none does
bool inside_engine = false;
bool has_failed = false;

void* allocate(size_t bytes) {
  if (inside_engine && allocations_left >= 0 && allocations_left-- == 0) {
    has_failed = true;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

/// Not the transport's: sim is a test's tool itself.
class Outside {
 public:
  Outside() : before_(std::exchange(inside_engine, false)) {}
  ~Outside() { inside_engine = before_; }

 private:
  bool before_;
};

template <auto Member>
struct Sheltered;
template <class Return, class... Args, Return (*tutti_tp_table_t::*Member)(Args...)>
struct Sheltered<Member> {
  static Return call(Args... args) {
    const Outside outside;
    return (tutti_sim_transport_entry(TUTTI_TP_ABI_VERSION)->*Member)(args...);
  }
  static void put(tutti_tp_table_t& table) { table.*Member = call; }
};

template <auto... Members>
tutti_tp_table_t sheltered() {
  tutti_tp_table_t table = *tutti_sim_transport_entry(TUTTI_TP_ABI_VERSION);
  (Sheltered<Members>::put(table), ...);
  return table;
}

const tutti_tp_table_t kTable =
    sheltered<&tutti_tp_table_t::channel_open, &tutti_tp_table_t::channel_close, &tutti_tp_table_t::post_send,
              &tutti_tp_table_t::post_recv, &tutti_tp_table_t::slot_reserve, &tutti_tp_table_t::slot_commit,
              &tutti_tp_table_t::slot_peek, &tutti_tp_table_t::slot_release, &tutti_tp_table_t::notify,
              &tutti_tp_table_t::progress, &tutti_tp_table_t::arm, &tutti_tp_table_t::disarm>();

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
// A sanitizer's own would not match the operators below.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes == 0 ? 1 : bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

using namespace tutti;
using namespace tutti::test;

namespace {

class Inside {
 public:
  Inside() { inside_engine = true; }
  ~Inside() { inside_engine = false; }
};

struct Story {
  explicit Story(uint32_t caps) : job(3, options(caps), &kTable), comm(job, 1, {0, 1}), other(job, 2, {0, 1}) {
    job.around_engine = [](bool inside) { inside_engine = inside; };
  }
  static sim::Options options(uint32_t caps) {
    sim::Options result;
    result.caps = [caps](uint32_t, uint32_t) { return caps; };
    return result;
  }
  bool done() const {
    const auto ended = [](const auto& operation) { return operation.done(); };
    return std::all_of(std::begin(messages), std::end(messages), ended) && std::all_of(std::begin(sums), std::end(sums), ended);
  }

  // What callers own outlives the communicators.
  std::vector<uint8_t> buffers[8];
  std::vector<int64_t> values[2];
  std::vector<int64_t> other_values[2];
  MessageOperation messages[8];
  CollectiveOperation sums[2];
  CollectiveOperation other_sums[2];
  SimJob job;
  SimComm comm;
  SimComm other;
};

/// A message that is set aside, one that is too long, one to oneself, a collective, and in the end one that nobody sends.
void tell(Story& story) {
  for (auto& buffer : story.buffers) buffer.assign(3000, 1);
  const Inside inside;
  story.comm.recv(0, story.buffers[0].data(), 3000, 1, 1, story.messages[0]);
  story.comm.send(1, story.buffers[1].data(), 3000, 0, 2, story.messages[1]);
  story.comm.send(1, story.buffers[2].data(), 3000, 0, 1, story.messages[2]);
  story.comm.recv(0, story.buffers[3].data(), 100, 1, 2, story.messages[3]);
  story.comm.send(0, story.buffers[4].data(), 100, 0, 3, story.messages[4]);
  story.comm.recv(0, story.buffers[5].data(), 100, 0, 3, story.messages[5]);
  for (uint32_t rank = 0; rank < 2; ++rank) story.comm.engine(rank).submit(story.comm.group(rank), story.sums[rank]);
  story.comm.recv(1, story.buffers[6].data(), 100, 0, 9, story.messages[6], story.job.after(3'000'000'000));
  story.comm.send(1, story.buffers[7].data(), 100, 0, 9, story.messages[7]);
}

}  // namespace

TEST_CASE("whichever allocation fails, every call ends and other communicators work") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  int64_t which = 0;
  for (has_failed = true; has_failed; ++which) {
    INFO("allocation " << which);
    has_failed = false;
    Story story(caps);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      story.values[rank].assign(1000, 1);
      story.comm.prepare_allreduce(rank, story.values[rank], "ring", story.sums[rank]);
    }
    allocations_left = which;
    tell(story);
    const bool ended = story.job.drive([&] { return story.done(); }, 20'000'000'000);
    allocations_left = -1;
    REQUIRE(ended);
    for (const MessageOperation& message : story.messages)
      if (!has_failed && !message.result().ok())
        CHECK((message.result().code() == TUTTI_ERR_TRUNCATED || message.result().code() == TUTTI_ERR_TIMEOUT));
    for (uint32_t rank = 0; rank < 2; ++rank) {
      story.other_values[rank].assign(100, 1);
      story.other.allreduce(rank, story.other_values[rank], "ring", story.other_sums[rank]);
    }
    REQUIRE(story.job.drive([&] { return story.other_sums[0].done() && story.other_sums[1].done(); }));
    for (uint32_t rank = 0; rank < 2; ++rank)
      if (!story.other.group(rank).failed()) CHECK(story.other_values[rank][99] == 2);
  }
  CHECK(which > 5);
}
