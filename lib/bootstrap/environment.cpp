// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tutti {
namespace {

constexpr int kMostRanks = 1 << 24;
constexpr uint16_t kAlternativePorts = 8;     // where nobody has reserved one for us
constexpr uint32_t kFirstSlurmPort = 20'000;  // below the ports that the kernel gives to outgoing connections
constexpr uint32_t kSlurmPortCount = 12'000;
constexpr size_t kMostNameBytes = 100;  // of an abstract socket

struct Reader {
  const EnvironmentLookup& environment;

  std::string text(std::string_view name) const { return environment(name).value_or(""); }
  bool has(std::string_view name) const { return !text(name).empty(); }

  /// A number of at least `least`; `fallback` when the variable is not set.
  Result<int> number(std::string_view name, int least, int fallback) const {
    const std::string value = text(name);
    if (value.empty()) return fallback;
    int number = 0;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (failure != std::errc() || end != value.data() + value.size() || number < least || number > kMostRanks) {
      return error(TUTTI_ERR_ENVIRONMENT, "{} is '{}', which is not a whole number from {} to {}", name, value, least,
                   kMostRanks);
    }
    return number;
  }
  Result<int> needed(std::string_view name, int least, std::string_view because) const {
    if (!has(name)) return error(TUTTI_ERR_ENVIRONMENT, "{} is not set, although {} is", name, because);
    return number(name, least, 0);
  }
};

Status check_rank(const LaunchInfo& info, std::string_view rank_name, std::string_view size_name) {
  if (info.rank < info.size) return Status();
  return error(TUTTI_ERR_ENVIRONMENT, "{} is {}, but {} is {}: ranks are numbered from 0", rank_name, info.rank, size_name,
               info.size);
}

Status read_local(const Reader& reader, std::string_view rank_name, std::string_view size_name, LaunchInfo* info) {
  const Result<int> rank = reader.number(rank_name, 0, -1);
  TUTTI_TRY(rank.status());
  const Result<int> size = reader.number(size_name, 1, -1);
  TUTTI_TRY(size.status());
  info->local_rank = *rank;
  info->local_size = *size;
  info->single_host = info->local_size > 0 && info->local_size == info->size;
  return Status();
}

/// A socket that all processes of this user find by the same name, for jobs of one host whose launcher serves nothing.
Endpoint local_socket(std::string_view launcher, std::string_view id) {
  std::string name = fmt::format("@tutti-{}-{}-{}", geteuid(), launcher, id);
  // The end of an id tells more than its beginning: a step or a restart is counted there.
  if (name.size() > kMostNameBytes) name = fmt::format("@tutti-{}-{}-{}", geteuid(), launcher, id.substr(id.size() - 60));
  return Endpoint{name, 0};
}

Status read_meeting(const std::string& url, LaunchInfo* info) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kFile = "file://";
  if (url.rfind(kFile, 0) == 0) {
    info->meeting = Meeting::file;
    info->path = url.substr(kFile.size());
    if (info->path.size() < 2 || info->path[0] != '/') {
      return error(TUTTI_ERR_ENVIRONMENT, "TUTTI_RENDEZVOUS is '{}': a path is absolute, as in file:///scratch/my-job", url);
    }
    info->single_host = false;
    return Status();
  }
  if (url.rfind(kTcp, 0) != 0) {
    return error(TUTTI_ERR_ENVIRONMENT, "TUTTI_RENDEZVOUS is '{}'; write tcp://host:port or file:///path", url);
  }
  Result<std::vector<Endpoint>> servers = parse_endpoints(std::string_view(url).substr(kTcp.size()));
  if (!servers.ok()) return servers.status().with_context("TUTTI_RENDEZVOUS");
  info->servers = std::move(servers).value();
  info->meeting = Meeting::rank_zero;
  info->single_host =
      std::all_of(info->servers.begin(), info->servers.end(), [](const Endpoint& server) { return server.on_this_machine(); });
  return Status();
}

/// TUTTI_RANK, TUTTI_SIZE and TUTTI_RENDEZVOUS, or the same by the API.
Result<LaunchInfo> detect_configured(const Config& config, const Reader& reader) {
  const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
    if (name == "TUTTI_RANK") return config.text(Setting::rank);
    if (name == "TUTTI_SIZE") return config.text(Setting::size);
    return reader.environment(name);
  };
  const EnvironmentLookup with_config = lookup;
  const Reader own{with_config};
  LaunchInfo info;
  const std::string& url = config.text(Setting::rendezvous);
  const std::string_view because = own.has("TUTTI_RANK")   ? "TUTTI_RANK"
                                   : own.has("TUTTI_SIZE") ? "TUTTI_SIZE"
                                                           : "TUTTI_RENDEZVOUS";
  const Result<int> rank = own.needed("TUTTI_RANK", 0, because);
  TUTTI_TRY(rank.status());
  const Result<int> size = own.needed("TUTTI_SIZE", 1, because);
  TUTTI_TRY(size.status());
  info.rank = *rank;
  info.size = *size;
  TUTTI_TRY(check_rank(info, "TUTTI_RANK", "TUTTI_SIZE"));
  info.job_id = config.text(Setting::job_id);
  const bool launched = reader.text("TUTTI_LAUNCHER") == "tuttirun";
  info.launcher = launched ? Launcher::tuttirun : Launcher::by_hand;
  if (launched) TUTTI_TRY(read_local(reader, "TUTTI_LOCAL_RANK", "TUTTI_LOCAL_SIZE", &info));
  const bool one_host = launched && info.single_host;
  if (info.size == 1) {
    info.single_host = true;
    return info;
  }
  if (url.empty()) {
    return error(TUTTI_ERR_ENVIRONMENT,
                 "TUTTI_SIZE is {}, but TUTTI_RENDEZVOUS does not say where the ranks meet; write tcp://host:port (rank 0 "
                 "listens there) or file:///path",
                 info.size);
  }
  TUTTI_TRY(read_meeting(url, &info));
  if (launched && info.meeting == Meeting::rank_zero) {
    info.meeting = Meeting::served;
    info.single_host = info.single_host || one_host;
  }
  return info;
}

