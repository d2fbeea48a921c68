// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "dtypes.hpp"
#include "errors.hpp"
#include "options.hpp"

using namespace tutti_perf;

namespace {
std::string complaint(std::vector<std::string> arguments) {
  try {
    parse_command_line(std::move(arguments));
  } catch (const UsageError& problem) {
    return problem.what();
  }
  return "accepted";
}
}  // namespace

TEST_CASE("the defaults") {
  const Options options = parse_command_line({"allreduce"});
  CHECK(options.collectives == std::vector<Collective>{Collective::allreduce});
  CHECK(options.sweep.begin_bytes == 8);
  CHECK(options.sweep.end_bytes == 64 << 20);
  CHECK(options.sweep.factor == 2);
  CHECK(options.sweep.step_bytes == 0);
  CHECK(options.iterations == 0);
  CHECK(options.warm_up == 5);
  CHECK(options.dtypes == std::vector<tutti_dtype_t>{TUTTI_FLOAT32});
  CHECK(options.ops == std::vector<tutti_op_t>{TUTTI_SUM});
  CHECK(options.check_runs == 1);
  CHECK(options.injection == Injection::none);
  CHECK(options.threads == 1);
  CHECK(options.model == nullptr);
  CHECK(options.mode == Mode::blocking);
  CHECK(options.counts.spread == Spread::even);
  CHECK(options.roots == Roots::one);
  CHECK((options.parallel == 1 && options.communicators == 1 && options.outstanding == 0 && !options.overlap));
  CHECK_FALSE(options.summary);
  CHECK(options.json.empty());
  CHECK(options.print_text.empty());
}

TEST_CASE("every option, with the spelling of nccl-tests too") {
  const Options options = parse_command_line({"sendrecv",   "broadcast", "barrier",
                                              "-b",         "1K",        "-e",
                                              "1M",         "-i",        "2K",
                                              "-n",         "7",         "-w",
                                              "0",          "-d",        "half,bf16,f16",
                                              "-o",         "max,avg",   "-r",
                                              "3",          "-c",        "off",
                                              "-t",         "2",         "--set",
                                              "timeout=5s", "--set",     "allreduce=ring:segment_bytes=4K",
                                              "--json",     "out.json",  "--csv",
                                              "-",          "--counters"});
  CHECK(options.collectives == std::vector<Collective>{Collective::sendrecv, Collective::broadcast, Collective::barrier});
  CHECK(options.sweep.begin_bytes == 1024);
  CHECK(options.sweep.end_bytes == 1 << 20);
  CHECK(options.sweep.step_bytes == 2048);
  CHECK(options.iterations == 7);
  CHECK(options.warm_up == 0);
  CHECK(options.dtypes == std::vector<tutti_dtype_t>{TUTTI_FLOAT16, TUTTI_BFLOAT16});
  CHECK(options.ops == std::vector<tutti_op_t>{TUTTI_MAX, TUTTI_AVG});
  CHECK(options.root == 3);
  CHECK(options.check_runs == 0);
  CHECK(options.threads == 2);
  REQUIRE(options.settings.size() == 2);
  CHECK(options.settings[1].first == "allreduce");
  CHECK(options.settings[1].second == "ring:segment_bytes=4K");
  CHECK(options.json == "out.json");
  CHECK(options.csv == "-");
  CHECK(options.counters);

  const Options as_nccl =
      parse_command_line({"--minbytes", "16", "--maxbytes", "64", "--stepfactor", "4", "--iters", "2", "--warmup_iters", "1",
                          "--datatype", "all", "--op", "all", "--root", "1", "--check", "3", "allreduce"});
  CHECK(as_nccl.sweep.begin_bytes == 16);
  CHECK(as_nccl.sweep.factor == 4);
  CHECK(as_nccl.dtypes.size() == 23);
  CHECK(as_nccl.ops.size() == 14);
  CHECK(as_nccl.check_runs == 3);
}

