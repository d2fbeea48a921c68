// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

/// At most seven characters, as nccl-tests: more digits for small numbers.
std::string number(double value) {
  if (value < 100) return fmt::format("{:.2f}", value);
  if (value < 100000) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string_view dtype_text(const Row& row) {
  return row.collective == Collective::barrier ? std::string_view("none") : info(row.dtype).name;
}
std::string_view op_text(const Row& row) {
  return row.collective == Collective::allreduce ? op_name(row.op) : std::string_view("none");
}
int64_t root_number(const Row& row) { return row.collective == Collective::broadcast ? int64_t{row.root} : -1; }

std::string wrong_text(const Options& options, const Timing& timing) {
  return options.check_runs == 0 ? "N/A" : fmt::format("{}", timing.wrong);
}

std::string timing_columns(const Options& options, uint32_t rank_count, const Row& row, const Timing& timing) {
  const double bandwidth = algorithm_bandwidth(row.bytes, timing.mean_us);
  return fmt::format("  {:>8} {:>7} {:>7} {:>6}", number(timing.mean_us), fmt::format("{:.2f}", bandwidth),
                     fmt::format("{:.2f}", bandwidth * bus_factor(row.collective, rank_count)), wrong_text(options, timing));
}

nlohmann::ordered_json timing_json(const Options& options, uint32_t rank_count, const Row& row, const Timing& timing) {
  const double bandwidth = algorithm_bandwidth(row.bytes, timing.mean_us);
  nlohmann::ordered_json json = {
      {"time_us", timing.mean_us},   {"p50_us", timing.p50_us},
      {"p99_us", timing.p99_us},     {"iterations", timing.iterations},
      {"algbw_gb_per_s", bandwidth}, {"busbw_gb_per_s", bandwidth * bus_factor(row.collective, rank_count)}};
  json["wrong"] = nullptr;
  if (options.check_runs != 0) json["wrong"] = timing.wrong;
  return json;
}

nlohmann::ordered_json row_json(const Options& options, uint32_t rank_count, const Row& row) {
  nlohmann::ordered_json json = {{"collective", name(row.collective)}, {"bytes", row.bytes}, {"count", row.count}};
  json["dtype"] = nullptr;
  json["op"] = nullptr;
  json["root"] = nullptr;
  if (row.collective != Collective::barrier) json["dtype"] = info(row.dtype).name;
  if (row.collective == Collective::allreduce) json["op"] = op_name(row.op);
  if (row.collective == Collective::broadcast) json["root"] = row.root;
  if (options.model != nullptr) {
    json["tensors"] = row.tensor_count;
    json["whole_model"] = row.whole_model;
  }
  json["out_of_place"] = timing_json(options, rank_count, row, row.out_of_place);
  json["in_place"] = nullptr;
  if (row.has_in_place) json["in_place"] = timing_json(options, rank_count, row, row.in_place);
  return json;
}

void write_text(std::FILE* file, const std::string& text) { std::fwrite(text.data(), 1, text.size(), file); }

double average_of(uint32_t rank_count, const std::vector<Row>& rows) {
  double sum = 0;
  size_t timings = 0;
  for (const Row& row : rows) {
    if (row.bytes == 0) continue;
    const double factor = bus_factor(row.collective, rank_count);
    sum += factor * algorithm_bandwidth(row.bytes, row.out_of_place.mean_us);
    ++timings;
    if (!row.has_in_place) continue;
    sum += factor * algorithm_bandwidth(row.bytes, row.in_place.mean_us);
    ++timings;
  }
  return timings == 0 ? 0 : sum / static_cast<double>(timings);
}

uint64_t wrong_in(const std::vector<Row>& rows) {
  uint64_t sum = 0;
  for (const Row& row : rows) sum += row.out_of_place.wrong + row.in_place.wrong;
  return sum;
}

}  // namespace

