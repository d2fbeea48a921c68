// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
//
// Receives that name nobody, looks for messages, and what becomes of messages that nobody takes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <numeric>

#include "job.hpp"

using namespace tutti;
using namespace tutti::test;

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

sim::Options options(uint32_t size, uint32_t caps) {
  sim::Options result;
  result.size = size;
  result.again_percent = 10;
  result.caps = [caps](uint32_t, uint32_t) { return caps; };
  return result;
}

std::vector<uint32_t> everybody(uint32_t size) {
  std::vector<uint32_t> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

bool all_done(const std::deque<MessageOperation>& operations) {
  return std::all_of(operations.begin(), operations.end(), [](const auto& one) { return one.done(); });
}

void look(SimComm& comm, uint32_t rank, uint32_t source, int32_t tag, bool once, bool claim, MessageOperation& operation) {
  operation.reset({});
  operation.bind_look(source, tag, once, claim);
  comm.engine(rank).submit(comm.group(rank), operation);
}

void receive_claimed(SimComm& comm, uint32_t rank, void* data, uint64_t bytes, Arrived& claimed, MessageOperation& operation) {
  operation.reset({});
  operation.bind_recv(data, bytes, claimed);
  comm.engine(rank).submit(comm.group(rank), operation);
}

/// Senders of random messages and one rank that receives them all, by random means; each outcome is then held against the rules.
class Traffic {
 public:
  Traffic(uint64_t seed, uint32_t caps) : job_(seed, options(kSize, caps)), comm_(job_, 1, everybody(kSize)) {}

  void run() {
    for (int turn = 0; turn < kTurns; ++turn) {
      const uint64_t what = below(10);
      if (what < 4) send(static_cast<uint32_t>(below(kSize)));
      if (what >= 4 && what < 8) receive(below(3) == 0 ? kAnySource : static_cast<uint32_t>(below(kSize)), tag_or_any());
      if (what == 8) claim(static_cast<uint32_t>(below(kSize)));
      if (what == 9 && !outcomes_.empty()) cancel(outcomes_[below(outcomes_.size())]);
      uint64_t steps = below(8);
      job_.drive([&] { return steps-- == 0; });
      receive_claims(false);
    }
    finish();
  }

  /// Receives that were cancelled in time, and those whose message had come first.
  int cancelled() const { return cancelled_; }
  int cancelled_too_late() const { return cancelled_too_late_; }

  void judge() {
    std::vector<std::vector<size_t>> order(kSize);  // of a source: which outcome got its n-th message
    for (uint32_t source = 0; source < kSize; ++source) order[source].assign(sent_[source].size(), SIZE_MAX);
    for (size_t i = 0; i < outcomes_.size(); ++i) {
      const Outcome& one = outcomes_[i];
      if (!one.pending) continue;
      const Envelope& got = one.operation.envelope();
      REQUIRE((one.source == kAnySource || one.source == got.source));
      REQUIRE((one.tag == kAnyTag || one.tag == got.tag));
      REQUIRE(one.operation.result().code() == (got.bytes > one.buffer.size() ? TUTTI_ERR_TRUNCATED : TUTTI_OK));
      const size_t number = number_of(one);
      REQUIRE(number < order[got.source].size());
      REQUIRE(order[got.source][number] == SIZE_MAX);  // nobody else's
      order[got.source][number] = i;
    }
    for (uint32_t source = 0; source < kSize; ++source)
      for (size_t late = 0; late < order[source].size(); ++late)
        for (size_t early = 0; early < late; ++early) check_order(source, early, late, order[source]);
  }

 private:
  static constexpr uint32_t kSize = 4;
  static constexpr int kTurns = 80;

  struct Sent {
    int32_t tag;
    std::vector<uint8_t> data;
  };
  struct Outcome {
    uint32_t source;
    int32_t tag;
    bool claim = false;
    bool pending = false;  ///< its receive has been posted
    std::vector<uint8_t> buffer;
    MessageOperation operation;  // the receive
    MessageOperation look;
  };

  uint64_t below(uint64_t limit) { return job_.world.random_u64() % limit; }
  int32_t tag_or_any() { return below(4) == 0 ? kAnyTag : static_cast<int32_t>(below(3)); }

  void send(uint32_t source) { send(source, static_cast<int32_t>(below(3))); }
  void send(uint32_t source, int32_t tag) {
    constexpr size_t kLengths[] = {8, 100, 1008, 1009, 5000, 20000};
    std::vector<Sent>& from = sent_[source];
    from.push_back({tag, std::vector<uint8_t>(kLengths[below(6)])});
    from.back().data[0] = static_cast<uint8_t>(source);
    const auto number = static_cast<uint32_t>(from.size() - 1);
    std::memcpy(from.back().data.data() + 4, &number, sizeof number);
    for (size_t i = 8; i < from.back().data.size(); ++i) from.back().data[i] = static_cast<uint8_t>(i * 31 + number);
    sends_.emplace_back();
    comm_.send(source, from.back().data.data(), from.back().data.size(), 0, tag, sends_.back());
  }
  void send_for(const Outcome& one) {
    send(one.source == kAnySource ? static_cast<uint32_t>(below(kSize)) : one.source, one.tag == kAnyTag ? 0 : one.tag);
  }
  Outcome& next(uint32_t source, int32_t tag) {
    outcomes_.emplace_back();
    Outcome& one = outcomes_.back();
    one.source = source;
    one.tag = tag;
    one.buffer.resize(below(5) == 0 ? 500 : 20000);
    return one;
  }
  void receive(uint32_t source, int32_t tag) {
    Outcome& one = next(source, tag);
    one.pending = true;
    comm_.recv(0, one.buffer.data(), one.buffer.size(), source, tag, one.operation);
  }
  void claim(uint32_t source) {
    Outcome& one = next(below(2) == 0 ? kAnySource : source, tag_or_any());
    one.claim = true;
    look(comm_, 0, one.source, one.tag, true, true, one.look);
    claims_.push_back(&one);
  }
  /// One that has met its message goes on.
  void cancel(Outcome& one) {
    if (!one.pending || one.claim || one.operation.done()) return;
    comm_.engine(0).cancel(one.operation);
    one.pending = !one.operation.done() || one.operation.result().code() != TUTTI_ERR_CANCELLED;
    ++(one.pending ? cancelled_too_late_ : cancelled_);
    if (!one.pending) REQUIRE(std::all_of(one.buffer.begin(), one.buffer.end(), [](uint8_t byte) { return byte == 0; }));
  }
  /// What was claimed is received some time later.
  void receive_claims(bool all) {
    for (size_t i = 0; i < claims_.size();) {
      Outcome& one = *claims_[i];
      if (!one.look.done() || (one.look.found() && !all && below(3) != 0)) {
        ++i;
        continue;
      }
      one.pending = one.look.found();
      if (one.pending) receive_claimed(comm_, 0, one.buffer.data(), one.buffer.size(), *one.look.claimed(), one.operation);
      claims_.erase(claims_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  /// Until each receive has a message and each message a receive.
  void finish() {
    REQUIRE(job_.drive([&] { return std::all_of(claims_.begin(), claims_.end(), [](auto* one) { return one->look.done(); }); }));
    receive_claims(true);
    const auto waits = [](const Outcome& one) { return one.pending && !one.operation.done(); };
    while (std::any_of(outcomes_.begin(), outcomes_.end(), waits)) {
      for (const Outcome& one : outcomes_)
        if (waits(one)) send_for(one);
      job_.drive([&] { return std::none_of(outcomes_.begin(), outcomes_.end(), waits); }, kSecondNs / 10);
    }
    const auto received = [](const Outcome& one) { return one.pending; };
    while (std::count_if(outcomes_.begin(), outcomes_.end(), received) < static_cast<std::ptrdiff_t>(sends_.size())) {
      receive(kAnySource, kAnyTag);
      REQUIRE(job_.drive([&] { return outcomes_.back().operation.done(); }, 60 * kSecondNs));
    }
    REQUIRE(job_.drive([&] { return all_done(sends_); }, 60 * kSecondNs));
    CHECK(comm_.group(0).failed() == false);
  }
  size_t number_of(const Outcome& one) const {
    const Envelope& got = one.operation.envelope();
    uint32_t number = UINT32_MAX;
    std::memcpy(&number, one.buffer.data() + 4, sizeof number);
    REQUIRE(one.buffer[0] == got.source);
    const Sent& sent = sent_[got.source].at(number);
    REQUIRE(sent.tag == got.tag);
    REQUIRE(sent.data.size() == got.bytes);
    REQUIRE(std::equal(sent.data.begin(), sent.data.begin() + static_cast<std::ptrdiff_t>(one.operation.received_bytes()),
                       one.buffer.begin()));
    return number;
  }
  /// Who got the later of two messages would have got the earlier one, if it takes both and nobody before it took that.
  void check_order(uint32_t source, size_t early, size_t late, const std::vector<size_t>& order) const {
    if (order[late] == SIZE_MAX || outcomes_[order[late]].claim) return;
    const Outcome& got_late = outcomes_[order[late]];
    const bool takes_early = got_late.tag == kAnyTag || got_late.tag == sent_[source][early].tag;
    if (!takes_early) return;
    REQUIRE(order[early] != SIZE_MAX);
    if (!outcomes_[order[early]].claim) REQUIRE(order[early] < order[late]);
  }

  std::vector<Sent> sent_[kSize] = {};
  std::deque<MessageOperation> sends_;
  std::deque<Outcome> outcomes_;  // in the order in which they were posted
  std::vector<Outcome*> claims_;
  int cancelled_ = 0;
  int cancelled_too_late_ = 0;
  SimJob job_;
  SimComm comm_;
};

}  // namespace

TEST_CASE("random sends, receives, looks, claims and cancels: each message is somebody's once, in the order of its sender") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  int cancelled = 0;
  int cancelled_too_late = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed " << seed);
    Traffic traffic(seed, caps);
    traffic.run();
    traffic.judge();
    cancelled += traffic.cancelled();
    cancelled_too_late += traffic.cancelled_too_late();
  }
  CHECK(cancelled > 100);
  CHECK(cancelled_too_late > 0);
}

TEST_CASE("a look that waits ends when the message comes; one that does not, at once; neither takes it") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  SimJob job(3, options(3, caps));
  SimComm comm(job, 1, {0, 1, 2});
  const std::vector<uint8_t> sent(5000, 7);
  std::vector<uint8_t> got(5000);
  MessageOperation waiting;
  MessageOperation once;
  MessageOperation send;
  MessageOperation receive;
  look(comm, 0, kAnySource, 4, false, false, waiting);
  look(comm, 0, 2, kAnyTag, true, false, once);
  REQUIRE(job.drive([&] { return once.done(); }));
  CHECK_FALSE(once.found());
  CHECK_FALSE(waiting.done());
  comm.send(2, sent.data(), sent.size(), 0, 4, send);
  REQUIRE(job.drive([&] { return waiting.done(); }));
  CHECK(waiting.found());
  CHECK(waiting.envelope().source == 2);
  CHECK(waiting.envelope().bytes == 5000);
  look(comm, 0, 2, kAnyTag, true, false, once);
  REQUIRE(job.drive([&] { return once.done(); }));
  CHECK(once.found());
  comm.recv(0, got.data(), got.size(), kAnySource, kAnyTag, receive);
  REQUIRE(job.drive([&] { return receive.done() && send.done(); }));
  CHECK(got == sent);
}

