// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <thread>

#include "base/types.hpp"
#include "pages.hpp"
#include "topology_file.hpp"

namespace tutti::simulator {
namespace {

enum ExitCode : int { kExitOk = 0, kExitFailure = 1, kExitUsage = 2 };

constexpr const char* kFooter = R"(Examples:
  tutti-sim compare allreduce --ranks 1024 --bytes 1M
  tutti-sim compare allreduce --ranks 65536 --bytes 1M --topology fat_tree.json --json
  tutti-sim run allreduce --algorithm ring:segment_bytes=256K --ranks 64 --bytes 16M
  tutti-sim topology dragonfly.json --ranks 4096
  tutti-sim calibrate tuning.txt -o machine.json       prices from what tutti-tune measured
  tutti-sim verify                                     all algorithms on 1 to 17 ranks
  tutti-sim verify reduce --ranks 2-9,33 --algorithm binomial

Exit codes:
  0  done
  1  a schedule is wrong or comes to no end, or the output could not be written
  2  the command line or a file is wrong
)";

struct Arguments {
  std::string collective, bytes = "1M", topology, file, output, max_bytes = "4M", ranks_text = "1-17", algorithm,
                          method = "automatic";
  std::vector<std::string> algorithms;
  uint32_t ranks = 0, root = 0, element_bytes = 4, cores = 0;
  uint64_t max_steps = 0;
  bool json = false;
};

int complain(std::string_view message, int code) {
  fmt::print(stderr, "tutti-sim: {}\n", message);
  return code;
}

int put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return complain("cannot write the output", kExitFailure);
  }
  return kExitOk;
}

