// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "jobs.hpp"
#include "schedule/print.hpp"

namespace tutti {
namespace {

using Catch::Matchers::Contains;

size_t occurrences(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a schedule prints one line a step") {
  const std::vector<Schedule> ring = jobs::job(*find_algorithm(Collective::allreduce, "ring"), 2);
  CHECK(print_text(ring[1]) ==
        "allreduce, rank 1 of 2\n"
        "  lane 0, chunks as long as the transport allows\n"
        "    lag 0   message to 0 = input[1/2]\n"
        "    lag 1   message to 0 = output[0/2]\n"
        "    lag 0   output[0/2] = message from 0 op input[0/2], finalized\n"
        "    lag 1   output[1/2] = message from 0\n");
}

TEST_CASE("slices of several blocks, signals and segment lengths are shown") {
  const std::vector<Schedule> job = jobs::job(Collective::barrier, 2, [](ScheduleBuilder& plan, uint32_t rank) {
    const LaneBuilder lane = plan.lane(65536);
    lane.signal(1 - rank);
    lane.await_signal(1 - rank);
    lane.send(1 - rank, scratch({8, 2, 5}));
  });
  const std::string text = print_text(job[0]);
  CHECK_THAT(text, Contains("chunks of 64K"));
  CHECK_THAT(text, Contains("signal to 1 = nothing"));
  CHECK_THAT(text, Contains("nothing = signal from 1"));
  CHECK_THAT(text, Contains("message to 1 = scratch[2..5/8]"));
}

TEST_CASE("a program prints its channels, staging, tickets and steps") {
  const std::vector<Schedule> ring = jobs::job(*find_algorithm(Collective::allreduce, "ring"), 2);
  const std::string messages = print_text(lower_job(ring, uniform_pairs(2, Carrier::messages, 4096, 1))[0]);
  CHECK_THAT(messages, Contains("channel 0: to rank 1, by messages, lane 0"));
  CHECK_THAT(messages, Contains("staged 0: 2 segments, lane 0"));
  CHECK_THAT(messages, Contains("segments of 4K"));
  CHECK_THAT(messages, Contains("post_send"));
  CHECK_THAT(messages, Contains("output[1/2] = staged 0[1/2] op input[1/2], finalized"));
  const std::string slots = print_text(lower_job(ring, uniform_pairs(2, Carrier::slots, 4096, 1))[0]);
  CHECK_THAT(slots, Contains("slot of channel 0[0/2] = input[0/2]"));
}

TEST_CASE("the drawing has a box for each rank and an arrow for each message") {
  const std::vector<Schedule> ring = jobs::job(*find_algorithm(Collective::allreduce, "ring"), 4);
  const std::string dot = print_dot(ring);
  CHECK(occurrences(dot, "subgraph cluster_") == 4);
  const size_t arrows = occurrences(dot, " -> ");
  const size_t in_lanes = occurrences(dot, "[style=dotted]");
  CHECK(arrows - in_lanes == 4 * 6);  // 2 (p - 1) messages a rank
  CHECK(dot.substr(0, 8) == "digraph ");
  CHECK(dot.substr(dot.size() - 2) == "}\n");
}

}  // namespace tutti
