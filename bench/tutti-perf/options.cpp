// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "dtypes.hpp"
#include "errors.hpp"
#include "plan.hpp"

#ifndef TUTTI_PROJECT_VERSION
#error "meson.build defines TUTTI_PROJECT_VERSION"
#endif

namespace tutti_perf {
namespace {

constexpr const char* kFooter = R"(Examples:
  tuttirun -np 4 tutti-perf allreduce                         8 B to 64 MiB, float32 sums
  tuttirun -np 4 tutti-perf all -e 1M                         a line for each collective
  tuttirun -np 4 tutti-perf allreduce broadcast -b 1K -e 1M -f 4
  tuttirun -np 8 -H a:4,b:4 tutti-perf allreduce -d all -o all -e 64K
  tuttirun -np 4 tutti-perf allreduce --mode persistent -e 4K
  tuttirun -np 4 tutti-perf allreduce --mode group --outstanding 64 -b 1K -e 1K
  tuttirun -np 4 tutti-perf allreduce alltoall --overlap      how much of it computation hides
  tuttirun -np 4 tutti-perf alltoallv --counts sparse
  tuttirun -np 4 tutti-perf gather -r rotate                  every rank is root in turn
  tuttirun -np 4 tutti-perf allreduce --parallel 4            4 threads of each rank, each with a communicator
  tuttirun -np 2 tutti-perf pingpong message_rate --mode nonblocking -e 4K
  tuttirun -np 4 tutti-perf allreduce --sizes-from resnet50   the tensors of a network
  tuttirun -np 2 tutti-perf sendrecv -n 1000 --json latency.json
  tutti-perf allreduce --threads 4 --set allreduce=ring:segment_bytes=64K

time is the mean of the iterations, p50 and p99 their percentiles, each of the rank where it is longest. algbw is size / time;
busbw is what that means for the busiest link (tutti-perf --list has the factors). #wrong counts elements, on all ranks, that are
further from the exact result than rounding explains (tutti-perf(1) has the bounds).

Exit codes:
  0  every result was right, or was not checked
  1  a result was wrong
  2  the command line is wrong
  3  a call failed, memory is short, or a file cannot be written
)";

struct RawOptions {
  std::vector<std::string> collectives;
  std::string begin = "8", end = "64M", factor = "2", step, iterations = "auto", warm_up = "5";
  std::string dtypes = "f32", ops = "sum", root = "0", check = "1", inject = "none", threads = "1", sizes_from;
  std::string mode, counts = "even", parallel = "1", communicators = "1", outstanding = "0";
  std::vector<std::string> settings;
  bool list = false, list_models = false;
};

void declare_what_is_run(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_option("-n,--iters", raw.iterations, "Iterations timed (default auto: 20 to 1000, for about 0.1 s)")->type_name("N");
  app.add_option("-w,--warmup_iters", raw.warm_up, "Iterations before that (default 5)")->type_name("N");
  app.add_option("-d,--datatype", raw.dtypes, "Data types, or all (default f32)")->type_name("TYPE,...");
  app.add_option("-o,--op", raw.ops, "Operations, or all (default sum); scaled is the sum with a factor a rank")
      ->type_name("OP,...");
  app.add_option("-r,--root", raw.root, "Root (default 0); all: one after the other; rotate: another for each call")
      ->type_name("RANK|all|rotate");
  app.add_option("--counts", raw.counts, "Lengths of the blocks of allgatherv and the like (default even)")
      ->type_name("even|linear|random[:SEED]|one|sparse");
  app.add_option("--mode", raw.mode, "Form of the calls (default blocking)")->type_name("blocking|nonblocking|persistent|group");
  app.add_flag("--overlap", options.overlap, "Compute as long as a call takes while it runs: how much of it is hidden");
  app.add_option("--outstanding", raw.outstanding,
                 "Calls started before the first is waited for, or launched as a group; messages of message_rate")
      ->type_name("N");
  app.add_option("--communicators", raw.communicators, "Use so many communicators in turn (default 1)")->type_name("N");
  app.add_option("--parallel", raw.parallel, "Threads of each rank that call at once, on communicators of their own (default 1)")
      ->type_name("N");
  app.add_option("-t,--threads", raw.threads, "Ranks in each process, as threads (default 1)")->type_name("N");
  app.add_option("--set", raw.settings, "A setting of the library (tutti-info config), before the environment")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void declare(CLI::App& app, RawOptions& raw, Options& options) {
  app.add_option("collectives", raw.collectives, "Collectives and messages (--list), run in turn; all: a summary of all")
      ->type_name("COLLECTIVE...");
  app.add_flag("--list", raw.list, "List the collectives and exit");
  app.add_option("-b,--minbytes", raw.begin, "Smallest size (default 8)")->type_name("SIZE");
  app.add_option("-e,--maxbytes", raw.end, "Largest size (default 64M)")->type_name("SIZE");
  app.add_option("-f,--stepfactor", raw.factor, "Each size is this times the one before (default 2)")->type_name("X");
  app.add_option("-i,--stepbytes", raw.step, "Each size is this more than the one before")->type_name("SIZE");
  app.add_option("--sizes-from", raw.sizes_from, "Sizes of the tensors of this network (--list-models), up to -e if given")
      ->type_name("MODEL");
  app.add_flag("--list-models", raw.list_models, "List the networks and exit");
  declare_what_is_run(app, raw, options);
  app.add_option("-c,--check", raw.check, "Runs whose results are verified, for each time; on is 1, off 0 (default 1)")
      ->type_name("N|on|off");
  app.add_option("--inject", raw.inject, "Test of the check: change one result by one ulp (passes) or by 1 percent (fails)")
      ->type_name("ulp|percent");
  app.add_option("--json", options.json, "Write the results as JSON; - is standard output, instead of the table")
      ->type_name("FILE");
  app.add_option("--csv", options.csv, "Write the results as CSV; - is standard output, instead of the table")->type_name("FILE");
  app.add_flag("--counters", options.counters, "Print the library's counters of rank 0 at the end");
}

double parse_factor(const std::string& text) {
  double factor = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), factor);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || !(factor > 1) || factor > 1e9) {
    throw UsageError(fmt::format("-f: '{}' is not a factor above 1", text));
  }
  return factor;
}

