// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "base/types.hpp"
#include "commands.hpp"
#include "errors.hpp"
#include "progress.hpp"

namespace tutti::tune {
namespace {

constexpr double kGood = 1.15;
constexpr double kBad = 1.40;

struct Verdict {
  uint64_t points = 0;
  uint64_t good = 0;
  uint64_t bad = 0;
};

/// Measures all that may be the fastest; what Tutti chooses is one of them, and takes part to the end.
class Judging {
 public:
  Judging(const Job& job, const Options& options, Progress& progress, Verdict& verdict)
      : job_(job), options_(options), progress_(progress), verdict_(verdict) {}

  void run(const Series& series) {
    Requirements required;
    required.type = series.type;
    contenders_ = contender_grid(series.collective, job_.shape(), required);
    const std::vector<std::string> grid = texts_of(contenders_);
    Bench bench(job_, series.collective, series.type, most_bytes(series));
    for (const Point& point : series.points) {
      progress_.begin(text_of(series, point));
      std::vector<std::string> texts = grid;
      std::vector<bool> takes_part;
      for (const Contender& one : contenders_) takes_part.push_back(differs_at(one, point.bytes));
      const size_t own = place_of(bench.choice(point), point, texts);
      takes_part.resize(texts.size());
      takes_part[own] = true;
      Search search(takes_part);
      search.keep(own);
      measure(bench, point, texts, options_.effort, true, search);
      report(series, point, texts, own, search);
      progress_.done(weight_of(series, point, options_, job_.size()), true);
    }
  }

 private:
  /// Of the choice among the contenders, or the first that is the same program at this size. Appended where it is none of them.
  size_t place_of(const std::string& choice, const Point& point, std::vector<std::string>& texts) const {
    const auto at = static_cast<size_t>(std::find(texts.begin(), texts.end(), choice) - texts.begin());
    if (at == texts.size()) texts.push_back(choice);
    if (at >= contenders_.size()) return at;
    const auto alike = [&](const Contender& one) { return alike_at(one, contenders_[at], point.bytes); };
    return static_cast<size_t>(std::find_if(contenders_.begin(), contenders_.end(), alike) - contenders_.begin());
  }

  void report(const Series& series, const Point& point, const std::vector<std::string>& texts, size_t own, const Search& search) {
    const size_t best = search.best(0);
    if (best == SIZE_MAX) return;
    const double best_ns = search.ns(best, 1);
    const double own_ns = search.ns(own, 1);
    const double ratio = own_ns / best_ns;
    ++verdict_.points;
    if (ratio <= kGood) ++verdict_.good;
    if (ratio > kBad) ++verdict_.bad;
    if (job_.rank() != 0) return;
    progress_.clear();
    fmt::print("{:<15} {:>10} {:>12.1f} {:>12.1f} {:>7.2f}  {:<46} {}\n", name(series.collective), point.bytes, own_ns / 1000,
               best_ns / 1000, ratio, texts[best], own == best ? "=" : texts[own]);
    std::fflush(stdout);
  }

  const Job& job_;
  const Options& options_;
  Progress& progress_;
  Verdict& verdict_;
  std::vector<Contender> contenders_;
};

}  // namespace

int judge(const Job& job, const Options& options) {
  const std::vector<Series> all = series_of(job, options);
  double total = 0;
  for (const Series& series : all) {
    for (const Point& point : series.points) total += weight_of(series, point, options, job.size());
  }
  Progress progress(options.progress, job.rank() == 0, total);
  Verdict verdict;
  Judging judging(job, options, progress, verdict);
  if (job.rank() == 0) {
    const char* const file = std::getenv("TUTTI_TUNING_FILE");
    fmt::print("# {} ranks on {} nodes over {}; tuning file: {}\n", job.size(), job.nodes(), job.links(),
               file == nullptr || *file == '\0' ? "none" : file);
    fmt::print("# the best is found by one half of the rounds; times and ratio are of the other half\n");
    fmt::print("# {:<13} {:>10} {:>12} {:>12} {:>7}  {:<46} {}\n", "collective", "bytes", "choice (us)", "best (us)", "ratio",
               "best fixed", "choice");
  }
  try {
    for (const Series& series : all) judging.run(series);
  } catch (const Interrupted&) {
    progress.clear();
    if (job.rank() == 0) fmt::print(stderr, "tutti-tune: interrupted\n");
    return kExitInterrupted;
  }
  progress.clear();
  if (job.rank() == 0) {
    const auto share = [&](uint64_t count) {
      return 100.0 * static_cast<double>(count) / static_cast<double>(std::max<uint64_t>(verdict.points, 1));
    };
    fmt::print("points: {}\nwithin 15 %: {} ({:.1f} %)\nover 40 %: {} ({:.1f} %)\n", verdict.points, verdict.good,
               share(verdict.good), verdict.bad, share(verdict.bad));
    std::fflush(stdout);
  }
  return kExitOk;
}

}  // namespace tutti::tune
