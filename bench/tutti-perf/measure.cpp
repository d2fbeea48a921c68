// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "dtypes.hpp"
#include "errors.hpp"
#include "plan.hpp"
#include "report.hpp"
#include "team.hpp"

namespace tutti_perf {
namespace {

// ---- what rank 0 says before and after

std::string setting_or(const Options& options, const std::string& setting, const std::string& otherwise) {
  for (auto entry = options.settings.rbegin(); entry != options.settings.rend(); ++entry) {
    if (entry->first == setting) return fmt::format("{} (--set)", entry->second);
  }
  std::string variable = "TUTTI_" + setting;
  for (char& letter : variable) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  const char* const value = std::getenv(variable.c_str());
  return value == nullptr || *value == '\0' ? otherwise : fmt::format("{} ({})", value, variable);
}

Environment environment_of(const Options& options, const Member& member) {
  int local_rank = 0;
  require(tutti_comm_local_rank(member.comm, &local_rank), "local rank");
  uint32_t nodes = local_rank == 0 ? 1 : 0;
  require(tutti_allreduce(member.comm, TUTTI_IN_PLACE, &nodes, 1, TUTTI_UINT32, TUTTI_SUM), "counting the nodes");
  Environment environment;
  int major = 0;
  int minor = 0;
  int patch = 0;
  require(tutti_get_version(&major, &minor, &patch), "version");
  environment.library_version = fmt::format("{}.{}.{}", major, minor, patch);
  environment.rank_count = member.size;
  environment.node_count = nodes;
  environment.process_count = member.size / options.threads;
  environment.transports = setting_or(options, "transports", "the fastest for each pair of ranks (default)");
  for (const Collective collective : options.collectives) {
    if (traits(collective).message) continue;
    std::string word(name(collective));
    const std::string otherwise = "chosen by ranks and size (default)";
    std::string setting = word;
    if (traits(collective).varying) setting.pop_back();  // the same algorithms
    std::string algorithm = setting_or(options, setting, otherwise);
    if (options.summary && algorithm == otherwise) continue;
    environment.algorithms.emplace_back(std::move(word), std::move(algorithm));
  }
  return environment;
}

std::vector<std::pair<std::string, uint64_t>> read_counters(const Member& member) {
  tutti_context_t context = nullptr;
  require(tutti_comm_get_context(member.comm, &context), "context");
  std::vector<std::pair<std::string, uint64_t>> counters;
  const char* counter = nullptr;
  uint64_t value = 0;
  for (size_t index = 0; tutti_context_get_counter(context, index, &counter, &value) == TUTTI_OK; ++index) {
    counters.emplace_back(counter, value);
  }
  return counters;
}

// ---- the rows

Row measure_row(const Options& options, Team& team, const Series& series, const Workload& work) {
  Row row;
  row.collective = series.collective;
  row.count = work.total_count();
  row.bytes = row.count * info(series.dtype).size_bytes;
  row.dtype = series.dtype;
  row.op = series.op;
  row.root = series.root;
  row.rotate = series.rotate;
  row.tensor_count = work.tensor_count;
  row.whole_model = work.whole_model;
  row.out_of_place = team.measure(work, false);
  // The tensors of a whole model share a window, which would be reduced again and again in place.
  row.has_in_place = has_in_place(series.collective, options.counts) && !work.whole_model;
  if (row.has_in_place) row.in_place = team.measure(work, true);
  return row;
}

struct Progress {
  const Options& options;
  const Member& member;
  const Communicators& communicators;
  Report* report;  // on rank 0
  uint64_t wrong = 0;
};

void measure_series(Progress& progress, const Series& series) {
  uint64_t left_out = 0;
  const std::vector<Workload> work = work_of(progress.options, series, progress.member.size, &left_out);
  Team team(progress.options, progress.member, progress.communicators, series, work);
  size_t done = 0;
  for (const Workload& one : work) {
    ++done;
    if (progress.report != nullptr) {
      progress.report->progress(fmt::format("[{}/{}] {}", done, work.size(), team.description(one.total_count())));
    }
    const Row row = measure_row(progress.options, team, series, one);
    progress.wrong += row.out_of_place.wrong + row.in_place.wrong;
    if (progress.report != nullptr) progress.report->row(row);
  }
  if (progress.report != nullptr && left_out != 0) {
    progress.report->note(fmt::format("{} tensors of {} are above -e and left out", left_out, progress.options.model->name));
  }
}

/// What the number of ranks decides. Throws UsageError.
std::vector<Collective> settle(const Options& options, const Member& member, std::vector<std::string>& notes) {
  if (options.roots == Roots::one && options.root >= member.size) {
    throw UsageError(fmt::format("-r {}: the job has ranks 0 to {}", options.root, member.size - 1));
  }
  std::vector<Collective> collectives;
  for (const Collective collective : options.collectives) {
    for (const Series& series : series_of(options, collective, member.size)) {
      (void)cycle_of(options, series, batch_of(options, collective), member.size);
    }
    const bool pairs = collective == Collective::pingpong || collective == Collective::message_rate;
    if (!pairs || member.size > 1) {
      collectives.push_back(collective);
    } else if (options.summary) {
      notes.push_back(fmt::format("left out: {}: needs two ranks", name(collective)));
    } else {
      throw UsageError(
          fmt::format("{} needs two ranks, and the job has one: start it with tuttirun -np 2, or -t 2", name(collective)));
    }
  }
  return collectives;
}

}  // namespace

int measure_all(const Options& options, const Member& member) {
  std::vector<std::string> notes = options.notes;
  const std::vector<Collective> collectives = settle(options, member, notes);
  const Environment environment = environment_of(options, member);
  const Communicators communicators(options, member);
  std::unique_ptr<Report> report;
  if (member.rank == 0) {
    report = std::make_unique<Report>(options, environment);
    report->begin();
    for (const std::string& note : notes) report->note(note);
  }
  Progress progress{options, member, communicators, report.get()};
  for (const Collective collective : collectives) {
    for (const Series& series : series_of(options, collective, member.size)) measure_series(progress, series);
  }
  if (report) report->end(options.counters ? read_counters(member) : std::vector<std::pair<std::string, uint64_t>>{});
  require(tutti_barrier(member.comm), "the last barrier");
  return progress.wrong == 0 ? kExitOk : kExitWrong;
}

}  // namespace tutti_perf
