// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "dtypes.hpp"
#include "report.hpp"

namespace tutti_perf {
namespace {

/// At most seven characters, as nccl-tests: more digits for small numbers.
std::string number(double value) {
  if (value < 100) return fmt::format("{:.2f}", value);
  if (value < 100000) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

constexpr size_t kTypeWidth = 9;

std::string_view dtype_text(const Row& row) {
  return row.collective == Collective::barrier ? std::string_view("none") : info(row.dtype).name;
}
std::string_view short_dtype_text(const Row& row) {
  const std::string_view text = dtype_text(row);
  return text.size() > kTypeWidth ? info(row.dtype).brief : text;
}
std::string_view op_text(const Row& row) { return traits(row.collective).reduces ? op_name(row.op) : std::string_view("none"); }
std::string root_text(const Row& row) {
  if (row.rotate) return "rotate";
  return traits(row.collective).rooted ? fmt::format("{}", row.root) : "-1";
}
std::string wrong_text(const Options& options, const Timing& timing) {
  return options.check_runs == 0 ? "N/A" : fmt::format("{}", timing.wrong);
}

std::string overlap_columns(std::string_view communication, std::string_view compute, std::string_view overall,
                            std::string_view overlap, std::string_view wrong) {
  return fmt::format("  {:>8} {:>8} {:>8} {:>7} {:>6}", communication, compute, overall, overlap, wrong);
}

std::string time_columns(std::string_view time, std::string_view algbw, std::string_view busbw, std::string_view wrong) {
  return fmt::format("  {:>8} {:>7} {:>7} {:>6}", time, algbw, busbw, wrong);
}

std::string percentile_columns(std::string_view p50, std::string_view p99) { return fmt::format("  {:>8} {:>8}", p50, p99); }

std::string timing_columns(const Options& options, uint32_t rank_count, const Row& row, const Timing& timing) {
  const std::string wrong = wrong_text(options, timing);
  if (options.overlap) {
    return overlap_columns(number(timing.mean_us), number(timing.compute_us), number(timing.overall_us),
                           fmt::format("{:.1f}", timing.overlap_percent), wrong);
  }
  const double bandwidth = bandwidth_of(options, row, timing);
  return time_columns(number(timing.mean_us), fmt::format("{:.2f}", bandwidth),
                      fmt::format("{:.2f}", bandwidth * bus_factor(row.collective, rank_count)), wrong);
}

}  // namespace

double bandwidth_of(const Options& options, const Row& row, const Timing& timing) {
  return algorithm_bandwidth(row.bytes * options.parallel, timing.mean_us);
}

std::string table_header(const Options& options, Collective collective) {
  const std::string_view tensors = options.model != nullptr ? "  tensors" : "";
  const std::string_view blank = options.model != nullptr ? "         " : "";
  const auto line = [](std::string_view first, std::array<std::string_view, 4> columns, std::string_view more,
                       const std::string& group, const std::string& percentiles) {
    return fmt::format("#{:>12} {:>12} {:>9} {:>6} {:>6}{}{}{}{}{}\n", first, columns[0], columns[1], columns[2], columns[3],
                       more, group, group, percentiles, percentiles);
  };
  const bool overlap = options.overlap;
  std::string text = overlap ? fmt::format("# {:48}{}  {:^41}  {:^41}\n", name(collective), blank, "out-of-place", "in-place")
                             : fmt::format("# {:48}{}  {:^31}  {:^31}  {:^17}  {:^17}\n", name(collective), blank, "out-of-place",
                                           "in-place", "out-of-place", "in-place");
  text += line("size", {"count", "type", "redop", "root"}, tensors,
               overlap ? overlap_columns("comm", "compute", "overall", "overlap", "#wrong")
                       : time_columns("time", "algbw", "busbw", "#wrong"),
               overlap ? "" : percentile_columns("p50", "p99"));
  text += line("(B)", {"(elements)", "", "", ""}, blank,
               overlap ? overlap_columns("(us)", "(us)", "(us)", "(%)", "") : time_columns("(us)", "(GB/s)", "(GB/s)", ""),
               overlap ? "" : percentile_columns("(us)", "(us)"));
  return text;
}

std::string table_row(const Options& options, uint32_t rank_count, const Row& row) {
  std::string text =
      fmt::format(" {:>12} {:>12} {:>9} {:>6} {:>6}", row.bytes, row.count, short_dtype_text(row), op_text(row), root_text(row));
  if (options.model != nullptr) {
    text +=
        fmt::format("  {:>7}", row.whole_model ? fmt::format("all {}", row.tensor_count) : fmt::format("{}", row.tensor_count));
  }
  constexpr const char* kNone = "N/A";
  text += timing_columns(options, rank_count, row, row.out_of_place);
  if (row.has_in_place) {
    text += timing_columns(options, rank_count, row, row.in_place);
  } else {
    text += options.overlap ? overlap_columns(kNone, kNone, kNone, kNone, kNone) : time_columns(kNone, kNone, kNone, kNone);
  }
  if (options.overlap) return text + "\n";
  text += percentile_columns(number(row.out_of_place.p50_us), number(row.out_of_place.p99_us));
  text += row.has_in_place ? percentile_columns(number(row.in_place.p50_us), number(row.in_place.p99_us))
                           : percentile_columns(kNone, kNone);
  return text + "\n";
}

std::string summary_header() {
  return fmt::format("# {:<16} {:>5}  {:>12} {:>8}  {:>12} {:>8} {:>7}  {:>7}  {:>6}\n", "collective", "rows", "smallest", "time",
                     "largest", "time", "busbw", "best", "#wrong") +
         fmt::format("# {:<16} {:>5}  {:>12} {:>8}  {:>12} {:>8} {:>7}  {:>7}  {:>6}\n", "", "", "(B)", "(us)", "(B)", "(us)",
                     "(GB/s)", "(GB/s)", "");
}

std::string summary_row(const Options& options, uint32_t rank_count, const std::vector<Row>& rows) {
  const auto shorter = [](const Row& a, const Row& b) { return a.bytes < b.bytes; };
  const Row& smallest = *std::min_element(rows.begin(), rows.end(), shorter);
  const Row& largest = *std::max_element(rows.begin(), rows.end(), shorter);
  const double factor = bus_factor(rows[0].collective, rank_count);
  double best = 0;
  uint64_t wrong = 0;
  for (const Row& row : rows) {
    best = std::max({best, factor * bandwidth_of(options, row, row.out_of_place),
                     row.has_in_place ? factor * bandwidth_of(options, row, row.in_place) : 0});
    wrong += row.out_of_place.wrong + row.in_place.wrong;
  }
  return fmt::format("  {:<16} {:>5}  {:>12} {:>8}  {:>12} {:>8} {:>7}  {:>7}  {:>6}\n", name(rows[0].collective), rows.size(),
                     smallest.bytes, number(smallest.out_of_place.mean_us), largest.bytes, number(largest.out_of_place.mean_us),
                     fmt::format("{:.2f}", factor * bandwidth_of(options, largest, largest.out_of_place)),
                     fmt::format("{:.2f}", best), options.check_runs == 0 ? "N/A" : fmt::format("{}", wrong));
}

std::string calls_text(const Options& options) {
  std::string text = options.mode == Mode::blocking ? "" : fmt::format(" {}", name(options.mode));
  if (options.overlap) text += ", with computation";
  if (options.outstanding > 1) text += fmt::format(", {} outstanding", options.outstanding);
  if (options.parallel > 1) text += fmt::format(", {} threads a rank", options.parallel);
  if (options.communicators > 1) text += fmt::format(", {} communicators in turn", options.communicators);
  if (options.counts.spread != Spread::even) text += fmt::format(", counts {}", text_of(options.counts));
  if (text.empty()) return "";
  return fmt::format("# calls: {}\n", text.substr(text.front() == ',' ? 2 : 1));
}

std::string csv_header() {
  return "collective,bytes,count,dtype,op,root,tensors,variant,iterations,time_us,p50_us,p99_us,algbw_gb_per_s,"
         "busbw_gb_per_s,wrong,mode,compute_us,overall_us,overlap_percent\n";
}

std::string csv_row(const Options& options, uint32_t rank_count, const Row& row) {
  const auto line = [&](std::string_view variant, const Timing& timing) {
    const double bandwidth = bandwidth_of(options, row, timing);
    std::string text =
        fmt::format("{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.6f},{:.6f},{},{}", name(row.collective), row.bytes,
                    row.count, dtype_text(row), op_text(row), root_text(row), row.tensor_count, variant, timing.iterations,
                    timing.mean_us, timing.p50_us, timing.p99_us, bandwidth, bandwidth * bus_factor(row.collective, rank_count),
                    options.check_runs == 0 ? "" : fmt::format("{}", timing.wrong), name(options.mode));
    if (!options.overlap) return text + ",,,\n";
    return text + fmt::format(",{:.3f},{:.3f},{:.2f}\n", timing.compute_us, timing.overall_us, timing.overlap_percent);
  };
  std::string text = line("out_of_place", row.out_of_place);
  if (row.has_in_place) text += line("in_place", row.in_place);
  return text;
}

}  // namespace tutti_perf