TEST_CASE("what is in the way is set aside up to the limit, then its sender is held back, and nothing is lost") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  constexpr size_t kBytes = 4 << 20;
  constexpr size_t kCount = 20;  // more than may be set aside
  SimJob job(4, options(3, caps));
  SimComm comm(job, 1, {0, 1, 2});
  const std::vector<uint8_t> sent(kBytes, 9);
  std::vector<uint8_t> got(kBytes);
  std::deque<MessageOperation> sends(kCount);
  uint8_t word = 1;
  MessageOperation wanted;
  MessageOperation send_wanted;
  // Rank 1 sends much that nobody takes, while a message of any rank is awaited that rank 2 sends.
  comm.recv(0, &word, 1, kAnySource, 5, wanted);
  for (MessageOperation& send : sends) comm.send(1, sent.data(), kBytes, 0, 1, send);
  job.drive([] { return false; }, kSecondNs / 4);
  CHECK_FALSE(comm.group(0).failed());
  CHECK_FALSE(all_done(sends));
  const uint8_t two = 2;
  comm.send(2, &two, 1, 0, 5, send_wanted);
  REQUIRE(job.drive([&] { return wanted.done(); }, 10 * kSecondNs));
  CHECK(word == 2);
  for (size_t i = 0; i < kCount; ++i) {
    MessageOperation receive;
    got.assign(kBytes, 0);
    comm.recv(0, got.data(), kBytes, i % 2 ? 1 : kAnySource, 1, receive);
    REQUIRE(job.drive([&] { return receive.done(); }, 10 * kSecondNs));
    REQUIRE(receive.result().ok());
    REQUIRE(got == sent);
  }
  CHECK(job.drive([&] { return all_done(sends); }));
}