/// Ports beside the one that torch itself uses.
std::vector<Endpoint> ports_after(const std::string& host, int port) {
  std::vector<Endpoint> servers;
  for (int i = 1; i <= kAlternativePorts; ++i) {
    const int candidate = port + i <= 65535 ? port + i : port - i;
    servers.push_back({host, static_cast<uint16_t>(candidate)});
  }
  return servers;
}

Result<LaunchInfo> detect_torch(const Reader& reader) {
  LaunchInfo info;
  info.launcher = Launcher::torchrun;
  const Result<int> rank = reader.needed("RANK", 0, "MASTER_ADDR");
  TUTTI_TRY(rank.status());
  const Result<int> size = reader.needed("WORLD_SIZE", 1, "RANK");
  TUTTI_TRY(size.status());
  info.rank = *rank;
  info.size = *size;
  TUTTI_TRY(check_rank(info, "RANK", "WORLD_SIZE"));
  TUTTI_TRY(read_local(reader, "LOCAL_RANK", "LOCAL_WORLD_SIZE", &info));
  const std::string restart = reader.text("TORCHELASTIC_RESTART_COUNT");
  info.job_id = fmt::format("{}.{}", reader.has("TORCHELASTIC_RUN_ID") ? reader.text("TORCHELASTIC_RUN_ID") : "torch",
                            restart.empty() ? "0" : restart);
  if (info.size == 1) return info;
  const std::string host = reader.text("MASTER_ADDR");
  const Result<int> port = reader.needed("MASTER_PORT", 1, "RANK");
  TUTTI_TRY(port.status());
  if (host.empty()) return error(TUTTI_ERR_ENVIRONMENT, "MASTER_ADDR is not set, although RANK is");
  if (*port > 65535) return error(TUTTI_ERR_ENVIRONMENT, "MASTER_PORT is '{}', which is no port", *port);
  info.meeting = Meeting::rank_zero;
  if (info.single_host) {
    info.servers = {local_socket("torch", fmt::format("{}-{}", *port, info.job_id))};
  } else {
    info.servers = ports_after(host, *port);
  }
  return info;
}