std::string table_header(const Options& options, Collective collective) {
  const std::string_view tensors = options.model != nullptr ? "  tensors" : "";
  const std::string_view blank = options.model != nullptr ? "         " : "";
  const auto line = [](std::string_view first, std::string_view more, std::array<std::string_view, 4> group,
                       std::string_view unit, std::array<std::string_view, 4> columns) {
    const std::string timing = fmt::format("  {:>8} {:>7} {:>7} {:>6}", group[0], group[1], group[2], group[3]);
    const bool latency = !unit.empty();
    const std::string percentiles = fmt::format("  {:>8} {:>8}", latency ? unit : "p50", latency ? unit : "p99");
    return fmt::format("#{:>12} {:>12} {:>9} {:>6} {:>6}{}{}{}{}{}\n", first, columns[0], columns[1], columns[2], columns[3],
                       more, timing, timing, percentiles, percentiles);
  };
  std::string text = fmt::format("# {:48}{}  {:^31}  {:^31}  {:^17}  {:^17}\n", name(collective), blank, "out-of-place",
                                 "in-place", "out-of-place", "in-place");
  text += line("size", tensors, {"time", "algbw", "busbw", "#wrong"}, "", {"count", "type", "redop", "root"});
  text += line("(B)", blank, {"(us)", "(GB/s)", "(GB/s)", ""}, "(us)", {"(elements)", "", "", ""});
  return text;
}

std::string table_row(const Options& options, uint32_t rank_count, const Row& row) {
  std::string text =
      fmt::format(" {:>12} {:>12} {:>9} {:>6} {:>6}", row.bytes, row.count, dtype_text(row), op_text(row), root_number(row));
  if (options.model != nullptr) {
    text +=
        fmt::format("  {:>7}", row.whole_model ? fmt::format("all {}", row.tensor_count) : fmt::format("{}", row.tensor_count));
  }
  text += timing_columns(options, rank_count, row, row.out_of_place);
  if (row.has_in_place) {
    text += timing_columns(options, rank_count, row, row.in_place);
  } else {
    text += fmt::format("  {:>8} {:>7} {:>7} {:>6}", "N/A", "N/A", "N/A", "N/A");
  }
  text += fmt::format("  {:>8} {:>8}", number(row.out_of_place.p50_us), number(row.out_of_place.p99_us));
  if (row.has_in_place) {
    text += fmt::format("  {:>8} {:>8}", number(row.in_place.p50_us), number(row.in_place.p99_us));
  } else {
    text += fmt::format("  {:>8} {:>8}", "N/A", "N/A");
  }
  return text + "\n";
}

std::string csv_header() {
  return "collective,bytes,count,dtype,op,root,tensors,variant,iterations,time_us,p50_us,p99_us,algbw_gb_per_s,"
         "busbw_gb_per_s,wrong\n";
}

std::string csv_row(const Options& options, uint32_t rank_count, const Row& row) {
  const auto line = [&](std::string_view variant, const Timing& timing) {
    const double bandwidth = algorithm_bandwidth(row.bytes, timing.mean_us);
    return fmt::format("{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.6f},{:.6f},{}\n", name(row.collective), row.bytes,
                       row.count, dtype_text(row), op_text(row), root_number(row), row.tensor_count, variant, timing.iterations,
                       timing.mean_us, timing.p50_us, timing.p99_us, bandwidth,
                       bandwidth * bus_factor(row.collective, rank_count),
                       options.check_runs == 0 ? "" : fmt::format("{}", timing.wrong));
  };
  std::string text = line("out_of_place", row.out_of_place);
  if (row.has_in_place) text += line("in_place", row.in_place);
  return text;
}

std::string json_document(const Options& options, const Environment& environment, const std::vector<Row>& rows,
                          const std::vector<std::string>& notes) {
  nlohmann::ordered_json json = {{"format", "tutti-perf 1"},
                                 {"library_version", environment.library_version},
                                 {"ranks", environment.rank_count},
                                 {"nodes", environment.node_count},
                                 {"processes", environment.process_count},
                                 {"transports", environment.transports}};
  for (const auto& [collective, algorithm] : environment.algorithms) json["algorithms"][collective] = algorithm;
  if (options.model != nullptr) json["sizes_from"] = options.model->name;
  json["check_runs"] = options.check_runs;
  if (!notes.empty()) json["notes"] = notes;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) json["rows"].push_back(row_json(options, environment.rank_count, row));
  json["wrong"] = nullptr;
  if (options.check_runs != 0) json["wrong"] = wrong_in(rows);
  json["average_busbw_gb_per_s"] = average_of(environment.rank_count, rows);
  for (const auto& [counter, value] : environment.counters) json["counters"][counter] = value;
  return json.dump(2) + "\n";
}