TEST_CASE("how calls are made") {
  const Options options = parse_command_line({"alltoallv", "--mode", "persistent", "--counts", "random:9", "-r", "rotate",
                                              "--outstanding", "3", "--communicators", "2", "--parallel", "4", "-o", "mulsum"});
  CHECK(options.mode == Mode::persistent);
  CHECK(options.counts.spread == Spread::random);
  CHECK(options.counts.seed == 9);
  CHECK(options.roots == Roots::rotate);
  CHECK(options.outstanding == 3);
  CHECK(options.communicators == 2);
  CHECK(options.parallel == 4);
  CHECK(options.ops == std::vector<tutti_op_t>{kScaledSum});
  CHECK(parse_command_line({"reduce", "-r", "all"}).roots == Roots::each);
  CHECK(parse_command_line({"allreduce", "--overlap"}).mode == Mode::nonblocking);
}

TEST_CASE("all collectives: what cannot be run is left out, and said") {
  const Options options = parse_command_line({"all"});
  CHECK(options.summary);
  CHECK(options.collectives.size() == all_collectives().size());
  CHECK(options.notes.empty());
  const Options persistent = parse_command_line({"all", "--mode", "persistent", "-o", "avg"});
  CHECK(persistent.collectives.size() == all_collectives().size() - 5);  // messages; no avg of scan and exscan
  CHECK(persistent.notes.size() == 5);
  CHECK_THAT(persistent.notes.back(), Catch::Contains("message_rate") && Catch::Contains("is for collectives"));
}

TEST_CASE("sizes from a network") {
  const Options all = parse_command_line({"allreduce", "--sizes-from", "bert-large"});
  REQUIRE(all.model != nullptr);
  CHECK(all.model->name == "bert-large");
  CHECK_FALSE(all.end_given);
  CHECK(parse_command_line({"allreduce", "--sizes-from", "gpt2", "-e", "1M"}).end_given);
  CHECK_THAT(complaint({"allreduce", "--sizes-from", "gpt9"}), Catch::Contains("'gpt9'"));
  CHECK_THAT(complaint({"allreduce", "--sizes-from", "gpt2", "-b", "8"}), Catch::Contains("cannot be combined"));
}

TEST_CASE("a smallest size above the default largest is one size") {
  const Options options = parse_command_line({"allreduce", "-b", "128M"});
  CHECK(options.sweep.end_bytes == 128 << 20);
}

TEST_CASE("texts to print instead of a run") {
  const std::string help = parse_command_line({"--help"}).print_text;
  for (const char* word : {"Exit codes:", "Examples:", "--sizes-from", "--inject", "--threads"})
    CHECK_THAT(help, Catch::Contains(word));
  CHECK_THAT(parse_command_line({"--version"}).print_text, Catch::StartsWith("tutti-perf "));
  const std::string list = parse_command_line({"--list"}).print_text;
  for (const Traits& one : all_collectives()) CHECK_THAT(list, Catch::Contains("\n" + std::string(one.name) + " "));
  CHECK_THAT(parse_command_line({"--list-models"}).print_text, Catch::Contains("resnet50") && Catch::Contains("25557032"));
}

