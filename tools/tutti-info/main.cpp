// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/types.hpp"
#include "pages.hpp"
#include "tutti/tutti.h"

namespace tutti::info {
namespace {

enum ExitCode : int { kExitOk = 0, kExitFailure = 1, kExitUsage = 2 };

constexpr const char* kFooter = R"(Examples:
  tutti-info                                          what is here
  tutti-info config                                   all settings, and what they are now
  TUTTI_SPIN=0 tutti-info config --json
  tutti-info algorithms
  tutti-info select allreduce --ranks 8
  tutti-info choose allreduce --ranks 8 --nodes 2 --bytes 1M --tuning-file tuning.txt
  tutti-info schedule allreduce --ranks 8 --bytes 1M --rank 0
  tutti-info schedule broadcast --ranks 4 --bytes 1K --algorithm binomial --dot | dot -Tsvg > broadcast.svg
  tutti-info schedule allreduce --ranks 4 --bytes 64K --lowered slots --verify
  tutti-info topology                                 this machine, as a tree
  tutti-info topology --json > node.json              and later: tutti-info topology --load node.json
  tuttirun -np 4 tutti-info topology --job            where the ranks of a job are

Exit codes:
  0  done
  1  a setting in the environment is unknown or bad (what was asked for is printed all the same), the output could not be
     written, --verify found a fault, or the ranks of --job did not meet
  2  the command line, or the file of --load, is wrong
)";

struct Arguments {
  bool markdown = false, json = false, xml = false, job = false, between_nodes = false, in_place = false, dot = false, verify = false;
  bool uneven = false, ordered = false;
  std::string collective, bytes = "0", algorithm, lowered, type = "f32", links, tuning_file, load;
  uint32_t ranks = 0, nodes = 1, root = 0, cpus = 0;
  std::optional<uint32_t> rank;
};

int complain(std::string_view message, int code) {
  fmt::print(stderr, "tutti-info: {}\n", std::string(message));
  return code;
}

int put(const std::string& text, int code = kExitOk) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return complain("cannot write the output", kExitFailure);
  }
  return code;
}

std::string library_version() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (tutti_get_version(&major, &minor, &patch) != TUTTI_OK) return "unknown";
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void declare_choice(CLI::App& command, Arguments& given) {
  command.add_option("collective", given.collective, "allreduce, broadcast or barrier")->required()->type_name("COLLECTIVE");
  command.add_option("-n,--ranks", given.ranks, "Number of ranks")->required()->type_name("N");
  command.add_option("-a,--algorithm", given.algorithm, "Force it: ring:segment_bytes=256K,channels=2")->type_name("TEXT");
  command.add_flag("--between-nodes", given.between_nodes, "Choose as for ranks on different nodes; default: all on one");
  command.add_option("--cpus", given.cpus, "CPUs of a node that its ranks may use (default: one for each)")->type_name("N");
}

void declare_choose(CLI::App& command, Arguments& given) {
  command.add_option("collective", given.collective, "allreduce, broadcast ...")->required()->type_name("COLLECTIVE");
  command.add_option("-n,--ranks", given.ranks, "Number of ranks")->required()->type_name("N");
  command.add_option("--nodes", given.nodes, "Nodes that they are on, in blocks (default 1)")->type_name("M");
  command.add_option("--cpus", given.cpus, "CPUs of a node that its ranks may use (default: one for each)")->type_name("N");
  command.add_option("-b,--bytes", given.bytes, "Size of the whole vector, all blocks together")->required()->type_name("SIZE");
  command.add_option("-t,--type", given.type, "Type, as f32, or class of types, as small_float (default f32)")->type_name("TYPE");
  command.add_option("--links", given.links, "Transports within nodes / between them (default as there are nodes: shm/tcp)")
      ->type_name("TEXT");
  command.add_option("--tuning-file", given.tuning_file, "What tutti-tune measured (default: the setting tuning_file)")
      ->type_name("FILE");
  command.add_flag("--uneven", given.uneven, "Blocks of different lengths");
  command.add_flag("--ordered", given.ordered, "An operation that does not commute");
}

