// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dtypes.hpp"
#include "errors.hpp"

namespace tutti_perf {
namespace {

nlohmann::ordered_json timing_json(const Options& options, uint32_t rank_count, const Row& row, const Timing& timing) {
  const double bandwidth = bandwidth_of(options, row, timing);
  nlohmann::ordered_json json = {
      {"time_us", timing.mean_us},   {"p50_us", timing.p50_us},
      {"p99_us", timing.p99_us},     {"iterations", timing.iterations},
      {"algbw_gb_per_s", bandwidth}, {"busbw_gb_per_s", bandwidth * bus_factor(row.collective, rank_count)}};
  if (row.collective == Collective::message_rate && timing.mean_us > 0) {
    json["messages_per_s"] = 1e6 / timing.mean_us * options.parallel;
  }
  if (options.overlap) {
    json["compute_us"] = timing.compute_us;
    json["overall_us"] = timing.overall_us;
    json["overlap_percent"] = timing.overlap_percent;
  }
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
  if (traits(row.collective).reduces) json["op"] = op_name(row.op);
  if (row.rotate) {
    json["root"] = "rotate";
  } else if (traits(row.collective).rooted) {
    json["root"] = row.root;
  }
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

double average_of(const Options& options, uint32_t rank_count, const std::vector<Row>& rows) {
  double sum = 0;
  size_t timings = 0;
  for (const Row& row : rows) {
    if (row.bytes == 0) continue;
    const double factor = bus_factor(row.collective, rank_count);
    sum += factor * bandwidth_of(options, row, row.out_of_place);
    ++timings;
    if (!row.has_in_place) continue;
    sum += factor * bandwidth_of(options, row, row.in_place);
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
  json["mode"] = name(options.mode);
  json["counts"] = text_of(options.counts);
  json["parallel"] = options.parallel;
  json["communicators"] = options.communicators;
  if (options.outstanding != 0) json["outstanding"] = options.outstanding;
  json["check_runs"] = options.check_runs;
  if (!notes.empty()) json["notes"] = notes;
  json["rows"] = nlohmann::ordered_json::array();
  for (const Row& row : rows) json["rows"].push_back(row_json(options, environment.rank_count, row));
  json["wrong"] = nullptr;
  if (options.check_runs != 0) json["wrong"] = wrong_in(rows);
  json["average_busbw_gb_per_s"] = average_of(options, environment.rank_count, rows);
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
  text += calls_text(options_);
  const std::string iterations = options_.iterations == 0 ? "auto" : fmt::format("{}", options_.iterations);
  text += fmt::format("# {} iterations after {} to warm up; {}\n#\n", iterations, options_.warm_up,
                      options_.check_runs == 0 ? "results are not checked"
                                               : fmt::format("{} more for each time are checked", options_.check_runs));
  write_text(table_.file, text);
  std::fflush(table_.file);
}

void Report::row(const Row& row) {
  const bool first = rows_.empty() || rows_.back().collective != row.collective;
  if (first) sum_up();
  rows_.push_back(row);
  if (csv_.file != nullptr) write_text(csv_.file, csv_row(options_, environment_.rank_count, row));
  if (table_.file == nullptr || options_.summary) return;
  clear_progress();
  if (first) write_text(table_.file, table_header(options_, row.collective));
  write_text(table_.file, table_row(options_, environment_.rank_count, row));
  std::fflush(table_.file);
}

/// The line of the collective whose rows came last.
void Report::sum_up() {
  if (table_.file == nullptr || !options_.summary || summed_up_ == rows_.size()) return;
  clear_progress();
  if (summed_up_ == 0) write_text(table_.file, summary_header());
  const std::vector<Row> rows(rows_.begin() + static_cast<ptrdiff_t>(summed_up_), rows_.end());
  write_text(table_.file, summary_row(options_, environment_.rank_count, rows));
  std::fflush(table_.file);
  summed_up_ = rows_.size();
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
  sum_up();
  clear_progress();
  environment_.counters = std::move(counters);
  if (table_.file != nullptr) {
    std::string text;
    if (options_.check_runs != 0) {
      const uint64_t wrong = wrong_in(rows_);
      text += fmt::format("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
    }
    text += fmt::format("# Avg bus bandwidth    : {:.4f} GB/s\n", average_of(options_, environment_.rank_count, rows_));
    for (const auto& [counter, value] : environment_.counters) text += fmt::format("# {:<32} {}\n", counter, value);
    write_text(table_.file, text);
  }
  if (json_.file != nullptr) write_text(json_.file, json_document(options_, environment_, rows_, notes_));
  finish(table_);
  finish(csv_);
  finish(json_);
}

}  // namespace tutti_perf
