// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "base/status.hpp"
#include "schedule/algorithm.hpp"
#include "select/select.hpp"

/// The subcommands of tutti-info. Each gives the text that main prints; none prints by itself.
namespace tutti::info {

enum class Format : uint8_t { text, markdown, json };

/// `library_version` is that of the library that is loaded.
std::string overview(const Config& config, const std::string& library_version);
/// Markdown: the reference page docs/settings.md, without the values that are set here.
std::string config_page(const Config& config, Format format);
/// Markdown: the reference page docs/algorithms.md.
std::string algorithms_page(Format format);
std::string counters_page();
std::string errors_page();

struct SelectRequest {
  Collective collective = Collective::allreduce;
  uint32_t rank_count = 1;
  std::string algorithm;  // text of an override; "": chosen
  bool one_node = true;   ///< else a rank a node
  uint32_t cpu_count = 0;  ///< of a node; 0: one for each rank
};
Result<std::string> select_page(const SelectRequest& request);

/// What a call, in this environment, would use.
struct ChooseRequest {
  Collective collective = Collective::allreduce;
  uint32_t rank_count = 1;
  uint32_t node_count = 1;
  uint32_t cpu_count = 0;  // of a node; 0: one for each rank
  uint64_t bytes = 0;
  std::string type = "f32";  // a type or a class of types
  std::string links;         // "": shm within a node, tcp between
  std::string tuning_file;   // "": none
  bool uneven = false;
  bool ordered = false;
  Config config;  // for the overrides
};
Result<std::string> choose_page(const ChooseRequest& request);

enum class Lowering : uint8_t { none, messages, slots };

struct ScheduleRequest {
  SelectRequest select;
  uint64_t bytes = 0;
  uint32_t root = 0;
  bool in_place = false;
  std::optional<uint32_t> rank;  // only this one
  bool dot = false;
  bool verify = false;
  Lowering lowering = Lowering::none;
};
Result<std::string> schedule_page(const ScheduleRequest& request);

struct TopologyRequest {
  bool json = false;
  bool xml = false;
  std::string load;  // a file instead of this machine
};
Result<std::string> topology_page(const TopologyRequest& request);
/// The places of the ranks of the job that this process is one of, which meet for it. Blocks for `bootstrap_timeout` at most.
/// rank: who this process is, as soon as that is known.
Result<std::string> job_page(const Config& config, bool json, uint32_t* rank);

}  // namespace tutti::info
