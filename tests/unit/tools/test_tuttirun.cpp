// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "address.hpp"
#include "binding.hpp"
#include "host_link.hpp"
#include "hostlist.hpp"
#include "lines.hpp"
#include "options.hpp"
#include "processes.hpp"
#include "report.hpp"
#include "wire.hpp"

using namespace tutti;
using namespace tutti::launch;

namespace {
Result<Options> parse(std::vector<std::string> words, std::map<std::string, std::string> environment = {}) {
  return parse_command_line(words, [environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

std::vector<std::vector<uint32_t>> placed(const std::string& hosts, uint32_t ranks, bool oversubscribe = false) {
  std::vector<std::vector<uint32_t>> result;
  const std::vector<HostRanks> all = place_ranks(parse_host_list(hosts).value(), ranks, oversubscribe).value();
  for (const HostRanks& host : all) result.push_back(host.ranks);
  return result;
}

RankRecord ended(int wait_status, bool by_us = false) {
  RankRecord record;
  record.host = "h";
  record.pid = 42;
  record.state = RankRecord::State::ended;
  record.exit.wait_status = wait_status;
  record.ended_by_us = by_us;
  return record;
}

using Blocks = std::vector<std::vector<uint32_t>>;
}  // namespace

TEST_CASE("host lists", "[tuttirun]") {
  const HostList hosts = parse_host_list("a:2,b, c:1 ,[fe80::1]:3,::1,a:3").value();
  REQUIRE(hosts.size() == 5);
  CHECK(hosts[0].name == "a");
  CHECK(hosts[0].slots == 5);
  CHECK(hosts[1].slots == 0);
  CHECK(hosts[3].name == "fe80::1");
  CHECK(hosts[3].slots == 3);
  CHECK(hosts[4].name == "::1");
  CHECK(parse_host_list("a,a").value()[0].slots == 2);
  for (const char* bad : {"", "a,", "a:", "a:0", "a:-1", "a:2x", "a:99999999999", "-o:1", "a b", "a;b", "[::1",
                          "[::1]x", "[]:1", "$(x)"}) {
    INFO(bad);
    CHECK(parse_host_list(bad).status().code() == TUTTI_ERR_ARGUMENT);
  }
}

TEST_CASE("host files", "[tuttirun]") {
  const HostList hosts = parse_host_file("# head\na slots=2\r\n\n  b:3 # two\nc", "f").value();
  REQUIRE(hosts.size() == 3);
  CHECK(hosts[0].slots == 2);
  CHECK(hosts[1].slots == 3);
  CHECK(hosts[2].name == "c");
  CHECK(parse_host_file("a\nb cores=2\n", "f").status().message().find("f line 2") == 0);
  CHECK_FALSE(parse_host_file(" \n# x", "f").ok());
}

TEST_CASE("ranks are placed in blocks", "[tuttirun]") {
  CHECK(placed("a:2,b:2", 4) == Blocks{{0, 1}, {2, 3}});
  CHECK(placed("a:2,b:2", 3) == Blocks{{0, 1}, {2}});
  CHECK(placed("a:2,b:2", 2) == Blocks{{0, 1}});
  CHECK(placed("a:2,b:1", 0) == Blocks{{0, 1}, {2}});
  CHECK(placed("a,b,c", 5) == Blocks{{0}, {1, 2}, {3, 4}});
  CHECK(placed("a,b,c", 1) == Blocks{{0}});
  CHECK(placed("a:1,b", 4) == Blocks{{0}, {1, 2, 3}});
  CHECK(placed("a:2,b:1", 7, true) == Blocks{{0, 1, 3, 4, 6}, {2, 5}});
  CHECK_FALSE(place_ranks({{"a", 2}}, 3, false).ok());
  CHECK_FALSE(place_ranks({{"a", 0}}, 0, false).ok());
  for (uint32_t ranks = 1; ranks <= 40; ++ranks) {  // every rank exactly once, whatever the mixture
    for (const char* hosts : {"a", "a,b,c", "a:3,b,c:2,d", "a:1,b:7"}) {
      std::vector<int> seen(ranks);
      for (const auto& block : placed(hosts, ranks, true)) {
        for (const uint32_t rank : block) ++seen.at(rank);
      }
      CHECK(seen == std::vector<int>(ranks, 1));
    }
  }
}

TEST_CASE("command line", "[tuttirun]") {
  const Options options =
      parse({"-np", "3", "-x", "A=b c", "--grace", "500ms", "-H", "localhost", "prog", "-np", "9", "--help"}).value();
  CHECK(options.ranks == 3);
  CHECK(options.command == std::vector<std::string>{"prog", "-np", "9", "--help"});
  CHECK(options.environment == std::vector<std::string>{"A=b c"});
  CHECK(options.grace_ns == 500'000'000);
  CHECK(options.rsh.front() == "ssh");
  CHECK(parse({"-n", "1", "-x", "A", "p"}, {{"A", "v"}}).value().environment == std::vector<std::string>{"A=v"});
  CHECK(parse({"--np", "1", "--", "-odd"}).value().command == std::vector<std::string>{"-odd"});
  CHECK(parse({"-n", "1", "p"}, {{"TUTTI_RSH", "a 'b c'"}}).value().rsh == std::vector<std::string>{"a", "b c"});
  CHECK(parse({"-n", "1", "--rsh", "x", "p"}, {{"TUTTI_RSH", "a"}}).value().rsh == std::vector<std::string>{"x"});
  CHECK(parse({"--agent"}).value().action == Options::Action::agent);
  CHECK_FALSE(parse({"-n", "1", "--unknown", "p"}).ok());
  CHECK_FALSE(parse({"-n", "1", "-x", "MISSING", "p"}).ok());
}

TEST_CASE("words are split as a shell does", "[tuttirun]") {
  CHECK(split_words("  a 'b c' \"d \\\" e\" f\\ g '' h'i'j ").value() ==
        std::vector<std::string>{"a", "b c", "d \" e", "f g", "", "hij"});
  CHECK_FALSE(split_words("a 'b").ok());
}

TEST_CASE("agent command", "[tuttirun]") {
  using Words = std::vector<std::string>;
  CHECK(agent_command({"ssh", "-x"}, "h", "/bin/t") == Words{"ssh", "-x", "h", "/bin/t", "--agent"});
  CHECK(agent_command({"rsh", "me@{host}", "-v"}, "h", "/bin/t") == Words{"rsh", "me@h", "-v", "/bin/t", "--agent"});
  CHECK(agent_command({"/usr/bin/ssh"}, "h", "/my bin/t's")[2] == "'/my bin/t'\\''s'");
  CHECK(agent_command({"ip", "netns", "exec"}, "h", "/my bin/t")[4] == "/my bin/t");
}

TEST_CASE("job descriptions survive the wire", "[tuttirun]") {
  JobDescription job;
  job.job_id = "id";
  job.secret = std::string("\0\n=x", 4);
  job.rendezvous = "tcp://1.2.3.4:5";
  job.directory = "/a b";
  job.size = 7;
  job.ranks = {2, 3, 6};
  job.command = {"p", "", "a\nb"};
  job.environment = {"A==\n'\"", "B="};
  job.grace_ns = 1ull << 40;
  job.bind = BindMode::numa;
  job.verbose = true;
  const std::string bytes = pack(job);
  const JobDescription back = unpack_job(bytes).value();
  CHECK(back.secret == job.secret);
  CHECK(back.ranks == job.ranks);
  CHECK(back.command == job.command);
  CHECK(back.environment == job.environment);
  CHECK(back.grace_ns == job.grace_ns);
  CHECK(back.bind == job.bind);
  CHECK(back.verbose);
  CHECK(pack(back) == bytes);
  for (size_t cut = 0; cut < bytes.size(); ++cut) CHECK_FALSE(unpack_job(std::string_view(bytes).substr(0, cut)).ok());
  CHECK_FALSE(unpack_job(bytes + "x").ok());
  std::string lying = bytes;
  lying[0] = lying[1] = lying[2] = lying[3] = '\xff';  // a length that is not there
  CHECK_FALSE(unpack_job(lying).ok());
}

TEST_CASE("frames are cut from any pieces, after any banner", "[tuttirun]") {
  const std::string stream = "Welcome\n#tuttirun" + std::string(kAgentMagic) + encode(FrameType::hello, "abc") +
                             encode(FrameType::done, "") + encode(FrameType::output, std::string(70000, 'x'));
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, stream.size()}) {
    FrameReader reader(true);
    std::vector<Frame> frames;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      for (auto next = reader.next().value(); next; next = reader.next().value()) frames.push_back(std::move(*next));
    }
    REQUIRE(frames.size() == 3);
    CHECK(frames[0].type == FrameType::hello);
    CHECK(frames[0].payload == "abc");
    CHECK(frames[2].payload.size() == 70000);
    CHECK(reader.banner() == "Welcome\n#tuttirun");
  }
  FrameReader huge(false);
  huge.feed("\xff\xff\xff\xff\x01");
  CHECK_FALSE(huge.next().ok());
  FrameReader endless(true);
  endless.feed(std::string(300 * 1024, 'x'));
  CHECK_FALSE(endless.next().ok());
}