Report::Output Report::open(const std::string& path) {
  if (path.empty()) return {};
  if (path == "-") return {stdout, "standard output", false};
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) throw RunError(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  return {file, path, true};
}

void Report::finish(Output& output) {
  if (output.file == nullptr) return;
  const bool written = std::fflush(output.file) == 0 && std::ferror(output.file) == 0;
  const bool closed = !output.owned || std::fclose(output.file) == 0;
  output.file = nullptr;
  if (!written || !closed) throw RunError(fmt::format("cannot write '{}': {}", output.path, std::strerror(errno)));
}

Report::Report(const Options& options, Environment environment) : options_(options), environment_(std::move(environment)) {
  csv_ = open(options.csv);
  json_ = open(options.json);
  if (options.csv != "-" && options.json != "-") table_ = open("-");
  show_progress_ = isatty(STDERR_FILENO) != 0;
}

Report::~Report() {
  clear_progress();
  for (const Output& output : {csv_, json_}) {
    if (output.file != nullptr && output.owned) std::fclose(output.file);
  }
}

void Report::begin() {
  if (csv_.file != nullptr) write_text(csv_.file, csv_header());
  if (table_.file == nullptr) return;
  std::string text = fmt::format("# tutti-perf, library {}; ranks: {}, processes: {}, nodes: {}\n", environment_.library_version,
                                 environment_.rank_count, environment_.process_count, environment_.node_count);
  text += fmt::format("# transports: {}\n", environment_.transports);
  for (const auto& [collective, algorithm] : environment_.algorithms) {
    text += fmt::format("# algorithm of {}: {}\n", collective, algorithm);
  }
  const std::string iterations = options_.iterations == 0 ? "auto" : fmt::format("{}", options_.iterations);
  text += fmt::format("# {} iterations after {} to warm up; {}\n#\n", iterations, options_.warm_up,
                      options_.check_runs == 0 ? "results are not checked"
                                               : fmt::format("{} more for each time are checked", options_.check_runs));
  write_text(table_.file, text);
  std::fflush(table_.file);
}

void Report::row(const Row& row) {
  rows_.push_back(row);
  if (csv_.file != nullptr) write_text(csv_.file, csv_row(options_, environment_.rank_count, row));
  if (table_.file == nullptr) return;
  clear_progress();
  if (rows_.size() == 1 || rows_[rows_.size() - 2].collective != row.collective) {
    write_text(table_.file, table_header(options_, row.collective));
  }
  write_text(table_.file, table_row(options_, environment_.rank_count, row));
  std::fflush(table_.file);
}

void Report::progress(const std::string& what) {
  if (!show_progress_) return;
  write_text(stderr, fmt::format("\r\033[K{}", what));
  progress_shown_ = true;
}

void Report::clear_progress() {
  if (!progress_shown_) return;
  write_text(stderr, "\r\033[K");
  progress_shown_ = false;
}

void Report::note(const std::string& line) {
  notes_.push_back(line);
  if (table_.file != nullptr) write_text(table_.file, fmt::format("# {}\n", line));
}

void Report::end(std::vector<std::pair<std::string, uint64_t>> counters) {
  clear_progress();
  environment_.counters = std::move(counters);
  if (table_.file != nullptr) {
    std::string text;
    if (options_.check_runs != 0) {
      const uint64_t wrong = wrong_in(rows_);
      text += fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
    }
    text += fmt::format("# Avg bus bandwidth    : {:.4f} GB/s\n", average_of(environment_.rank_count, rows_));
    for (const auto& [counter, value] : environment_.counters) text += fmt::format("# {:<32} {}\n", counter, value);
    write_text(table_.file, text);
  }
  if (json_.file != nullptr) write_text(json_.file, json_document(options_, environment_, rows_, notes_));
  finish(table_);
  finish(csv_);
  finish(json_);
}

}  // namespace tutti_perf
