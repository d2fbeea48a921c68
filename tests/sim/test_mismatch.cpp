// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Ranks whose calls do not go together: an error on every rank that names both calls, whatever carries the messages.
#include <catch2/catch.hpp>
#include <numeric>

#include "engine/notice.hpp"
#include "job.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

std::vector<uint32_t> everybody(uint32_t size) {
  std::vector<uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

sim::Options options(uint32_t size, uint32_t caps) {
  sim::Options result;
  result.size = size;
  result.caps = [caps](uint32_t, uint32_t) { return caps; };
  return result;
}

struct Call {
  CallSignature signature;
  const char* algorithm;
};

CallSignature signature(Collective collective, uint64_t count, DType dtype, Op op = Op::sum, uint32_t root = 0) {
  CallSignature result;
  result.collective = collective;
  result.count = count;
  result.dtype = dtype;
  result.op = op;
  result.root = root;
  return result;
}

Call allreduce(uint64_t count, DType dtype = DType::f32, Op op = Op::sum) {
  return {signature(Collective::allreduce, count, dtype, op), "ring"};
}
Call broadcast(uint64_t count, uint32_t root) {
  return {signature(Collective::broadcast, count, DType::f32, Op::sum, root), "binomial"};
}
Call barrier() { return {signature(Collective::barrier, 0, DType::u8), "dissemination"}; }
Call with_tree(Call call) {
  call.signature.choice = 7;
  call.algorithm = "tree";
  return call;
}

/// What the odd rank calls, and what all the others call.
struct Kind {
  const char* name;
  std::vector<Call> odd;
  std::vector<Call> others;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"collective", {broadcast(12, 0)}, {allreduce(12)}},
      {"collective without data", {barrier()}, {allreduce(12)}},
      {"count", {allreduce(13)}, {allreduce(12)}},
      {"count of none", {allreduce(0)}, {allreduce(12)}},
      {"type of the same size", {allreduce(12, DType::i32)}, {allreduce(12)}},
      {"type of another size", {allreduce(12, DType::f64)}, {allreduce(12)}},
      {"operation", {allreduce(12, DType::f32, Op::max)}, {allreduce(12)}},
      // Two roots only send: each is content until it looks at what the other sent.
      {"root", {broadcast(12, 1), barrier()}, {broadcast(12, 0), barrier()}},
      {"algorithm", {with_tree(allreduce(12))}, {allreduce(12)}},
      {"order", {allreduce(12), broadcast(12, 0)}, {broadcast(12, 0), allreduce(12)}},
      {"missing call", {barrier()}, {allreduce(12), barrier()}},
      {"missing call of two alike", {allreduce(12), barrier()}, {allreduce(12), allreduce(12), barrier()}},
  };
  return all;
}

/// Calls of all ranks, one after another on each.
struct Calls {
  explicit Calls(uint32_t size) : operations(size), memory(size) {}
  void start(SimComm& comm, uint32_t rank, const Call& call) {
    memory[rank].push_back(std::make_unique<std::vector<std::byte>>(call.signature.count * size_bytes(call.signature.dtype)));
    operations[rank].push_back(std::make_unique<CollectiveOperation>());
    comm.prepare(rank, call.signature, memory[rank].back()->data(), call.algorithm, *operations[rank].back());
    comm.engine(rank).submit(comm.group(rank), *operations[rank].back());
  }
  bool done() const {
    for (const auto& of_rank : operations)
      for (const auto& operation : of_rank)
        if (!operation->done()) return false;
    return true;
  }
  bool all_ok() const {
    for (const auto& of_rank : operations)
      for (const auto& operation : of_rank)
        if (!operation->result().ok()) return false;
    return true;
  }
  std::vector<std::vector<std::unique_ptr<CollectiveOperation>>> operations;
  std::vector<std::vector<std::unique_ptr<std::vector<std::byte>>>> memory;
};

bool contains(std::string_view text, const std::string& part) { return text.find(part) != std::string_view::npos; }

/// Whether the text names a call out of `calls`, made by `rank`, the first of them being number `first`.
bool names_call_of(std::string_view message, uint32_t rank, const std::vector<Call>& calls, uint64_t first) {
  for (size_t i = 0; i < calls.size(); ++i)
    if (contains(message, "rank " + std::to_string(rank) + " " + text(calls[i].signature, first + i))) return true;
  return false;
}