TEST_CASE("only whole lines are passed on", "[tuttirun]") {
  std::vector<std::string> out;
  const LineSplitter::Emit emit = [&](std::string_view bytes) { out.emplace_back(bytes); };
  LineSplitter lines;
  lines.feed("a", emit);
  lines.feed("b\nc\nd", emit);
  lines.feed("", emit);
  lines.feed("e\n", emit);
  lines.feed("tail", emit);
  CHECK(out == std::vector<std::string>{"ab\n"
                                        "c\n",
                                        "de\n"});
  CHECK(lines.held() == "tail");
  lines.finish(emit);
  lines.finish(emit);
  CHECK(out.back() == "tail");
  CHECK(out.size() == 3);
  lines.feed(std::string(LineSplitter::kMaxLineBytes, 'x'), emit);
  CHECK(out.back().size() == LineSplitter::kMaxLineBytes);
}

TEST_CASE("lines are tagged", "[tuttirun]") {
  CHECK(tag_lines("a\n\nb", "[1] ", false) == "[1] a\n[1] \n[1] b");
  CHECK(tag_lines("rest\nb\n", "[1] ", true) == "rest\n[1] b\n");
  CHECK(tag_lines("", "[1] ", false).empty());
}

TEST_CASE("binding from a described machine", "[tuttirun]") {
  // Two NUMA nodes of two cores with two hardware threads each; CPU 3 is not ours.
  const std::filesystem::path root = std::filesystem::temp_directory_path() / fmt::format("tuttirun-cpus-{}", getpid());
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << "\n";
  };
  for (int cpu = 0; cpu < 8; ++cpu) {
    put(fmt::format("devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu),
        fmt::format("{},{}", cpu % 4, cpu % 4 + 4));
  }
  put("devices/system/node/online", "0-1");
  put("devices/system/node/node0/cpulist", "0-1,4-5");
  put("devices/system/node/node1/cpulist", "2-3,6-7");
  const CpuMap map = read_cpu_map({0, 1, 2, 4, 5, 6, 7}, root.string());
  std::filesystem::remove_all(root);
  CHECK(map.cores == std::vector<CpuList>{{0, 4}, {1, 5}, {2, 6}, {7}});
  CHECK(map.numa == std::vector<CpuList>{{0, 1, 4, 5}, {2, 6, 7}});

  CHECK(plan_binding(BindMode::automatic, map, 4).by_local_rank == map.cores);
  CHECK(plan_binding(BindMode::automatic, map, 5).by_local_rank.empty());
  CHECK(plan_binding(BindMode::automatic, map, 5).remark.empty());
  CHECK_FALSE(plan_binding(BindMode::core, map, 5).remark.empty());
  CHECK(plan_binding(BindMode::none, map, 1).by_local_rank.empty());
  const Binding numa = plan_binding(BindMode::numa, map, 5);
  CHECK(numa.by_local_rank == std::vector<CpuList>{map.numa[0], map.numa[0], map.numa[0], map.numa[1], map.numa[1]});
  // No topology files at all: each CPU is a core, all of them one node.
  const CpuMap bare = read_cpu_map({1, 3}, "/nonexistent");
  CHECK(bare.cores == std::vector<CpuList>{{1}, {3}});
  CHECK(bare.numa == std::vector<CpuList>{{1, 3}});
}

