// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "errors.hpp"
#include "options.hpp"
#include "progress.hpp"

namespace tutti::tune {
namespace {

using Catch::Matchers::Contains;

Options parse(std::vector<const char*> words, std::string* print = nullptr) {
  words.insert(words.begin(), "tutti-tune");
  std::string text;
  return parse_command_line(static_cast<int>(words.size()), words.data(), print == nullptr ? &text : print);
}

std::string failure_of(const std::vector<const char*>& words) {
  try {
    parse(words);
  } catch (const UsageError& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace

TEST_CASE("without more all collectives are measured, floats where they fold") {
  const Options options = parse({"-o", "file"});
  CHECK(options.collectives.size() == kCollectiveCount);
  CHECK(options.types == std::vector<TypeClass>{TypeClass::floats});
  CHECK(options.output == "file");
  CHECK_FALSE(options.judge);
  CHECK_FALSE(options.resume);
  CHECK(options.sizes.last_bytes == 64 << 20);
}

TEST_CASE("collectives, sizes, types and time can be given") {
  const Options options = parse({"barrier", "scan", "-o", "f", "-b", "1K", "-e", "1M", "-f", "2", "-t", "int", "-t", "user",
                                 "--budget", "2s", "--resume", "--progress", "none"});
  CHECK(options.collectives == std::vector<Collective>{Collective::barrier, Collective::scan});
  CHECK(options.types == std::vector<TypeClass>{TypeClass::integers, TypeClass::user});
  CHECK(options.sizes.first_bytes == 1024);
  CHECK(options.sizes.last_bytes == 1 << 20);
  CHECK(options.sizes.factor == 2);
  CHECK(options.effort.point_ns == 2e9);
  CHECK(options.resume);
  CHECK(options.progress == ProgressKind::none);
  const Options quick = parse({"judge", "--quick", "reduce", "-e", "1K"});
  CHECK(quick.judge);
  CHECK(quick.collectives == std::vector<Collective>{Collective::reduce});
  CHECK(quick.sizes.last_bytes == 1024);
  CHECK(quick.effort.point_ns < options.effort.point_ns);
}

TEST_CASE("a bad command line is told with what there is") {
  CHECK_THAT(failure_of({}), Contains("--output FILE is missing"));
  CHECK_THAT(failure_of({"-o", "f", "allreduc"}), Contains("'allreduc'") && Contains("did you mean 'allreduce'?"));
  CHECK_THAT(failure_of({"-o", "f", "-t", "flaot"}), Contains("flaot") && Contains("'float'"));
  CHECK_THAT(failure_of({"-o", "f", "-t", "colours"}), Contains("int, float, small_float, user"));
  CHECK_THAT(failure_of({"-o", "f", "-b", "big"}), Contains("--minbytes") && Contains("big"));
  CHECK_THAT(failure_of({"-o", "f", "-b", "0"}), Contains("--minbytes"));
  CHECK_THAT(failure_of({"-o", "f", "-b", "2M", "-e", "1M"}), Contains("larger than --maxbytes"));
  CHECK_THAT(failure_of({"-o", "f", "-f", "1"}), Contains("stepfactor"));
  CHECK_THAT(failure_of({"-o", "f", "--budget", "0"}), Contains("--budget"));
  CHECK_THAT(failure_of({"-o", "f", "judge"}), Contains("drop --output"));
}

TEST_CASE("help has examples and exit codes") {
  std::string text;
  parse({"--help"}, &text);
  CHECK_THAT(text, Contains("Examples:") && Contains("Exit codes:") && Contains("130") && Contains("--resume"));
  parse({"judge", "--help"}, &text);
  CHECK_THAT(text, Contains("--budget"));
}

TEST_CASE("progress says how far it is and how long it takes") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(59.2) == "1 min 0 s");
  CHECK(duration_text(45) == "45 s");
  CHECK(line_text(0.355, 80, "allreduce of 64K") == " 36 %, about 1 min 20 s left  allreduce of 64K");
  CHECK(line_text(0, -1, "x") == "  0 %  x");
  CHECK_THAT(bar_text(0.5, 10, "x"), Contains("[############            ]"));
}

}  // namespace tutti::tune
