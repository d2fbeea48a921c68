// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <vector>

#include "engine/matching.hpp"

using namespace tutti;

namespace {

struct Receive : PostedReceive {
  Receive(uint32_t source, int32_t tag) {
    from = source;
    with_tag = tag;
  }
};

struct Message : WaitingMessage {
  Message(uint32_t source, int32_t tag) { envelope = {source, tag, 0}; }
};

/// The rules, written down as plainly as can be: two lists in order, searched from the front.
struct Reference {
  std::vector<PostedReceive*> receives;
  std::vector<WaitingMessage*> messages;

  static bool fits(const PostedReceive& receive, const WaitingMessage& message) {
    return (receive.from == kAnySource || receive.from == message.envelope.source) &&
           (receive.with_tag == kAnyTag || receive.with_tag == message.envelope.tag);
  }
  PostedReceive* receive_for(const WaitingMessage& message) const {
    const auto found = std::find_if(receives.begin(), receives.end(), [&](auto* one) { return fits(*one, message); });
    return found == receives.end() ? nullptr : *found;
  }
  WaitingMessage* message_for(const PostedReceive& receive) const {
    const auto found = std::find_if(messages.begin(), messages.end(), [&](auto* one) { return fits(receive, *one); });
    return found == messages.end() ? nullptr : *found;
  }
};

}  // namespace

TEST_CASE("of two receives the one that was posted first gets the message, whether it names the source or not") {
  for (const bool named_first : {false, true}) {
    Matching matching(3);
    Receive named(1, 7);
    Receive any(kAnySource, kAnyTag);
    matching.post(named_first ? named : any);
    matching.post(named_first ? any : named);
    CHECK(matching.take({1, 7, 0}) == (named_first ? static_cast<PostedReceive*>(&named) : &any));
    CHECK(matching.take({1, 7, 0}) == (named_first ? static_cast<PostedReceive*>(&any) : &named));
    CHECK(matching.take({1, 7, 0}) == nullptr);
  }
}

TEST_CASE("a receive that does not take the message leaves it to a later one") {
  Matching matching(3);
  Receive other_tag(1, 8);
  Receive other_source(2, 7);
  Receive any(kAnySource, 7);
  matching.post(other_tag);
  matching.post(other_source);
  matching.post(any);
  CHECK(matching.awaits(0));
  CHECK(matching.take({1, 7, 0}) == &any);
  CHECK_FALSE(matching.awaits(0));
  CHECK(matching.awaits(1));
}

TEST_CASE("a receive of any source gets what came first from whomever, one of a source what came first from there") {
  Matching matching(3);
  Message first(2, 5);
  Message second(1, 5);
  Message third(1, 6);
  for (Message* one : {&first, &second, &third}) matching.add(*one);
  CHECK(matching.find(Receive(kAnySource, kAnyTag)) == &first);
  CHECK(matching.find(Receive(kAnySource, 6)) == &third);
  CHECK(matching.find(Receive(1, kAnyTag)) == &second);
  matching.remove(second);
  CHECK(matching.find(Receive(1, kAnyTag)) == &third);
  CHECK(matching.find(Receive(0, kAnyTag)) == nullptr);
  CHECK(matching.first() == &first);
}

TEST_CASE("whatever is posted, comes, is looked for and withdrawn: as the plain rules say") {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    INFO("seed " << seed);
    std::minstd_rand random(seed + 1);
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    const uint32_t ranks = 1 + below(4);
    Matching matching(ranks);
    Reference reference;
    std::vector<std::unique_ptr<Receive>> receives;
    std::vector<std::unique_ptr<Message>> messages;
    for (int step = 0; step < 200; ++step) {
      const uint32_t source = below(ranks);
      const auto tag = static_cast<int32_t>(below(3));
      const uint32_t what = below(10);
      if (what < 4) {  // a receive
        receives.push_back(std::make_unique<Receive>(below(3) == 0 ? kAnySource : source, below(4) == 0 ? kAnyTag : tag));
        WaitingMessage* found = matching.find(*receives.back());
        REQUIRE(found == reference.message_for(*receives.back()));
        if (found) {
          matching.remove(*found);
          reference.messages.erase(std::find(reference.messages.begin(), reference.messages.end(), found));
        } else {
          matching.post(*receives.back());
          reference.receives.push_back(receives.back().get());
        }
      } else if (what < 9) {  // a message
        messages.push_back(std::make_unique<Message>(source, tag));
        PostedReceive* wanted = reference.receive_for(*messages.back());
        REQUIRE(matching.take(messages.back()->envelope) == wanted);
        if (wanted) {
          reference.receives.erase(std::find(reference.receives.begin(), reference.receives.end(), wanted));
        } else {
          matching.add(*messages.back());
          reference.messages.push_back(messages.back().get());
        }
      } else if (!reference.receives.empty()) {
        const auto one = reference.receives.begin() + below(static_cast<uint32_t>(reference.receives.size()));
        matching.withdraw(**one);
        reference.receives.erase(one);
      }
      for (uint32_t rank = 0; rank < ranks; ++rank)
        REQUIRE(matching.awaits(rank) == std::any_of(reference.receives.begin(), reference.receives.end(),
                                                     [&](auto* one) { return one->from == kAnySource || one->from == rank; }));
      REQUIRE(matching.first() == (reference.messages.empty() ? nullptr : reference.messages.front()));
    }
  }
}