TEST_CASE("process trees", "[tuttirun]") {
  CHECK(parse_stat("12 (a b) c) S 7 9 2")->parent == 7);
  CHECK(parse_stat("12 (a b) c) S 7 9 2")->group == 9);
  CHECK_FALSE(parse_stat("12 (z) Z 7 1 2").has_value());
  CHECK_FALSE(parse_stat("garbage").has_value());
  CHECK_FALSE(parse_stat("1 (x)").has_value());
  CHECK_FALSE(parse_stat("1 (x) S 7").has_value());
  const ProcessMap processes = {{2, {1, 2}}, {3, {2, 2}}, {4, {2, 4}}, {5, {4, 4}}, {6, {1, 6}}, {1, {0, 1}}};
  CHECK(descendants(processes, 2) == std::vector<pid_t>{3, 4, 5});
  CHECK(descendants(processes, 5).empty());
  CHECK(descendants({{2, {3, 2}}, {3, {2, 2}}}, 2) == std::vector<pid_t>{3});  // a torn view of /proc must not loop
  CHECK(has_group(processes, 4));
  CHECK_FALSE(has_group(processes, 5));
  CHECK(read_processes().count(getpid()) == 1);
}

TEST_CASE("which address is offered to other hosts", "[tuttirun]") {
  const std::vector<LocalAddress> two = {
      {"lo", "127.0.0.1"}, {"eth0", "10.0.0.5"}, {"ib0", "192.168.1.5"}, {"ib0", "fd00::5"}};
  CHECK(choose_address("ib0", {}, two).value() == "192.168.1.5");
  CHECK(choose_address("10.0.0.0/24", {}, two).value() == "10.0.0.5");
  CHECK(choose_address("fd00::/16", {}, two).value() == "fd00::5");
  CHECK(choose_address("192.168.1.5", {}, two).value() == "192.168.1.5");
  CHECK_FALSE(choose_address("10.1.0.0/16", {}, two).ok());
  CHECK_FALSE(choose_address("10.0.0.0/99", {}, two).ok());
  CHECK_FALSE(choose_address("ib", {}, two).ok());  // exact names only
  CHECK(choose_address("", {"", "9.9.9.9", "192.168.1.5"}, two).value() == "192.168.1.5");
  CHECK(choose_address("", {"fd00:0:0::5"}, two).value() == "fd00::5");
  CHECK_FALSE(choose_address("", {"127.0.0.1"}, two).ok());
  CHECK(choose_address("", {}, {{"lo", "127.0.0.1"}, {"eth0", "10.0.0.5"}}).value() == "10.0.0.5");
  CHECK(choose_address("", {}, {{"lo", "127.0.0.1"}, {"lo", "10.9.9.1"}}).value() == "10.9.9.1");
  CHECK_FALSE(choose_address("", {}, {{"lo", "127.0.0.1"}}).ok());
  CHECK(is_this_host("localhost", "me", two));
  CHECK(is_this_host("127.0.0.5", "me", two));
  CHECK(is_this_host("fd00:0::5", "me", two));
  CHECK(is_this_host("me", "me", two));
  CHECK_FALSE(is_this_host("me.example", "me", two));  // the part before the dot is no identity
}