void declare(CLI::App& app, Arguments& given) {
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  CLI::App* const config = app.add_subcommand("config", "All settings: name, type, default, value and its source, meaning");
  config->add_flag("--markdown", given.markdown, "The reference page, docs/settings.md");
  config->add_flag("--json", given.json, "For programs");
  CLI::App* const algorithms = app.add_subcommand("algorithms", "All algorithms with their parameters");
  algorithms->add_flag("--markdown", given.markdown, "The reference page, docs/algorithms.md");
  CLI::App* const schedule = app.add_subcommand("schedule", "What each rank does in a collective, step by step");
  declare_choice(*schedule, given);
  schedule->add_option("-b,--bytes", given.bytes, "Size, on which the choice depends (default 0)")->type_name("SIZE");
  schedule->add_option("--rank", given.rank, "Only this rank (default: all, up to 16)")->type_name("R");
  schedule->add_option("--root", given.root, "Root of broadcast (default 0)")->type_name("R");
  schedule->add_flag("--in-place", given.in_place, "Input and output are the same memory");
  schedule->add_flag("--dot", given.dot, "All ranks as a graph, for Graphviz");
  schedule->add_option("--lowered", given.lowered, "What the engine runs when all pairs carry messages, or slots")
      ->check(CLI::IsMember({"messages", "slots"}));
  schedule->add_flag("--verify", given.verify, "Prove that the schedule is right, on up to 64 ranks");
  CLI::App* const select = app.add_subcommand("select", "Which algorithm is used for which size, and why");
  declare_choice(*select, given);
  declare_choose(*app.add_subcommand("choose", "What a call would use, and why: candidates, times, what is left out"), given);
  CLI::App* const topology = app.add_subcommand("topology", "This machine: packages, NUMA nodes, caches, devices; or a job's ranks");
  CLI::Option* const xml = topology->add_flag("--xml", given.xml, "As XML of hwloc, for lstopo --input");
  topology->add_flag("--json", given.json, "For programs, and for --load")->excludes(xml);
  CLI::Option* const load = topology->add_option("--load", given.load, "Show a file that --json or --xml wrote")->type_name("FILE");
  topology->add_flag("--job", given.job, "Where the ranks of this job are; rank 0 prints")->excludes(xml)->excludes(load);
  xml->excludes(load);
  app.add_subcommand("counters", "What each counter counts");
  app.add_subcommand("errors", "Status codes: what they mean and what to do");
  app.add_subcommand("version", "Version of the library");
}

Result<std::string> choice_page(const Arguments& given, bool schedule) {
  const Result<Collective> collective = parse_collective(given.collective);
  if (!collective.ok()) return collective.status();
  ScheduleRequest request;
  request.select = {*collective, given.ranks, given.algorithm, !given.between_nodes, given.cpus};
  if (!schedule) return select_page(request.select);
  const Result<uint64_t> bytes = parse_bytes(given.bytes);
  if (!bytes.ok()) return bytes.status().with_context("--bytes");
  request.bytes = *bytes;
  request.root = given.root;
  request.in_place = given.in_place;
  request.rank = given.rank;
  request.dot = given.dot;
  request.verify = given.verify;
  if (given.lowered == "messages") request.lowering = Lowering::messages;
  if (given.lowered == "slots") request.lowering = Lowering::slots;
  return schedule_page(request);
}

int show_choice(const Arguments& given, bool schedule) {
  const Result<std::string> page = choice_page(given, schedule);
  if (page.ok()) return put(*page);
  const Status problem = page.status();
  return complain(problem.message(), problem.code() == TUTTI_ERR_INTERNAL ? kExitFailure : kExitUsage);
}