bool names_both(std::string_view message, const Kind& kind, uint32_t odd, uint32_t size, uint64_t first) {
  if (!names_call_of(message, odd, kind.odd, first)) return false;
  for (uint32_t r = 0; r < size; ++r)
    if (r != odd && names_call_of(message, r, kind.others, first)) return true;
  return false;
}

void run_kind(const Kind& kind, uint32_t size, uint32_t odd, uint32_t caps, uint64_t seed) {
  INFO(kind.name << ", " << size << " ranks, odd " << odd << ", " << (caps == TUTTI_TP_CAP_SLOTS ? "slots" : "messages"));
  constexpr uint64_t kBefore = 3;  // calls that agree
  SimJob job(seed, options(size, caps));
  Calls calls(size);
  SimComm comm(job, 1, everybody(size));
  SimComm other(job, 2, everybody(size));
  for (uint64_t i = 0; i < kBefore; ++i)
    for (uint32_t r = 0; r < size; ++r) calls.start(comm, r, allreduce(50));
  REQUIRE(job.drive([&] { return calls.done(); }));
  REQUIRE(calls.all_ok());
  for (uint32_t r = 0; r < size; ++r)
    for (const Call& call : r == odd ? kind.odd : kind.others) calls.start(comm, r, call);
  const auto all_failed = [&] {
    for (uint32_t r = 0; r < size; ++r)
      if (!comm.group(r).failed()) return false;
    return calls.done();
  };
  const uint64_t start = job.world.now_ns();
  REQUIRE(job.drive(all_failed, 60 * kSecondNs));
  CHECK(job.world.now_ns() - start < 3 * kSecondNs);
  for (uint32_t r = 0; r < size; ++r) {
    const Status failure = comm.group(r).failure();
    INFO("rank " << r << ": " << failure.message());
    CHECK(failure.code() == TUTTI_ERR_MISMATCH);
    CHECK(names_both(failure.message(), kind, odd, size, kBefore + 1));
    for (const auto& operation : calls.operations[r])
      if (!operation->result().ok()) CHECK(operation->result().code() == TUTTI_ERR_MISMATCH);
  }
  Calls fine(size);
  for (uint32_t r = 0; r < size; ++r) fine.start(other, r, allreduce(12));
  REQUIRE(job.drive([&] { return fine.done(); }));
  CHECK(fine.all_ok());
}

/// Rank 0 waits in a sum; what rank 1 sent does not belong to it.
struct Pair {
  Pair() : job(3, options(2, TUTTI_TP_CAP_SLOTS)), calls(2), comm(job, 1, {0, 1}) {
    calls.start(comm, 1, broadcast(12, 1));
    job.drive([&] { return calls.operations[1][0]->done(); });
  }
  void wait() {
    calls.start(comm, 0, allreduce(12));
    REQUIRE(job.drive([&] { return calls.operations[0][0]->done(); }, 60 * kSecondNs));
    failure = calls.operations[0][0]->result();
    CHECK(failure.code() == TUTTI_ERR_MISMATCH);
    CHECK(contains(failure.message(), "rank 0 allreduce of 12 float32, sum (call 1)"));
  }
  SimJob job;
  Calls calls;
  SimComm comm;
  Status failure;
};

}  // namespace

TEST_CASE("every kind of mismatch is an error on every rank that names both calls, and harms no other communicator") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  const uint32_t size = GENERATE(as<uint32_t>(), 2, 3, 5);
  for (const Kind& kind : kinds())
    for (uint32_t odd = 0; odd < size; ++odd)
      for (uint64_t seed = 0; seed < 3; ++seed) run_kind(kind, size, odd, caps, seed);
}

TEST_CASE("calls that agree are never reported") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  constexpr uint32_t kSize = 5;
  SimJob job(9, options(kSize, caps));
  SimComm comm(job, 1, everybody(kSize));
  for (uint32_t round = 0; round < 50; ++round) {
    Calls calls(kSize);
    for (uint32_t i = 0; i < 10; ++i) {
      const uint64_t choice = job.world.random_u64();
      const uint64_t count = choice % 7 == 0 ? 0 : (choice >> 8) % 400;
      const Call call = choice % 3 == 0 ? allreduce(count, choice & 16 ? DType::i32 : DType::f64, choice & 32 ? Op::sum : Op::min)
                        : choice % 3 == 1 ? broadcast(count, static_cast<uint32_t>((choice >> 32) % kSize))
                                          : barrier();
      for (uint32_t r = 0; r < kSize; ++r) calls.start(comm, r, call);
    }
    REQUIRE(job.drive([&] { return calls.done(); }));
    REQUIRE(calls.all_ok());
  }
}