void parse_sizes(const CLI::App& app, const RawOptions& raw, Options& options) {
  options.sweep.begin_bytes = parse_bytes("-b", raw.begin);
  options.sweep.end_bytes = parse_bytes("-e", raw.end);
  options.end_given = app.count("-e") != 0;
  // As nccl-tests: a smallest size alone above the default largest is a single size.
  if (!options.end_given) options.sweep.end_bytes = std::max(options.sweep.end_bytes, options.sweep.begin_bytes);
  if (options.sweep.begin_bytes > options.sweep.end_bytes) {
    throw UsageError(fmt::format("-b {} is above -e {}", raw.begin, raw.end));
  }
  options.sweep.factor = parse_factor(raw.factor);
  if (!raw.step.empty()) {
    if (app.count("-f") != 0) throw UsageError("-f and -i: give one of them");
    options.sweep.step_bytes = parse_bytes("-i", raw.step);
    if (options.sweep.step_bytes == 0) throw UsageError("-i: a step of 0 never ends");
  }
  if (!raw.sizes_from.empty()) {
    if (app.count("-b") + app.count("-f") + app.count("-i") != 0) {
      throw UsageError("--sizes-from gives the sizes: -b, -f and -i cannot be combined with it");
    }
    options.model = &find_model(raw.sizes_from);
  }
}