void declare_question(CLI::App& command, Arguments& given) {
  command.add_option("collective", given.collective, "allreduce, broadcast, alltoall ...")->required()->type_name("COLLECTIVE");
  command.add_option("-n,--ranks", given.ranks, "Number of ranks")->required()->check(CLI::PositiveNumber)->type_name("N");
  command.add_option("-b,--bytes", given.bytes, "The whole vector, all blocks together (default 1M)")->type_name("SIZE");
  command.add_option("-t,--topology", given.topology, "Topology file (default: flat, a rank a node)")->type_name("FILE");
  command.add_option("--root", given.root, "Root (default 0)")->type_name("R");
  command.add_option("--element-bytes", given.element_bytes, "Bytes of an element (default 4)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command.add_option("--walk", given.method, "automatic, every_event, classes or formula (default automatic)")
      ->check(CLI::IsMember({"automatic", "every_event", "classes", "formula"}))
      ->type_name("HOW");
  command.add_option("--max-steps", given.max_steps, "Walk at most about so many steps, extrapolate beyond (default 8 million)")
      ->type_name("N");
  command.add_flag("--json", given.json, "For programs");
}

void declare(CLI::App& app, Arguments& given) {
  app.set_help_flag("-h,--help", "Print this help");
  app.footer(kFooter);
  app.require_subcommand(1);
  CLI::App* const compare = app.add_subcommand("compare", "Which algorithm is the fastest, and why");
  declare_question(*compare, given);
  compare->add_option("-a,--algorithm", given.algorithms, "Compare these only: ring:segment_bytes=256K; may be repeated")
      ->type_name("TEXT");
  CLI::App* const run = app.add_subcommand("run", "One algorithm: its ranks, and the steps of the slowest");
  declare_question(*run, given);
  run->add_option("-a,--algorithm", given.algorithm, "ring:segment_bytes=256K (default: the one that Tutti chooses)")
      ->type_name("TEXT");
  CLI::App* const verify = app.add_subcommand("verify", "Prove that schedules are right");
  verify->add_option("collective", given.collective, "Of this collective only")->type_name("COLLECTIVE");
  verify->add_option("-n,--ranks", given.ranks_text, "Numbers of ranks, as 2,3,8-12 (default 1-17)")->type_name("LIST");
  verify->add_option("-a,--algorithm", given.algorithm, "This one only")->type_name("NAME");
  verify->add_flag("--json", given.json, "For programs");
  CLI::App* const calibrate = app.add_subcommand("calibrate", "Prices that explain what was measured on this machine");
  calibrate->add_option("file", given.file, "Tuning file with times, as tutti-tune writes it")->required()->type_name("FILE");
  calibrate->add_option("-o,--output", given.output, "Write them as a topology file")->type_name("FILE");
  calibrate->add_option("-t,--topology", given.topology, "Begin with the prices of this one")->type_name("FILE");
  calibrate->add_option("--cores", given.cores, "Processors of the machine that was measured (default: this one's)")
      ->type_name("N");
  calibrate->add_option("--maxbytes", given.max_bytes, "Leave out longer vectors (default 4M)")->type_name("SIZE");
  calibrate->add_flag("--json", given.json, "For programs");
  CLI::App* const topology = app.add_subcommand("topology", "What a topology file describes");
  topology->add_option("file", given.topology, "Topology file")->required()->type_name("FILE");
  topology->add_option("-n,--ranks", given.ranks, "Number of ranks (default: as many as there is room for)")->type_name("N");
  topology->add_flag("--json", given.json, "For programs");
}

/// On a terminal, one line that changes.
void show_progress(const std::string& what) {
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\033[K{}", what);
}
void end_progress() { show_progress(""); }

Result<Question> question_of(const Arguments& given) {
  Question question;
  const Result<Collective> collective = parse_collective(given.collective);
  if (!collective.ok()) return collective.status();
  const Result<uint64_t> bytes = parse_bytes(given.bytes);
  if (!bytes.ok()) return bytes.status().with_context("--bytes");
  if (given.root >= given.ranks) return error(TUTTI_ERR_RANK, "--root: there are ranks 0 to {}", given.ranks - 1);
  Result<NetworkSpec> network = load_topology(given.topology);
  if (!network.ok()) return network.status();
  question.collective = *collective;
  question.ranks = given.ranks;
  question.bytes = *bytes;
  question.element_bytes = given.element_bytes;
  question.root = given.root;
  question.network = std::move(*network);
  question.algorithms = given.algorithms;
  if (!given.algorithm.empty()) question.algorithms.push_back(given.algorithm);
  question.max_steps = given.max_steps;
  question.json = given.json;
  if (given.method == "every_event") question.method = WalkMethod::every_event;
  if (given.method == "classes") question.method = WalkMethod::classes;
  if (given.method == "formula") question.method = WalkMethod::formula;
  return question;
}

Result<std::string> verify(const Arguments& given) {
  VerifyQuestion question;
  if (!given.collective.empty()) {
    const Result<Collective> collective = parse_collective(given.collective);
    if (!collective.ok()) return collective.status();
    question.collectives = {*collective};
  }
  Result<std::vector<uint32_t>> ranks = parse_ranks(given.ranks_text);
  if (!ranks.ok()) return ranks.status();
  question.ranks = std::move(*ranks);
  question.algorithm = given.algorithm;
  question.json = given.json;
  return verify_page(question, show_progress);
}

Result<std::string> calibrate(const Arguments& given) {
  CalibrateQuestion question;
  Result<NetworkSpec> start = load_topology(given.topology);
  if (!start.ok()) return start.status();
  const Result<uint64_t> max_bytes = parse_bytes(given.max_bytes);
  if (!max_bytes.ok()) return max_bytes.status().with_context("--maxbytes");
  question.tuning_file = given.file;
  question.output = given.output;
  question.start = std::move(*start);
  if (given.topology.empty()) question.start.prices.node.slots = 8;  // the default of shm_slots
  question.cores = given.cores != 0 ? given.cores : std::max(1u, std::thread::hardware_concurrency());
  question.max_bytes = *max_bytes;
  question.json = given.json;
  return calibrate_page(question, show_progress);
}

Result<std::string> page(const CLI::App& app, const Arguments& given) {
  if (app.got_subcommand("verify")) return verify(given);
  if (app.got_subcommand("calibrate")) return calibrate(given);
  if (app.got_subcommand("topology")) {
    const Result<NetworkSpec> spec = load_topology(given.topology);
    return spec.ok() ? topology_page(*spec, given.ranks, given.json) : spec.status();
  }
  const Result<Question> question = question_of(given);
  if (!question.ok()) return question.status();
  return app.got_subcommand("compare") ? compare_page(*question, show_progress) : run_page(*question);
}

int run(int argc, char** argv) {
  CLI::App app("Predicts how long collectives take on machines that are not there.", "tutti-sim");
  Arguments given;
  declare(app, given);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    for (const CLI::App* command : app.get_subcommands()) return put(command->help());
    return put(app.help());
  } catch (const CLI::ParseError& problem) {
    return complain(fmt::format("{} (tutti-sim --help)", problem.what()), kExitUsage);
  }
  const Result<std::string> text = page(app, given);
  end_progress();
  if (text.ok()) return put(*text);
  const Status problem = text.status();
  return complain(problem.message(), problem.code() == TUTTI_ERR_INTERNAL ? kExitFailure : kExitUsage);
}

}  // namespace
}  // namespace tutti::simulator

int main(int argc, char** argv) {
  try {
    return tutti::simulator::run(argc, argv);
  } catch (const std::exception& problem) {  // out of memory, or a bug
    return tutti::simulator::complain(problem.what(), tutti::simulator::kExitFailure);
  }
}
