// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "schedule/algorithm.hpp"
#include "schedule/network.hpp"

/// How long a collective would take on a machine that is not there: a discrete-event walk of the real schedules of all ranks.
///
/// The model, in the manner of LogGP:
///   processor  A rank has one; its lanes take turns, in the order in which their steps become ready. A step becomes ready when
///              its messages are there and its channels have a free slot. It costs Prices::step_ns, an overhead for each message,
///              and time for each byte folded or copied. Its messages leave, and the slots that it read are free, at its end.
///              Where a node has fewer processors than ranks, ranks take turns on them likewise, and each change costs
///              Prices::switch_ns.
///   message    Takes all links of its route from the moment when it leaves, for bytes / bandwidth each: at one pace with the
///              slowest. It is there when the last link is done with it, and the latency later.
///   link       Takes messages in the order in which they left their ranks. Those that left at the same instant share it
///              evenly: all are through when the last one is.
///   slots      A channel has Reach::slots of them. One that the receiver has read comes back a latency later.
///   lengths    A part of a vector that is no whole number of elements is taken to be one element longer: so all parts of a cut
///              are alike, and a part that a real call would leave empty travels as one element.
///
/// Time is counted in whole picoseconds, so that what is symmetrical stays so. Ranks that do the same at like places of the
/// network therefore do it at the same times, and can be walked as one (the *classes*): the result is that of the full walk,
/// exactly. Whether ranks are alike is found by colour refinement over ranks, channels and links; see simulate/classes.cpp.
namespace tutti {

enum class WalkMethod : uint8_t {
  automatic,  ///< every event up to kMaxRanksWalked ranks and max_steps_walked; beyond, classes if ranks are alike;
              ///< the formula where neither can be done
  every_event,
  classes,
  formula  ///< the algorithm's own cost formula
};
inline constexpr uint32_t kMaxRanksWalked = 4096;

struct SimulationRequest {
  const AlgorithmInfo* algorithm = nullptr;
  Parameters parameters;
  uint64_t bytes = 0;  ///< as AlgorithmInfo::cost_ns has it: of the vector, all blocks together
  uint32_t element_bytes = 4;
  uint32_t root = 0;
  WalkMethod method = WalkMethod::automatic;
  /// Where a walk would take more steps, two shorter vectors are walked and the rest follows from the difference.
  uint64_t max_steps_walked = 8'000'000;
  /// Steps of all ranks' schedules, before chunks: beyond, not even built.
  uint64_t max_steps_built = 300'000'000;
  /// Of this rank, what each of its steps did.
  std::optional<uint32_t> traced_rank;
};

struct RankUse {
  uint32_t rank = 0;  ///< the lowest of those that do the same
  uint32_t members = 1;
  double end_ns = 0;
  double busy_ns = 0;  ///< of its processor
  uint64_t sent_messages = 0;
  uint64_t sent_bytes = 0;
};

struct LinkUse {
  std::string name;
  double busy_ns = 0;
  uint64_t bytes = 0;
};

struct StepUse {
  uint32_t lane = 0;
  uint32_t step = 0;  ///< of the lane
  uint64_t chunks = 0;
  double first_start_ns = 0;
  double last_end_ns = 0;
  double waited_ns = 0;  ///< for messages, slots and the processor
};

struct Prediction {
  double time_ns = 0;
  WalkMethod method = WalkMethod::every_event;  ///< never automatic
  std::string note;                             ///< what is not as asked, or approximate; for people
  uint32_t class_count = 0;                     ///< of ranks; with every_event all ranks
  uint64_t walked_bytes = 0;                    ///< below the request's where the rest was extrapolated
  uint64_t walked_steps = 0;
  uint64_t rounds = 0;  ///< messages in the longest chain of which each waits for the one before
  uint64_t messages = 0;
  uint64_t max_sent_bytes = 0;     ///< of one rank
  std::optional<LinkUse> busiest;  ///< none where no link is used
  std::vector<RankUse> ranks;
  std::vector<StepUse> steps;  ///< of traced_rank
};

/// Pure but for the memory that it takes. An error where the request does not fit or a schedule does not come to its end.
Result<Prediction> simulate(const Network& network, const SimulationRequest& request);

}  // namespace tutti