TEST_CASE("what is wrong is named, with its value") {
  CHECK_THAT(complaint({}), Catch::Contains("name a collective"));
  CHECK_THAT(complaint({"alreduce"}), Catch::Contains("'alreduce'") && Catch::Contains("allreduce"));
  CHECK_THAT(complaint({"allreduce", "-b", "x"}), Catch::StartsWith("-b: 'x'"));
  CHECK_THAT(complaint({"allreduce", "-b", "2M", "-e", "1M"}), Catch::Contains("-b 2M is above -e 1M"));
  CHECK_THAT(complaint({"allreduce", "-f", "1"}), Catch::StartsWith("-f: '1'"));
  CHECK_THAT(complaint({"allreduce", "-f", "nan"}), Catch::StartsWith("-f: 'nan'"));
  CHECK_THAT(complaint({"allreduce", "-f", "2", "-i", "8"}), Catch::Contains("-f and -i"));
  CHECK_THAT(complaint({"allreduce", "-i", "0"}), Catch::Contains("never ends"));
  CHECK_THAT(complaint({"allreduce", "-n", "0"}), Catch::StartsWith("-n: '0'"));
  CHECK_THAT(complaint({"allreduce", "-d", "f8"}), Catch::StartsWith("-d: 'f8'") && Catch::Contains("bf16"));
  CHECK_THAT(complaint({"allreduce", "-d", "f32,"}), Catch::StartsWith("-d: ''"));
  CHECK_THAT(complaint({"allreduce", "-o", "lend"}), Catch::StartsWith("-o: 'lend'") && Catch::Contains("prod"));
  CHECK_THAT(complaint({"broadcast", "-r", "-1"}), Catch::StartsWith("-r: '-1'"));
  CHECK_THAT(complaint({"allreduce", "-t", "0"}), Catch::StartsWith("-t: '0'"));
  CHECK_THAT(complaint({"allreduce", "--inject", "bit"}), Catch::StartsWith("--inject: 'bit'"));
  CHECK_THAT(complaint({"allreduce", "--inject", "ulp", "-c", "off"}), Catch::Contains("--inject needs the check"));
  CHECK_THAT(complaint({"allreduce", "--set", "timeout"}), Catch::StartsWith("--set: 'timeout'"));
  CHECK_THAT(complaint({"allreduce", "--set", "=5"}), Catch::StartsWith("--set: '=5'"));
  CHECK_THAT(complaint({"allreduce", "--json", "-", "--csv", "-"}), Catch::Contains("would mix"));
  CHECK_THAT(complaint({"allreduce", "--frobnicate"}), Catch::Contains("--frobnicate"));
  CHECK_THAT(complaint({"all", "scan"}), Catch::Contains("name no other"));
  CHECK_THAT(complaint({"gather", "-r", "any"}), Catch::StartsWith("-r: 'any'"));
  CHECK_THAT(complaint({"allgatherv", "--counts", "odd"}), Catch::StartsWith("--counts: 'odd'") && Catch::Contains("sparse"));
  CHECK_THAT(complaint({"allgatherv", "--counts", "one:3"}), Catch::Contains("only random has a seed"));
  CHECK_THAT(complaint({"allgatherv", "--counts", "random:x"}), Catch::Contains("'x'"));
  CHECK_THAT(complaint({"allreduce", "--mode", "fast"}), Catch::StartsWith("--mode: 'fast'") && Catch::Contains("persistent"));
  CHECK_THAT(complaint({"allreduce", "--parallel", "0"}), Catch::StartsWith("--parallel: '0'"));
  CHECK_THAT(complaint({"allreduce", "--communicators", "x"}), Catch::StartsWith("--communicators: 'x'"));
  CHECK_THAT(complaint({"allreduce", "--outstanding", "5000"}), Catch::StartsWith("--outstanding: '5000'"));
}

TEST_CASE("what does not go together is named") {
  CHECK_THAT(complaint({"allreduce", "-d", "byte"}), Catch::Contains("sum is not defined for byte") && Catch::Contains("bxor"));
  CHECK_THAT(complaint({"scan", "-o", "avg"}), Catch::Contains("avg is not defined"));
  CHECK(complaint({"broadcast", "-d", "byte"}) == "accepted");
  CHECK(complaint({"allreduce", "-d", "byte", "-o", "all"}) == "accepted");
  CHECK(complaint({"allreduce", "-d", "all", "-o", "minloc"}) == "accepted");
  CHECK_THAT(complaint({"sendrecv", "--mode", "persistent"}), Catch::Contains("is for collectives"));
  CHECK_THAT(complaint({"allreduce", "--overlap", "--mode", "blocking"}), Catch::Contains("--overlap needs --mode"));
  CHECK_THAT(complaint({"pingpong", "--overlap"}), Catch::Contains("--overlap is for collectives"));
  CHECK_THAT(complaint({"allreduce", "--outstanding", "2"}), Catch::Contains("--outstanding needs --mode"));
  CHECK_THAT(complaint({"pingpong", "--outstanding", "2", "--mode", "nonblocking"}), Catch::Contains("one message at a time"));
  CHECK(complaint({"message_rate", "--outstanding", "200"}) == "accepted");
  CHECK_THAT(complaint({"gather", "--counts", "linear"}), Catch::Contains("--counts is for allgatherv"));
  CHECK_THAT(complaint({"allreduce", "--sizes-from", "gpt2", "--overlap"}), Catch::Contains("cannot be combined"));
}