Result<std::string> explanation(const Arguments& given, Config config) {
  const Result<Collective> collective = parse_collective(given.collective);
  if (!collective.ok()) return collective.status();
  const Result<uint64_t> bytes = parse_bytes(given.bytes);
  if (!bytes.ok()) return bytes.status().with_context("--bytes");
  ChooseRequest request;
  request.collective = *collective;
  request.rank_count = given.ranks;
  request.node_count = given.nodes;
  request.cpu_count = given.cpus;
  request.bytes = *bytes;
  request.type = given.type;
  request.links = given.links;
  request.tuning_file = given.tuning_file.empty() ? config.text(Setting::tuning_file) : given.tuning_file;
  request.uneven = given.uneven;
  request.ordered = given.ordered;
  request.config = std::move(config);
  return choose_page(request);
}

int explain(const Arguments& given) {
  Config config;
  const Status environment = config.load_environment(environ);
  if (!environment.ok()) complain(environment.message(), kExitFailure);
  const Result<std::string> page = explanation(given, std::move(config));
  if (!page.ok()) return complain(page.status().message(), kExitUsage);
  return put(*page, environment.ok() ? kExitOk : kExitFailure);
}

int show_topology(const Arguments& given) {
  const Result<std::string> page = topology_page({given.json, given.xml, given.load});
  if (page.ok()) return put(*page);
  const Status problem = page.status();
  return complain(problem.message(), problem.code() == TUTTI_ERR_CONFIG ? kExitUsage : kExitFailure);
}

int show_job(const Arguments& given) {
  Config config;
  std::string unknown;  // others in the environment are none of this command's business
  const Status environment = config.load_environment(environ, &unknown);
  if (!environment.ok()) return complain(environment.message(), kExitFailure);
  uint32_t rank = 0;
  const Result<std::string> page = job_page(config, given.json, &rank);
  if (rank != 0 && page.status().code() == TUTTI_ERR_CONFIG) return kExitFailure;  // rank 0 says the same
  if (!page.ok()) return complain(page.status().message(), kExitFailure);
  return rank == 0 ? put(*page) : kExitOk;
}

/// Pages that show values also say what is wrong in the environment.
int show_settings(const CLI::App& app, const Arguments& given) {
  Config config;
  const Status environment = config.load_environment(environ);
  if (!environment.ok()) complain(environment.message(), kExitFailure);
  const int code = environment.ok() ? kExitOk : kExitFailure;
  if (!app.got_subcommand("config")) return put(overview(config, library_version()), code);
  if (given.markdown && given.json) return complain("--markdown and --json: give one of them", kExitUsage);
  return put(config_page(config, given.json ? Format::json : given.markdown ? Format::markdown : Format::text), code);
}

int run(int argc, char** argv) {
  CLI::App app("Shows what Tutti is made of and how it decides.", "tutti-info");
  Arguments given;
  declare(app, given);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const CLI::App* command : app.get_subcommands()) return put(command->help());
    return put(app.help());
  } catch (const CLI::ParseError& problem) {
    return complain(fmt::format("{} (tutti-info --help)", problem.what()), kExitUsage);
  }
  if (app.got_subcommand("version")) return put(library_version() + "\n");
  if (app.got_subcommand("algorithms")) return put(algorithms_page(given.markdown ? Format::markdown : Format::text));
  if (app.got_subcommand("choose")) return explain(given);
  if (app.got_subcommand("counters")) return put(counters_page());
  if (app.got_subcommand("errors")) return put(errors_page());
  if (app.got_subcommand("schedule")) return show_choice(given, true);
  if (app.got_subcommand("select")) return show_choice(given, false);
  if (app.got_subcommand("topology")) return given.job ? show_job(given) : show_topology(given);
  return show_settings(app, given);
}

}  // namespace
}  // namespace tutti::info

int main(int argc, char** argv) {
  try {
    return tutti::info::run(argc, argv);
  } catch (const std::exception& problem) {  // out of memory, or a bug
    return tutti::info::complain(problem.what(), tutti::info::kExitFailure);
  }
}