Result<LaunchInfo> detect_pmi(const Reader& reader) {
  LaunchInfo info;
  info.launcher = Launcher::pmi;
  info.meeting = Meeting::pmi;
  info.pmi_id = reader.text("PMI_ID");
  const Result<int> rank = reader.number(reader.has("PMI_RANK") ? "PMI_RANK" : "PMI_ID", 0, 0);
  TUTTI_TRY(rank.status());
  const Result<int> size = reader.number("PMI_SIZE", 1, 0);
  TUTTI_TRY(size.status());
  info.rank = *rank;
  info.size = *size;  // 0: the process manager will say
  if (info.size > 0) TUTTI_TRY(check_rank(info, "PMI_RANK", "PMI_SIZE"));
  info.job_id = reader.text("PMI_JOBID");
  TUTTI_TRY(read_local(reader, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", &info));
  if (info.local_rank < 0) TUTTI_TRY(read_local(reader, "SLURM_LOCALID", "MPI_LOCALNRANKS", &info));
  if (reader.has("PMI_FD")) {
    const Result<int> fd = reader.number("PMI_FD", 0, -1);
    TUTTI_TRY(fd.status());
    info.pmi_fd = *fd;
  } else {
    Result<Endpoint> server = Endpoint::parse(reader.text("PMI_PORT"));
    if (!server.ok()) return server.status().with_context("PMI_PORT");
    info.pmi_server = std::move(server).value();
  }
  if (info.size == 1) info.meeting = Meeting::alone;
  return info;
}

Result<LaunchInfo> detect_pmix(const Reader& reader) {
  LaunchInfo info;
  info.launcher = Launcher::pmix;
  info.meeting = Meeting::pmix;
  const Result<int> rank = reader.number("PMIX_RANK", 0, 0);
  TUTTI_TRY(rank.status());
  info.rank = *rank;
  std::string_view size_name = "PMIX_SIZE";
  for (const std::string_view name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (!reader.has(name)) continue;
    size_name = name;
    break;
  }
  const Result<int> size = reader.number(size_name, 1, 0);
  TUTTI_TRY(size.status());
  info.size = *size;  // 0: the PMIx server will say
  if (info.size > 0) TUTTI_TRY(check_rank(info, "PMIX_RANK", size_name));
  info.job_id = reader.text("PMIX_NAMESPACE");
  const bool ompi = reader.has("OMPI_COMM_WORLD_LOCAL_RANK");
  TUTTI_TRY(read_local(reader, ompi ? "OMPI_COMM_WORLD_LOCAL_RANK" : "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_SIZE", &info));
  if (info.size == 1) info.meeting = Meeting::alone;
  return info;
}

Result<LaunchInfo> detect_slurm(const Reader& reader) {
  LaunchInfo info;
  info.launcher = Launcher::slurm;
  const Result<int> rank = reader.number("SLURM_PROCID", 0, 0);
  TUTTI_TRY(rank.status());
  const std::string_view size_name = reader.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  const Result<int> size = reader.needed(size_name, 1, "SLURM_PROCID");
  TUTTI_TRY(size.status());
  info.rank = *rank;
  info.size = *size;
  TUTTI_TRY(check_rank(info, "SLURM_PROCID", size_name));
  const Result<int> local = reader.number("SLURM_LOCALID", 0, -1);
  TUTTI_TRY(local.status());
  info.local_rank = *local;
  const Result<int> nodes = reader.number(reader.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES", 1, 0);
  TUTTI_TRY(nodes.status());
  info.single_host = *nodes == 1;
  if (info.single_host) info.local_size = info.size;
  info.job_id = fmt::format("{}.{}", reader.text("SLURM_JOB_ID"), reader.text("SLURM_STEP_ID"));
  if (info.size == 1) return info;
  info.meeting = Meeting::rank_zero;
  if (info.single_host) {
    info.servers = {local_socket("slurm", info.job_id)};
    return info;
  }
  const std::string_view list_name = reader.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
  Result<std::string> host = first_slurm_host(reader.text(list_name));
  if (!host.ok()) return host.status().with_context(list_name);
  // The same on all ranks, different for jobs and steps that share a host.
  uint32_t hash = 2166136261;
  for (const char c : info.job_id) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619;
  for (uint32_t i = 0; i < kAlternativePorts; ++i) {
    info.servers.push_back({*host, static_cast<uint16_t>(kFirstSlurmPort + (hash + i * 1499) % kSlurmPortCount)});
  }
  return info;
}

}  // namespace

EnvironmentLookup process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* const value = std::getenv(std::string(name).c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

std::string_view name(Launcher launcher) noexcept {
  constexpr std::string_view kNames[] = {"none", "tuttirun", "by hand", "PMI", "PMIx", "torchrun", "Slurm"};
  return kNames[static_cast<size_t>(launcher)];
}

Result<LaunchInfo> detect_launch(const Config& config, const EnvironmentLookup& environment) {
  const Reader reader{environment};
  const bool torchrun = reader.has("TORCHELASTIC_RUN_ID") && reader.has("RANK");
  const bool pmi = reader.has("PMI_FD") || reader.has("PMI_PORT");
  const bool pmix = reader.has("PMIX_RANK") && reader.has("PMIX_NAMESPACE");
  const bool configured =
      !config.text(Setting::rank).empty() || !config.text(Setting::size).empty() || !config.text(Setting::rendezvous).empty();
  // tuttirun takes the marks of launchers around it away from its ranks: what is there was set by a launcher within it.
  const bool inside_tuttirun = reader.text("TUTTI_LAUNCHER") == "tuttirun" && config.source(Setting::rank) != SettingSource::api;
  if (configured && !(inside_tuttirun && (torchrun || pmi || pmix))) return detect_configured(config, reader);
  if (torchrun) return detect_torch(reader);
  if (pmi) return detect_pmi(reader);
  if (pmix) return detect_pmix(reader);
  // A RANK alone is anybody's variable.
  if (reader.has("RANK") && reader.has("WORLD_SIZE") && reader.has("MASTER_ADDR")) return detect_torch(reader);
  // A batch script has SLURM_PROCID too, but is no step with several tasks.
  if (reader.has("SLURM_PROCID") && reader.has("SLURM_STEP_ID")) return detect_slurm(reader);
  return LaunchInfo{};
}

Result<std::string> first_slurm_host(std::string_view list) {
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host.push_back(list[at++]);
      continue;
    }
    const size_t close = list.find(']', at);
    const size_t end = std::min(list.find_first_of(",-]", at), list.size());
    if (close == std::string_view::npos || end == at + 1) {
      return error(TUTTI_ERR_ENVIRONMENT, "'{}' is no list of hosts", list);
    }
    host.append(list.substr(at + 1, end - at - 1));
    at = close + 1;
  }
  if (host.empty()) return error(TUTTI_ERR_ENVIRONMENT, "'{}' names no host", list);
  return host;
}

}  // namespace tutti
