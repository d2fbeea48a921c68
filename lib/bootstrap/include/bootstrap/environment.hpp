// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/status.hpp"
#include "bootstrap/net.hpp"

namespace tutti {

/// getenv, or a recorded environment. nullopt: not set.
using EnvironmentLookup = std::function<std::optional<std::string>(std::string_view name)>;
EnvironmentLookup process_environment();

enum class Launcher : uint8_t { none, tuttirun, by_hand, pmi, pmix, torchrun, slurm };
std::string_view name(Launcher launcher) noexcept;

/// How the ranks meet.
enum class Meeting : uint8_t {
  alone,      // one rank: nobody to meet
  served,     // somebody else (the launcher) serves the store at `servers`
  rank_zero,  // rank 0 serves the store at the first of `servers` that is free there; the others try them all
  file,       // rank 0 leaves an invitation at `path`
  pmi,        // ... in the PMI-1 key space
  pmix,       // ... in the PMIx key space
};

/// What the environment says about this process. Nothing here has touched a socket or a file.
struct LaunchInfo {
  Launcher launcher = Launcher::none;
  Meeting meeting = Meeting::alone;
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // as the launcher says; -1: it does not
  int local_size = -1;
  bool single_host = true;  // known for certain
  std::string job_id;       // "" if the launcher gives none
  std::vector<Endpoint> servers;
  std::string path;
  int pmi_fd = -1;
  std::optional<Endpoint> pmi_server;  // PMI_PORT
  std::string pmi_id;
};

/// Order: rank/size/rendezvous of the configuration (tuttirun or by hand), torchrun's own variables, PMI, PMIx, RANK with
/// MASTER_ADDR, Slurm; else one rank alone. What an outer launcher left behind is not taken inside an inner one.
/// TUTTI_ERR_ENVIRONMENT: contradictions, with variable and value.
Result<LaunchInfo> detect_launch(const Config& config, const EnvironmentLookup& environment);

/// First host of a compressed Slurm host list: "node[03-05,9],x1" -> "node03".
Result<std::string> first_slurm_host(std::string_view list);

}  // namespace tutti