TEST_CASE("a wait that the limit makes endless says so at its timeout") {
  const std::vector<uint8_t> sent(PointToPoint::kUnexpectedLimitBytes);
  uint8_t word = 0;
  MessageOperation send;  // outstanding when the communicator goes
  MessageOperation wanted;
  SimJob job(5, options(2, TUTTI_TP_CAP_MESSAGES));
  SimComm comm(job, 1, {0, 1});
  comm.send(1, sent.data(), sent.size(), 0, 1, send);
  comm.recv(0, &word, 1, 1, 2, wanted, job.after(kSecondNs));
  REQUIRE(job.drive([&] { return wanted.done(); }, 10 * kSecondNs));
  CHECK(wanted.result().code() == TUTTI_ERR_TIMEOUT);
  CHECK(wanted.result().message().find("post receives in the order of the messages") != std::string_view::npos);
}

TEST_CASE("a receive of any source fails when any rank has failed, and names it") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimJob job(seed, options(4, caps));
    MessageOperation receive;
    uint8_t word = 0;
    SimComm comm(job, 1, everybody(4));
    comm.recv(0, &word, 1, kAnySource, kAnyTag, receive);
    job.drive([] { return false; }, kSecondNs / 100);
    job.crash(2);
    REQUIRE(job.drive([&] { return receive.done(); }, 30 * kSecondNs));
    CHECK(receive.result().code() == TUTTI_ERR_PEER_FAILED);
    CHECK(receive.result().message().find("rank 2") != std::string_view::npos);
  }
}

