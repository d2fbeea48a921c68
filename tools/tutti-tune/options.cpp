// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/nearest.hpp"
#include "base/types.hpp"
#include "errors.hpp"

namespace tutti::tune {
namespace {

constexpr const char* kFooter = R"(Examples:
  tuttirun -np 4 tutti-tune -o tuning.txt
  tuttirun -np 8 tutti-tune -o tuning.txt --quick              adds what holds for 8 ranks to the same file
  tuttirun -np 8 -H a:4,b:4 tutti-tune allreduce broadcast -o tuning.txt --resume
  TUTTI_TUNING_FILE=tuning.txt tuttirun -np 4 ./program
  tutti-info choose allreduce --ranks 4 --bytes 1M --tuning-file tuning.txt
  TUTTI_TUNING_FILE=tuning.txt tuttirun -np 4 tutti-tune judge allreduce

Exit codes:
  0    done
  2    the command line, a setting or the tuning file is wrong
  3    a call failed, memory is short, or the file cannot be written
  130  interrupted (SIGINT, SIGTERM): what was measured is in the file; --resume goes on
)";

struct Raw {
  std::vector<std::string> collectives, types;
  std::string first, last, budget, progress = "auto";
  uint64_t factor = 0;
  bool quick = false;
};

Collective collective_of(const std::string& word) {
  const Result<Collective> found = parse_collective(word);
  if (!found) throw UsageError(std::string(found.status().message()));
  return *found;
}

TypeClass type_of(const std::string& word) {
  std::vector<std::string_view> names;
  for (size_t t = 0; t < kTypeClassCount; ++t) {
    names.push_back(name(static_cast<TypeClass>(t)));
    if (names.back() == word) return static_cast<TypeClass>(t);
  }
  throw UsageError(fmt::format("--type {}: there is no such class of types; {}", word, hint(word, names)));
}

template <class Value>
Value checked(const char* option, const Result<Value>& value) {
  if (!value.ok()) throw UsageError(fmt::format("{}: {}", option, value.status().message()));
  return *value;
}

void declare_common(CLI::App& app, Raw& raw) {
  app.add_option("collective", raw.collectives, "Of these collectives only (default: all)")->type_name("COLLECTIVE");
  app.add_option("-t,--type", raw.types, "int, float, small_float, user: types that are folded; may be repeated (default: float)")
      ->type_name("CLASS");
  app.add_option("-b,--minbytes", raw.first, "Smallest size, of the whole vector (default 8)")->type_name("SIZE");
  app.add_option("-e,--maxbytes", raw.last, "Largest size (default 64M; with --quick 4M)")->type_name("SIZE");
  app.add_option("-f,--stepfactor", raw.factor, "Each size is so many times the one before (default 4; with --quick 16)")
      ->check(CLI::Range(2, 1 << 20))
      ->type_name("X");
  app.add_option("--budget", raw.budget, "Time for one size of one collective (default 500ms; with --quick 30ms)")
      ->type_name("TIME");
  app.add_flag("--quick", raw.quick, "Few sizes, little time for each");
  app.add_option("--progress", raw.progress, "bar, lines, none (default: a bar on a terminal, else lines)")
      ->check(CLI::IsMember({"auto", "bar", "lines", "none"}))
      ->type_name("HOW");
}

void take_sizes(const Raw& raw, Options& options) {
  if (raw.quick) {
    options.sizes.last_bytes = 4 << 20;
    options.sizes.factor = 16;
    options.effort.point_ns = 30e6;
    options.effort.block_ns = 100e3;
    options.effort.least_rounds = 3;
  }
  if (!raw.first.empty()) options.sizes.first_bytes = checked("--minbytes", parse_bytes(raw.first));
  if (!raw.last.empty()) options.sizes.last_bytes = checked("--maxbytes", parse_bytes(raw.last));
  if (raw.factor != 0) options.sizes.factor = raw.factor;
  if (options.sizes.first_bytes == 0) throw UsageError("--minbytes: 0 cannot be multiplied; 1 is the least");
  if (options.sizes.first_bytes > options.sizes.last_bytes) throw UsageError("--minbytes is larger than --maxbytes");
  if (!raw.budget.empty()) {
    const uint64_t ns = checked("--budget", parse_duration_ns(raw.budget));
    if (ns == 0) throw UsageError("--budget: 0 is no time");
    options.effort.point_ns = static_cast<double>(ns);
    options.effort.block_ns = std::clamp(options.effort.point_ns / 1000, 20e3, 2e6);
  }
}

}  // namespace

Options parse_command_line(int argc, const char* const* argv, std::string* print) {
  CLI::App app("Measures on this machine which algorithm is the fastest, and writes it down for TUTTI_TUNING_FILE.",
               "tutti-tune");
  Options options;
  Raw raw;
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kFooter);
  declare_common(app, raw);
  app.add_option("-o,--output", options.output, "The tuning file; what it has for others is kept")->type_name("FILE");
  app.add_flag("--resume", options.resume, "Measure only what the file does not have yet");
  CLI::App* const judge = app.add_subcommand("judge", "Compare what Tutti chooses with the fastest that there is");
  declare_common(*judge, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    *print = judge->parsed() ? judge->help() : app.help();
    return options;
  } catch (const CLI::ParseError& problem) {
    throw UsageError(fmt::format("{} (tutti-tune --help)", problem.what()));
  }
  options.judge = judge->parsed();
  if (options.output.empty() != options.judge)
    throw UsageError(options.judge ? "judge writes no file: drop --output" : "--output FILE is missing (tutti-tune --help)");
  for (const std::string& word : raw.collectives) options.collectives.push_back(collective_of(word));
  for (uint32_t c = 0; raw.collectives.empty() && c < kCollectiveCount; ++c)
    options.collectives.push_back(static_cast<Collective>(c));
  if (!raw.types.empty()) options.types.clear();
  for (const std::string& word : raw.types) options.types.push_back(type_of(word));
  take_sizes(raw, options);
  if (raw.progress == "bar") options.progress = ProgressKind::bar;
  if (raw.progress == "lines") options.progress = ProgressKind::lines;
  if (raw.progress == "none") options.progress = ProgressKind::none;
  return options;
}

}  // namespace tutti::tune