std::pair<std::string, std::string> parse_setting(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw UsageError(fmt::format("--set: '{}' is not NAME=VALUE (tutti-info config lists the names)", text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Injection parse_injection(const std::string& text) {
  if (text == "none") return Injection::none;
  if (text == "ulp") return Injection::ulp;
  if (text == "percent") return Injection::percent;
  throw UsageError(fmt::format("--inject: '{}' is neither ulp nor percent", text));
}

uint64_t parse_check(const std::string& text) {
  if (text == "on") return 1;
  if (text == "off") return 0;
  return parse_count("-c", text, 0, 1'000'000);
}

void parse_root(const std::string& text, Options& options) {
  if (text == "all") {
    options.roots = Roots::each;
  } else if (text == "rotate") {
    options.roots = Roots::rotate;
  } else {
    options.root = static_cast<uint32_t>(parse_count("-r", text, 0, INT32_MAX));
  }
}

Mode parse_mode(const std::string& text, bool overlap) {
  if (text.empty()) return overlap ? Mode::nonblocking : Mode::blocking;
  for (const Mode mode : {Mode::blocking, Mode::nonblocking, Mode::persistent, Mode::group}) {
    if (text != name(mode)) continue;
    if (overlap && mode == Mode::blocking) throw UsageError("--overlap needs --mode nonblocking, persistent or group");
    return mode;
  }
  throw UsageError(fmt::format("--mode: '{}' is none of blocking, nonblocking, persistent, group", text));
}

/// What cannot be run is left out of "all", and is an error where it was named.
void settle_collectives(Options& options) {
  std::vector<Collective> possible;
  for (const Collective collective : options.collectives) {
    const std::string reason = obstacle(options, collective);
    if (reason.empty() && !series_of(options, collective, 1).empty()) {
      possible.push_back(collective);
    } else if (!options.summary) {
      throw UsageError(fmt::format("{}: {}", name(collective), reason.empty() ? "no operation of -o exists for it" : reason));
    } else {
      options.notes.push_back(fmt::format("left out: {}: {}", name(collective), reason.empty() ? "no operation of -o" : reason));
    }
  }
  if (possible.empty()) throw UsageError("no collective can be run with these options");
  options.collectives = std::move(possible);
}

void parse_calls(const RawOptions& raw, Options& options) {
  options.mode = parse_mode(raw.mode, options.overlap);
  options.counts = parse_counts(raw.counts);
  options.outstanding =
      static_cast<uint32_t>(raw.outstanding == "0" ? 0 : parse_count("--outstanding", raw.outstanding, 1, 4096));
  options.communicators = static_cast<uint32_t>(parse_count("--communicators", raw.communicators, 1, 1024));
  options.parallel = static_cast<uint32_t>(parse_count("--parallel", raw.parallel, 1, 1024));
  if (options.model != nullptr && (options.outstanding > 1 || options.overlap)) {
    throw UsageError("--sizes-from runs tensor after tensor: --outstanding and --overlap cannot be combined with it");
  }
  if (options.model != nullptr && options.mode == Mode::group) {
    throw UsageError(
        "--sizes-from runs tensor after tensor: there is nothing to group; --outstanding N gives a group of N calls");
  }
}

std::string list_models() {
  std::string text;
  for (const Model& model : all_models()) {
    text += fmt::format("{:<12} {:>4} tensors {:>11} elements\n", model.name, model.tensors.size(), model.element_count());
  }
  return text;
}

void convert(const CLI::App& app, const RawOptions& raw, Options& options) {
  parse_sizes(app, raw, options);
  options.collectives = parse_collectives(raw.collectives);
  options.summary = raw.collectives == std::vector<std::string>{"all"};
  options.iterations = raw.iterations == "auto" ? 0 : parse_count("-n", raw.iterations, 1, 1'000'000'000);
  options.warm_up = parse_count("-w", raw.warm_up, 0, 1'000'000'000);
  options.dtypes = parse_dtypes(raw.dtypes);
  options.ops = parse_ops(raw.ops);
  options.every_dtype = options.dtypes.size() == all_dtypes().size();
  options.every_op = options.ops.size() == all_ops().size();
  parse_root(raw.root, options);
  parse_calls(raw, options);
  options.check_runs = parse_check(raw.check);
  options.injection = parse_injection(raw.inject);
  if (options.injection != Injection::none && options.check_runs == 0) throw UsageError("--inject needs the check: drop -c off");
  options.threads = static_cast<uint32_t>(parse_count("-t", raw.threads, 1, 4096));
  for (const std::string& setting : raw.settings) options.settings.push_back(parse_setting(setting));
  if (options.json == "-" && options.csv == "-") throw UsageError("--json - and --csv -: one of them only, they would mix");
  settle_collectives(options);
}

}  // namespace

std::string_view name(Mode mode) {
  switch (mode) {
    case Mode::nonblocking:
      return "nonblocking";
    case Mode::persistent:
      return "persistent";
    case Mode::group:
      return "group";
    case Mode::blocking:
      break;
  }
  return "blocking";
}

Options parse_command_line(std::vector<std::string> arguments) {
  CLI::App app("Measures the collectives of Tutti, and verifies their results. Run it under a launcher.", "tutti-perf");
  app.set_version_flag("--version", "tutti-perf " TUTTI_PROJECT_VERSION);
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kFooter);
  app.get_formatter()->column_width(34);
  RawOptions raw;
  Options options;
  declare(app, raw, options);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    options.print_text = app.help();
    return options;
  } catch (const CLI::CallForVersion&) {
    options.print_text = "tutti-perf " TUTTI_PROJECT_VERSION "\n";
    return options;
  } catch (const CLI::ParseError& problem) {
    throw UsageError(fmt::format("{} (tutti-perf --help)", problem.what()));
  }
  if (raw.list || raw.list_models) {
    options.print_text = raw.list ? list_collectives() : list_models();
    return options;
  }
  convert(app, raw, options);
  return options;
}

}  // namespace tutti_perf