TEST_CASE("a receive or look of any source goes on while some are left, and fails when all others have gone in order") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  const bool looks = GENERATE(false, true);
  const bool endpoints = GENERATE(false, true);  // the ranks leave the job, not the communicator alone
  SimJob job(6, options(3, caps));
  MessageOperation first;
  MessageOperation second;
  MessageOperation send;
  uint8_t word = 0;
  const uint8_t one = 1;
  SimComm comm(job, 1, {0, 1, 2});
  const auto leave = [&](uint32_t rank) {
    comm.leave(rank);
    if (endpoints) job.leave(rank);
  };
  comm.recv(0, &word, 1, kAnySource, kAnyTag, first);
  job.drive([] { return false; }, kSecondNs / 100);
  leave(1);
  job.drive([] { return false; }, 3 * kSecondNs);
  CHECK_FALSE(first.done());
  // The last one sends before it leaves.
  comm.send(2, &one, 1, 0, 3, send);
  REQUIRE(job.drive([&] { return send.done(); }));
  leave(2);
  REQUIRE(job.drive([&] { return first.done(); }, 5 * kSecondNs));
  CHECK(first.result().ok());
  CHECK(word == 1);
  if (looks)
    look(comm, 0, kAnySource, kAnyTag, false, false, second);
  else
    comm.recv(0, &word, 1, kAnySource, kAnyTag, second);
  REQUIRE(job.drive([&] { return second.done(); }, 10 * kSecondNs));
  CHECK(second.result().code() == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("a receive of any source goes on when a rank ended before it was reached; one that names it does not") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  const bool named_first = GENERATE(false, true);
  SimJob job(6, options(3, caps));
  MessageOperation any;
  MessageOperation named;
  MessageOperation send;
  uint8_t word = 0;
  uint8_t other_word = 0;
  const uint8_t one = 1;
  SimComm comm(job, 1, {0, 1, 2});
  comm.leave(2);
  job.leave(2);
  if (named_first) comm.recv(0, &other_word, 1, 2, 5, named);
  comm.recv(0, &word, 1, kAnySource, 3, any);
  job.drive([] { return false; }, 60 * kSecondNs);  // longer than it tries to connect
  if (!named_first) {
    CHECK_FALSE(any.done());
    comm.send(1, &one, 1, 0, 3, send);
    REQUIRE(job.drive([&] { return any.done(); }, kSecondNs));
    CHECK(any.result().ok());
    CHECK(word == 1);
    comm.recv(0, &other_word, 1, 2, 5, named);
  }
  REQUIRE(job.drive([&] { return named.done(); }, 2 * kSecondNs));
  CHECK(named.result().code() == TUTTI_ERR_CONNECT);
  CHECK(named.result().message().find("rank 2") != std::string_view::npos);
  CHECK(any.done());
}