TEST_CASE("a peer that waits in another call of the same number is a mismatch, unless it is in another part of a group") {
  const bool grouped = GENERATE(false, true);
  const uint32_t ahead = GENERATE(0u, 1u);  // rank 1
  SimJob job(4, options(2, TUTTI_TP_CAP_MESSAGES));
  std::vector<float> values[2] = {std::vector<float>(12), std::vector<float>(12)};
  CollectiveOperation operations[2];
  SimComm comm(job, 1, {0, 1});
  for (uint32_t rank = 0; rank < 2; ++rank) {  // each waits for the other, as if it were a part ahead
    CallSignature call = broadcast(12, 1 - rank).signature;
    if (grouped) call.flags |= CallSignature::kGrouped;
    call.part = rank * ahead;
    comm.prepare(rank, call, values[rank].data(), "binomial", operations[rank], job.after(5 * kSecondNs));
    comm.engine(rank).submit(comm.group(rank), operations[rank]);
  }
  REQUIRE(job.drive([&] { return operations[0].done() && operations[1].done(); }, 20 * kSecondNs));
  for (const CollectiveOperation& one : operations)
    CHECK(one.result().code() == (grouped && ahead > 0 ? TUTTI_ERR_TIMEOUT : TUTTI_ERR_MISMATCH));
}

TEST_CASE("a peer that does not say what it called is waited for, but not long") {
  Pair pair;
  pair.job.ranks[1]->dead = true;  // it computes, and looks at nothing
  const uint64_t start = pair.job.world.now_ns();
  pair.wait();
  CHECK(pair.job.world.now_ns() - start < 2 * kSecondNs);
  CHECK(contains(pair.failure.message(), "rank 1 another call, which it has not told"));
}

TEST_CASE("a peer that has destroyed the communicator still says what it called last") {
  Pair pair;
  pair.comm.leave(1);
  pair.wait();
  CHECK(contains(pair.failure.message(), "rank 1 broadcast of 12 float32 from root 1 (call 1)"));
}

TEST_CASE("a notice of nonsense calls is an error without nonsense") {
  SimJob job(5, options(2, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, {0, 1});
  Notice notice;
  notice.kind = Notice::failed;
  notice.id = 1 << 16;
  notice.code = TUTTI_ERR_MISMATCH;
  for (NoticeCall& call : notice.calls) {
    call.rank = 4'000'000'000;
    call.sequence = UINT64_MAX;
    std::memset(static_cast<void*>(&call.call), 0xff, sizeof call.call);
  }
  SimRank& peer = *job.ranks[1];
  const tutti_tp_table_t* table = peer.fabric.transports()[0].table;
  REQUIRE(job.drive([&] { return table->notify(peer.endpoint, 0, &notice, sizeof notice) == TUTTI_OK; }));
  REQUIRE(job.drive([&] { return comm.group(0).failed(); }, kSecondNs));
  CHECK(comm.group(0).failure().code() == TUTTI_ERR_MISMATCH);
  CHECK(contains(comm.group(0).failure().message(), "an unknown collective (call 18446744073709551615)"));
}

TEST_CASE("marks tell calls apart that differ in one place, and counts only where they must be equal") {
  const CallSignature base = allreduce(12).signature;
  const auto differs = [&](auto&& change) {
    CallSignature changed = base;
    change(changed);
    CHECK_FALSE(agree(base, changed));
    return mark_of(7, base) != mark_of(7, changed);
  };
  CHECK(mark_of(7, base) != mark_of(8, base));
  for (uint64_t bit = 1; bit != 0; bit <<= 1) CHECK(differs([&](CallSignature& call) { call.count ^= bit; }));
  for (uint32_t bit = 1; bit != 0; bit <<= 1) CHECK(differs([&](CallSignature& call) { call.root ^= bit; }));
  for (uint32_t bit = 1; bit != 0; bit <<= 1) CHECK(differs([&](CallSignature& call) { call.choice ^= bit; }));
  CHECK(differs([](CallSignature& call) { call.collective = Collective::broadcast; }));
  CHECK(differs([](CallSignature& call) { call.dtype = DType::i32; }));
  CHECK(differs([](CallSignature& call) { call.op = Op::max; }));
  CallSignature own = base;
  own.flags = CallSignature::kCountIsOwn;
  CallSignature longer = own;
  longer.count = 99;
  CHECK(mark_of(7, own) == mark_of(7, longer));
  CHECK(agree(own, longer));
}
