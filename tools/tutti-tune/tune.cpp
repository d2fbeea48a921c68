// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "base/types.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "progress.hpp"
#include "rows.hpp"
#include "schedule/collective.hpp"

namespace tutti::tune {
namespace {

/// From here on a call takes its time, and who was far behind at smaller sizes is not tried again.
constexpr uint64_t kDearBytes = 128 << 10;
/// Slower ones say nothing.
constexpr double kWorthWriting = 3;

std::string machine_text() {
  std::ifstream file("/proc/cpuinfo");
  std::string processor = "unknown processor";
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      processor = line.substr(colon + 2);
      break;
    }
  }
  utsname system{};
  if (::uname(&system) != 0) return processor;
  return fmt::format("{}, {} cores, {} {} {}", processor, ::sysconf(_SC_NPROCESSORS_ONLN), system.sysname, system.release,
                     system.machine);
}

/// The file that is there, the same for all ranks; an empty table if there is none.
TuningTable load(const Job& job, const std::string& path) {
  std::string text;
  if (job.rank() == 0) {
    if (std::ifstream file(path, std::ios::binary); file) text.assign(std::istreambuf_iterator<char>(file), {});
  }
  job.share(text);
  if (text.empty()) return TuningTable();
  Result<TuningTable> table = TuningTable::parse(text, path);
  if (!table.ok()) throw UsageError(std::string(table.status().message()));
  return std::move(*table);
}

/// Whole or not at all.
void write(const TuningTable& table, const std::string& path) {
  const std::string beside = fmt::format("{}.{}", path, ::getpid());
  const std::string text = table.text();
  std::FILE* const file = std::fopen(beside.c_str(), "we");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (written && closed && std::rename(beside.c_str(), path.c_str()) == 0) return;
  const int code = errno;
  std::remove(beside.c_str());
  throw RunError(fmt::format("cannot write {}: {}", path, std::strerror(code)));
}

bool has_times(const TuningSection* section, uint64_t bytes) {
  return section != nullptr &&
         std::any_of(section->times.begin(), section->times.end(), [&](const TuningTime& time) { return time.bytes == bytes; });
}

class Tuning {
 public:
  Tuning(const Job& job, const Options& options, TuningTable& table, Progress& progress)
      : job_(job), options_(options), table_(table), progress_(progress) {}

  void run(const Series& series) {
    const TuningKey key{series.collective, series.type, job_.size(), job_.nodes(), job_.links()};
    Requirements required;
    required.type = series.type;
    contenders_ = contender_grid(series.collective, job_.shape(), required);
    past_.assign(contenders_.size(), Past());
    Bench bench(job_, series.collective, series.type, most_bytes(series));
    for (const Point& point : series.points) {
      progress_.begin(text_of(series, point));
      const bool known = options_.resume && has_times(table_.find(key), point.bytes);
      if (!known) put_times(table_.section(key), run_point(bench, point));
      remember(table_.section(key).times, point.bytes);
      progress_.done(weight_of(series, point, options_, job_.size()), !known);
    }
  }

 private:
  std::vector<TuningTime> run_point(Bench& bench, const Point& point) {
    std::vector<bool> takes_part(contenders_.size());
    for (size_t n = 0; n < contenders_.size(); ++n) {
      takes_part[n] = differs_at(contenders_[n], point.bytes) && (point.bytes < kDearBytes || worth_a_try(past_[n]));
    }
    Search search(takes_part);
    measure(bench, point, texts_of(contenders_), options_.effort, false, search);
    std::vector<TuningTime> times;
    const size_t best = search.best();
    for (size_t n = 0; n < contenders_.size() && best < search.size(); ++n) {
      const double ns = search.ns(n);
      if (ns > kWorthWriting * search.ns(best)) continue;
      times.push_back({point.bytes, contenders_[n].algorithm, contenders_[n].parameters, ns});
    }
    return times;
  }

  void remember(const std::vector<TuningTime>& times, uint64_t bytes) {
    double best_ns = INFINITY;
    for (const TuningTime& time : times) {
      if (time.bytes == bytes) best_ns = std::min(best_ns, time.ns);
    }
    for (size_t n = 0; n < contenders_.size(); ++n) {
      past_[n].before = past_[n].last;
      if (!differs_at(contenders_[n], bytes)) continue;
      past_[n].last = 2 * kWorthWriting;  // what is not in the file was slow
      for (const TuningTime& time : times) {
        const bool same = time.algorithm == contenders_[n].algorithm && time.parameters == contenders_[n].parameters;
        if (same && time.bytes == bytes) past_[n].last = time.ns / best_ns;
      }
    }
  }

  const Job& job_;
  const Options& options_;
  TuningTable& table_;
  Progress& progress_;
  std::vector<Contender> contenders_;
  std::vector<Past> past_;
};

void print_result(const Job& job, const TuningTable& table, const std::vector<Series>& all) {
  for (const Series& series : all) {
    const TuningKey key{series.collective, series.type, job.size(), job.nodes(), job.links()};
    const TuningSection* section = table.find(key);
    if (section == nullptr) continue;
    fmt::print("{}\n", describe(key));
    for (const TuningRow& row : section->rows) {
      const std::string bytes = row.up_to_bytes == UINT64_MAX ? "any size" : "up to " + format_bytes(row.up_to_bytes);
      fmt::print("  {:<14} {}\n", bytes, describe(*row.algorithm, row.parameters));
    }
  }
  std::fflush(stdout);
}

}  // namespace

int tune(const Job& job, const Options& options) {
  TuningTable table = load(job, options.output);
  std::string machine = machine_text();
  job.share(machine);
  table.add_machine(machine);
  const auto save = [&] {
    if (job.rank() == 0) write(table, options.output);
  };
  save();  // what cannot be written is better known before
  const std::vector<Series> all = series_of(job, options);
  double total = 0;
  for (const Series& series : all) {
    for (const Point& point : series.points) total += weight_of(series, point, options, job.size());
  }
  Progress progress(options.progress, job.rank() == 0, total);
  Tuning tuning(job, options, table, progress);
  try {
    for (const Series& series : all) {
      tuning.run(series);
      save();
    }
  } catch (const Interrupted&) {
    save();
    progress.clear();
    if (job.rank() == 0) fmt::print(stderr, "tutti-tune: interrupted; --resume goes on with {}\n", options.output);
    return kExitInterrupted;
  }
  progress.clear();
  if (job.rank() == 0) print_result(job, table, all);
  return kExitOk;
}

}  // namespace tutti::tune