TEST_CASE("a receive of any source ends when all others ended before they were reached") {
  SimJob job(6, options(3, TUTTI_TP_CAP_MESSAGES));
  MessageOperation receive;
  uint8_t word = 0;
  SimComm comm(job, 1, {0, 1, 2});
  for (const uint32_t rank : {1u, 2u}) {
    comm.leave(rank);
    job.leave(rank);
  }
  comm.recv(0, &word, 1, kAnySource, kAnyTag, receive);
  REQUIRE(job.drive([&] { return receive.done(); }, 60 * kSecondNs));
  CHECK(receive.result().code() == TUTTI_ERR_PEER_FAILED);
}

TEST_CASE("a rank that died before it was reached is known by what its neighbours say, in all communicators") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    SimJob job(seed, options(4, TUTTI_TP_CAP_MESSAGES));
    MessageOperation hello[2];
    MessageOperation receive;
    uint8_t words[3] = {};
    SimComm all(job, 1, {0, 1, 2, 3});
    SimComm some(job, 2, {0, 2, 3});  // without the neighbour
    all.send(2, &words[0], 1, 1, 1, hello[0]);
    all.recv(1, &words[1], 1, 2, 1, hello[1]);
    REQUIRE(job.drive([&] { return hello[0].done() && hello[1].done(); }));
    job.crash(2);
    uint64_t steps = job.world.random_u64() % 20;  // the news may come before the receive, or after
    job.drive([&] { return steps-- == 0; });
    some.recv(0, &words[2], 1, kAnySource, kAnyTag, receive);
    REQUIRE(job.drive([&] { return receive.done(); }, 60 * kSecondNs));
    CHECK((receive.result().code() == TUTTI_ERR_PEER_FAILED || receive.result().code() == TUTTI_ERR_CONNECT));
    CHECK(receive.result().message().find("rank 2") != std::string_view::npos);
  }
}

TEST_CASE("16 ranks send to one that is slow: no loss, and no memory beyond a message each") {
  const uint32_t caps = GENERATE(as<uint32_t>(), TUTTI_TP_CAP_SLOTS, TUTTI_TP_CAP_MESSAGES);
  constexpr uint32_t kSize = 17;
  constexpr uint32_t kCount = 100;
  SimJob job(7, options(kSize, caps));
  SimComm comm(job, 1, everybody(kSize));
  std::vector<std::vector<uint32_t>> data(kSize, std::vector<uint32_t>(256));
  std::deque<MessageOperation> sends;
  std::vector<uint32_t> got(256);
  std::vector<uint32_t> next(kSize, 0);
  for (uint32_t i = 0; i < kCount; ++i)
    for (uint32_t rank = 1; rank < kSize; ++rank) {
      sends.emplace_back();
      comm.send(rank, data[rank].data(), 1024, 0, static_cast<int32_t>(i), sends.back());
    }
  for (uint32_t i = 0; i < kCount * (kSize - 1); ++i) {
    MessageOperation receive;
    comm.recv(0, got.data(), 1024, kAnySource, kAnyTag, receive);
    REQUIRE(job.drive([&] { return receive.done(); }));
    REQUIRE(receive.envelope().bytes == 1024);
    REQUIRE(receive.envelope().tag == static_cast<int32_t>(next[receive.envelope().source]++));
  }
  CHECK(job.drive([&] { return all_done(sends); }));
}