TEST_CASE("exit codes and the report", "[tuttirun]") {
  Outcome outcome;
  std::vector<RankRecord> ranks = {ended(0), ended(SIGTERM, true), ended(3 << 8)};
  outcome.cause = Outcome::Cause::rank;
  outcome.rank = 2;
  CHECK(exit_code(outcome, ranks) == 3);
  CHECK(last_line(outcome, ranks, "p", "") == "rank 2 exited with 3 (host h, pid 42)");
  CHECK(last_line(outcome, ranks, "p", "d/rank-2.err").find("d/rank-2.err") != std::string::npos);
  const std::string table = make_table(outcome, ranks, "p");
  CHECK(table.find("exited with 3   <- first failure") != std::string::npos);
  CHECK(table.find("SIGTERM") != std::string::npos);
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  outcome.rank = 1;
  CHECK(exit_code(outcome, ranks) == 128 + SIGTERM);
  ranks[1].exit.start_errno = ENOENT;
  ranks[1].exit.start_step = "run";
  CHECK(exit_code(outcome, ranks) == kExitNotFound);
  CHECK(describe_end(ranks[1], "p") == "cannot run 'p': No such file or directory");
  ranks[1].exit.start_errno = EACCES;
  CHECK(exit_code(outcome, ranks) == kExitCannotRun);

  outcome.cause = Outcome::Cause::signal;
  outcome.signal = SIGINT;
  CHECK(exit_code(outcome, ranks) == 130);
  CHECK(exit_code(outcome, {ended(0), ended(0)}) == 0);
  outcome.cause = Outcome::Cause::none;
  CHECK(exit_code(outcome, {ended(0)}) == 0);
  CHECK(exit_code(outcome, {ended(0), RankRecord{}}) == kExitLauncher);  // a rank nobody has heard of is no success

  std::vector<RankRecord> many(1000, ended(SIGTERM, true));
  many[700] = ended(9);
  outcome.cause = Outcome::Cause::rank;
  outcome.rank = 700;
  const std::string cut = make_table(outcome, many, "p");
  CHECK(std::count(cut.begin(), cut.end(), '\n') == 3);
  CHECK(cut.find("999 more ranks") != std::string::npos);
}
