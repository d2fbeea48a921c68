// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// The arena, its shortage, and peers that write nonsense into it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "ranks.hpp"
#include "ring.hpp"

using namespace tutti::shm;
using namespace tutti::test;

namespace {

constexpr uint64_t kArenaBytes = 4 << 20;

Fd memfd_of(uint64_t bytes, int seals) {
  Fd memfd{::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  REQUIRE(::ftruncate(memfd.get(), static_cast<off_t>(bytes)) == 0);
  REQUIRE(::fcntl(memfd.get(), F_ADD_SEALS, seals) == 0);
  return memfd;
}

/// Two ends of a ring, without endpoints.
struct Pair {
  Pair() {
    node->roster.ranks = {0, 1};
    node->roster.process_of = {0, 0};
    node->roster.processes = {{0, 1}};
    node->seated = {1};
    node->slots = 4;
    node->slot_bytes = 4096;
    node->bells.resize(2);
    REQUIRE(Arena::create_private(2, kArenaBytes, node->arena).ok());
    writer = std::make_unique<Share>(node, 0, std::pmr::get_default_resource());
    reader = std::make_unique<Share>(node, 1, std::pmr::get_default_resource());
    sender = std::make_unique<Sender>(*writer, 1);
    receiver = std::make_unique<Receiver>(*reader, 0, key);
  }
  SlotHead& head(uint32_t slot) {
    FoundRing found;
    REQUIRE(find_ring(*node->arena, 0, key, found) == Lookup::kFound);
    return node->arena->at<SlotHead>(found.ring + sizeof(RingTail))[slot];
  }
  tutti_status_t peek() {
    const void* slot = nullptr;
    uint64_t bytes = 0;
    uint32_t mark = 0;
    return receiver->peek(&slot, &bytes, &mark);
  }
  tutti_status_t send(uint64_t bytes) {
    void* slot = nullptr;
    const tutti_status_t status = sender->reserve(bytes, &slot);
    return status == TUTTI_OK ? sender->commit(bytes, 0) : status;
  }
  const RingKey key{1, false, 77};
  std::shared_ptr<Node> node = std::make_shared<Node>();
  std::unique_ptr<Share> writer;
  std::unique_ptr<Share> reader;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
};

}  // namespace

TEST_CASE("arena: what another process sends is checked before it is used") {
  std::unique_ptr<Arena> made;
  REQUIRE(Arena::create(2, kArenaBytes, made).ok());
  constexpr int kAll = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  std::unique_ptr<Arena> adopted;
  SECTION("the real one") {
    REQUIRE(Arena::adopt(Fd{::dup(made->memfd())}, 2, kArenaBytes, adopted).ok());
    CHECK(::ftruncate(adopted->memfd(), 0) != 0);
    CHECK(::ftruncate(adopted->memfd(), 2 * kArenaBytes) != 0);
    uint64_t offset = 0;
    uint64_t taken = 0;
    REQUIRE(adopted->take_extent(100, 100, offset, taken).ok());
    made->at<char>(offset)[0] = 'x';
    CHECK(adopted->at<char>(offset)[0] == 'x');
  }
  SECTION("another number of ranks") {
    CHECK(Arena::adopt(Fd{::dup(made->memfd())}, 3, kArenaBytes, adopted).status == TUTTI_ERR_PROTOCOL);
  }
  SECTION("not sealed") { CHECK(Arena::adopt(memfd_of(kArenaBytes, 0), 2, kArenaBytes, adopted).status == TUTTI_ERR_PROTOCOL); }
  SECTION("may shrink") {
    CHECK(Arena::adopt(memfd_of(kArenaBytes, F_SEAL_GROW | F_SEAL_SEAL), 2, kArenaBytes, adopted).status == TUTTI_ERR_PROTOCOL);
  }
  SECTION("smaller than said") {
    CHECK(Arena::adopt(memfd_of(kArenaBytes / 2, kAll), 2, kArenaBytes, adopted).status == TUTTI_ERR_PROTOCOL);
  }
  SECTION("smaller than its own tables") {
    CHECK(Arena::adopt(memfd_of(kPage, kAll), 1000, kPage, adopted).status == TUTTI_ERR_PROTOCOL);
  }
  SECTION("without a header") {
    CHECK(Arena::adopt(memfd_of(kArenaBytes, kAll), 2, kArenaBytes, adopted).status == TUTTI_ERR_PROTOCOL);
  }
  SECTION("no memfd at all") {
    CHECK(Arena::adopt(Fd{::open("/dev/zero", O_RDWR | O_CLOEXEC)}, 2, kArenaBytes, adopted).status == TUTTI_ERR_PROTOCOL);
  }
  if (made->bytes() != kArenaBytes) FAIL("size");
}

TEST_CASE("arena: too small for its ranks is an error that tells the need") {
  std::unique_ptr<Arena> made;
  const Outcome outcome = Arena::create(100, 1 << 20, made);
  CHECK(outcome.status == TUTTI_ERR_RESOURCE);
  CHECK(outcome.text.find("shm_arena_bytes") != std::string::npos);
}

TEST_CASE("arena: used up, a channel cannot be opened, and those that are open go on") {
  Options options;
  options.settings["shm_arena_bytes"] = "524288";
  options.settings["shm_slots"] = "1024";
  Job job(options);
  std::vector<tutti_tp_channel_t*> open;
  tutti_tp_channel_t* channel = nullptr;
  tutti_status_t status = TUTTI_OK;
  for (uint64_t id = 0; id < 100 && status == TUTTI_OK; ++id) {
    status = Rank::tp().channel_open(job[0].endpoint(), 1, id, TUTTI_TP_SEND, 1, &channel);
    if (status == TUTTI_OK) open.push_back(channel);
  }
  CHECK(status == TUTTI_ERR_RESOURCE);
  CHECK(job[0].host().logged("shm_arena_bytes"));
  REQUIRE(!open.empty());
  REQUIRE(job[0].send(open[0], "small"));
  CHECK(job[1].receive(job[1].channel(0, 0, TUTTI_TP_RECV)) == "small");
  // No room for even the few large slots that a channel must have.
  void* slot = nullptr;
  status = TUTTI_OK;
  for (int i = 0; i < 100 && status == TUTTI_OK; ++i) {
    status = Rank::tp().slot_reserve(open[0], 65536, &slot);
    if (status == TUTTI_OK) status = Rank::tp().slot_commit(open[0], 65536, 0);
  }
  CHECK(status != TUTTI_OK);
  // What is closed can be used again.
  auto* in = job[1].channel(0, 1, TUTTI_TP_RECV);
  Rank::tp().channel_close(open[1]);
  Rank::tp().channel_close(in);
  CHECK(Rank::tp().channel_open(job[0].endpoint(), 1, 1000, TUTTI_TP_SEND, 1, &channel) == TUTTI_OK);
}

TEST_CASE("arena: short of memory, a channel makes do with few large slots") {
  Pair pair;
  REQUIRE(pair.sender->open(pair.key).ok());
  REQUIRE(pair.send(4096) == TUTTI_OK);
  REQUIRE(pair.send(4096) == TUTTI_OK);
  uint64_t offset = 0;
  while (pair.writer->pool.allocate(4096, offset).ok()) {
  }
  // Two messages lie in the two bodies there are: wait for one.
  CHECK(pair.send(4096) == TUTTI_TP_AGAIN);
  CHECK(pair.send(8) == TUTTI_OK);
  for (int i = 0; i < 100; ++i) {
    REQUIRE(pair.peek() == TUTTI_OK);
    REQUIRE(pair.receiver->release() == TUTTI_OK);
    REQUIRE(pair.send(i % 3 == 0 ? 8 : 4096) != TUTTI_ERR_RESOURCE);
  }
}

TEST_CASE("nonsense: lengths, places and numbers of messages are checked") {
  Pair pair;
  REQUIRE(pair.sender->open(pair.key).ok());
  REQUIRE(pair.send(8) == TUTTI_OK);
  SlotHead& head = pair.head(0);
  SECTION("an inline message longer than the line") { head.label.store(kInlineBytes + 1); }
  SECTION("a body longer than a slot") { head.label.store(kBodyFlag | 4097); }
  SECTION("a body outside of the arena") {
    const uint64_t offset = kArenaBytes - 64;
    std::memcpy(head.payload, &offset, sizeof offset);
    head.label.store(kBodyFlag | 128);
  }
  SECTION("a body whose end overflows") {
    const uint64_t offset = ~uint64_t{63};
    std::memcpy(head.payload, &offset, sizeof offset);
    head.label.store(kBodyFlag | 128);
  }
  SECTION("a body over the tables of all ranks") {
    const uint64_t offset = 64;
    std::memcpy(head.payload, &offset, sizeof offset);
    head.label.store(kBodyFlag | 128);
  }
  SECTION("a body that is not aligned") {
    const uint64_t offset = kArenaBytes - 4095;
    std::memcpy(head.payload, &offset, sizeof offset);
    head.label.store(kBodyFlag | 128);
  }
  SECTION("a message number from the future") { head.sequence.store(100); }
  CHECK(pair.peek() == TUTTI_ERR_PROTOCOL);
}

TEST_CASE("nonsense: a reader that releases what was not sent") {
  Pair pair;
  REQUIRE(pair.sender->open(pair.key).ok());
  for (int i = 0; i < 4; ++i) REQUIRE(pair.send(8) == TUTTI_OK);
  FoundRing found;
  REQUIRE(find_ring(*pair.node->arena, 0, pair.key, found) == Lookup::kFound);
  pair.node->arena->at<RingTail>(found.ring)->released.store(5);
  CHECK(pair.send(8) == TUTTI_ERR_PROTOCOL);
}

TEST_CASE("nonsense: tables and rings of a writer that lie elsewhere") {
  Pair pair;
  REQUIRE(pair.sender->open(pair.key).ok());
  Presence& presence = pair.node->arena->control(0).presence;
  FoundRing found;
  REQUIRE(find_ring(*pair.node->arena, 0, pair.key, found) == Lookup::kFound);
  SECTION("a table past the end") { presence.tables[0].store(kArenaBytes); }
  SECTION("a table over the header") { presence.tables[0].store(kLine); }
  SECTION("a ring past the end") { found.entry->where.store((kArenaBytes - kLine) | 2); }
  SECTION("a ring of too many slots") { found.entry->where.store(found.ring | 31); }
  SECTION("a ring of absurdly many slots") { found.entry->where.store(found.ring | 63); }
  CHECK(pair.peek() == TUTTI_ERR_PROTOCOL);
}

TEST_CASE("nonsense: seen through an endpoint, the link is cut on both sides") {
  const auto results = run_processes({}, [](Rank& rank, Board& board) -> std::string {
    if (rank.rank() == 0) {
      auto* out = rank.channel(1, 1, TUTTI_TP_SEND);
      void* slot = nullptr;
      if (Rank::tp().slot_reserve(out, 8, &slot) != TUTTI_OK) return "reserve";
      if (Rank::tp().slot_commit(out, 8, 0) != TUTTI_OK) return "commit";
      // The line of the slot begins with the payload.
      static_cast<SlotHead*>(slot)->label.store(1000);
      board.flags[0].store(1);
      if (!rank.until([&] { return !rank.host().gone.empty(); })) return "not told";
      return rank.host().gone[0].cause == TUTTI_TP_GONE_FAILED ? "" : "wrong cause";
    }
    if (!board.wait(0, 1)) return "timeout";
    auto* in = rank.channel(0, 1, TUTTI_TP_RECV);
    if (const std::string got = rank.receive(in); got != "error -304") return got;
    if (const std::string got = rank.receive(in); got != "error -301") return got;
    if (!rank.until([&] { return !rank.host().gone.empty(); })) return "no report";
    // Stay until the other has seen it.
    return rank.host().gone[0].cause == TUTTI_TP_GONE_FAILED ? "" : "wrong cause";
  });
  CHECK(results == std::vector<std::string>(2));
}

TEST_CASE("pool: best fit, coalescing, and memory that is used again") {
  std::unique_ptr<Arena> arena;
  REQUIRE(Arena::create_private(1, kArenaBytes, arena).ok());
  Pool pool{*arena, std::pmr::get_default_resource()};
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
  REQUIRE(pool.allocate(1000, a).ok());
  REQUIRE(pool.allocate(1, b).ok());
  REQUIRE(pool.allocate(5000, c).ok());
  CHECK(pool.used_bytes() == 1024 + 128 + 5120);
  const uint64_t held = pool.held_bytes();
  pool.release(a, 1000);
  pool.release(c, 5000);
  pool.release(b, 1);
  CHECK(pool.used_bytes() == 0);
  REQUIRE(pool.allocate(held, a).ok());
  CHECK(pool.held_bytes() == held);
}
