// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"
#include "schedule/simulate.hpp"

/// The subcommands of tutti-sim. Each gives the text that main prints; none prints by itself.
namespace tutti::simulator {

struct Question {
  Collective collective = Collective::allreduce;
  uint32_t ranks = 2;
  uint64_t bytes = 0;
  uint32_t element_bytes = 4;
  uint32_t root = 0;
  std::vector<std::string> algorithms;  ///< texts as of an override; none: all that fit
  NetworkSpec network;
  WalkMethod method = WalkMethod::automatic;
  uint64_t max_steps = 0;  ///< 0: SimulationRequest's
  bool json = false;
};

/// Told what is being done before each part of something longer.
using Progress = std::function<void(const std::string&)>;

/// All algorithms that fit, the fastest first, and why it is that.
Result<std::string> compare_page(const Question& question, const Progress& progress);
/// One algorithm: times of the ranks, and the steps of the slowest.
Result<std::string> run_page(const Question& question);
Result<std::string> topology_page(const NetworkSpec& spec, uint32_t ranks, bool json);

struct VerifyQuestion {
  std::vector<Collective> collectives;
  std::string algorithm;  ///< by name; "": all
  std::vector<uint32_t> ranks;
  bool json = false;
};
/// "2,3,8-12" in ascending order.
Result<std::vector<uint32_t>> parse_ranks(std::string_view text);
/// TUTTI_ERR_INTERNAL if a schedule is wrong.
Result<std::string> verify_page(const VerifyQuestion& question, const Progress& progress);

struct CalibrateQuestion {
  std::string tuning_file;  ///< as tutti-tune writes it
  std::string output;       ///< a topology file is written there; "": none
  NetworkSpec start;        ///< prices to begin with
  uint32_t cores = 0;       ///< of the machine that was measured
  uint64_t max_bytes = 0;   ///< longer vectors are left out
  bool json = false;
};
/// Prices that explain what was measured on one node: fitted to every other size, judged by the rest. TUTTI_ERR_CONFIG where the
/// file has nothing to go by.
Result<std::string> calibrate_page(const CalibrateQuestion& question, const Progress& progress);

std::string format_time(double ns);       ///< "12.3 us"
std::string format_size(uint64_t bytes);  ///< "1.50 MiB"

}  // namespace tutti::simulator
