// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "options.hpp"
#include "results.hpp"

namespace tutti_perf {

/// What the lines before the table say.
struct Environment {
  std::string library_version;
  std::string transports;                                       // setting, or "default"
  std::vector<std::pair<std::string, std::string>> algorithms;  // collective, setting or "chosen by size"
  uint32_t rank_count = 1;
  uint32_t node_count = 1;
  uint32_t process_count = 1;
  std::vector<std::pair<std::string, uint64_t>> counters;  // at the end
};

/// Writes results as they come: the table, CSV, JSON. Lives on rank 0.
class Report {
 public:
  /// Opens the files; throws RunError if one cannot be written.
  Report(const Options& options, Environment environment);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void begin();
  void row(const Row& row);
  /// On a terminal only: what is being measured, replaced by the next row.
  void progress(const std::string& what);
  void note(const std::string& line);
  void end(std::vector<std::pair<std::string, uint64_t>> counters);

 private:
  struct Output {
    std::FILE* file = nullptr;
    std::string path;
    bool owned = false;
  };
  static Output open(const std::string& path);
  void finish(Output& output);
  void clear_progress();
  void sum_up();

  const Options& options_;
  Environment environment_;
  Output table_;
  Output csv_;
  Output json_;
  std::vector<Row> rows_;
  size_t summed_up_ = 0;  // rows that a line of the summary has
  std::vector<std::string> notes_;
  bool show_progress_ = false;
  bool progress_shown_ = false;
};

/// The parts that make text, for the tests.
std::string table_header(const Options& options, Collective collective);
std::string table_row(const Options& options, uint32_t rank_count, const Row& row);
/// One line for all rows of a collective.
std::string summary_header();
std::string summary_row(const Options& options, uint32_t rank_count, const std::vector<Row>& rows);
/// What is special about the calls, a line; "" if nothing is.
std::string calls_text(const Options& options);
std::string csv_header();
std::string csv_row(const Options& options, uint32_t rank_count, const Row& row);
std::string json_document(const Options& options, const Environment& environment, const std::vector<Row>& rows,
                          const std::vector<std::string>& notes);

/// algbw: of all threads together.
double bandwidth_of(const Options& options, const Row& row, const Timing& timing);

}  // namespace tutti_perf
