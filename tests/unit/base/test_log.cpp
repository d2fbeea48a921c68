// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/log.hpp"

using tutti::Log;
using tutti::LogLevel;

namespace {

struct Kept final : tutti::LogSink {
  void write(LogLevel level, std::string_view line) noexcept override { lines.emplace_back(level, std::string(line)); }
  std::vector<std::pair<LogLevel, std::string>> lines;
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 65536> piece;
  for (ssize_t got = 0; (got = read(fd, piece.data(), piece.size())) > 0;) text.append(piece.data(), static_cast<size_t>(got));
  return text;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    if (mkdtemp(name_) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ~TemporaryFolder() {
    unlink(file().c_str());
    rmdir(name_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file() const { return std::string(name_) + "/log"; }

 private:
  char name_[32] = "/tmp/tutti-log-XXXXXX";
};

struct Unformattable {};

}  // namespace

template <>
struct fmt::formatter<Unformattable> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const Unformattable&, Context& context) const -> decltype(context.out()) {
    throw std::runtime_error("cannot be written");
  }
};

TEST_CASE("levels: what is off costs no line, what is on has the tag") {
  const auto kept = std::make_shared<Kept>();
  const Log log(kept, LogLevel::info, "rank 3");
  log.error("e {}", 1);
  log.warn("w");
  log.info("i {} {}", "a", 2);
  log.debug("d");
  log.write(LogLevel::trace, "t");
  CHECK(log.enabled(LogLevel::info));
  CHECK_FALSE(log.enabled(LogLevel::debug));
  REQUIRE(kept->lines.size() == 3);
  CHECK(kept->lines[0] == std::pair(LogLevel::error, std::string("[rank 3] e 1")));
  CHECK(kept->lines[1] == std::pair(LogLevel::warn, std::string("[rank 3] w")));
  CHECK(kept->lines[2] == std::pair(LogLevel::info, std::string("[rank 3] i a 2")));
}

TEST_CASE("one call is one line, whatever the arguments hold") {
  const auto kept = std::make_shared<Kept>();
  const Log log(kept, LogLevel::error);
  log.error("from peer: {}", "a\nforged error: line\r\x1b[2J");
  REQUIRE(kept->lines.size() == 1);
  CHECK(kept->lines[0].second == "from peer: a forged error: line  [2J");
}

TEST_CASE("logging never fails its caller: no sink, a formatter that throws, a hook that throws") {
  Log(nullptr, LogLevel::trace).error("nowhere {}", 1);
  const auto kept = std::make_shared<Kept>();
  Log(kept, LogLevel::error).error("{}", Unformattable());
  CHECK(kept->lines.empty());
  const auto throwing = tutti::make_hook_sink([](void*, int, const char*) { throw std::runtime_error("hook"); }, nullptr);
  Log(throwing, LogLevel::error).error("x");
}

TEST_CASE("the embedder's hook gets user pointer, level and a terminated line") {
  std::vector<std::string> lines;
  const auto sink = tutti::make_hook_sink(
      [](void* user, int level, const char* line) {
        static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(level) + " " + line);
      },
      &lines);
  Log(sink, LogLevel::warn, "7").warn("careful {}", "now");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == std::to_string(TUTTI_LOG_WARN) + " [7] careful now");
}

TEST_CASE("a log file is appended to; one that cannot be opened says which and why") {
  const TemporaryFolder folder;
  for (const char* word : {"one", "two"}) {
    errno = EBUSY;
    Log(tutti::make_file_sink(folder.file()), LogLevel::info, "0").info("{}", word);
  }
  std::ifstream file(folder.file());
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  CHECK(text.find("tutti info: [0] one\n") != std::string::npos);
  CHECK(text.find("tutti info: [0] two\n") > text.find("tutti info: [0] one\n"));
  CHECK_THROWS_WITH(tutti::make_file_sink(folder.file() + "/below-a-file"),
                    Catch::Contains("below-a-file") && Catch::Contains("Not a directory"));
}

TEST_CASE("errno is the caller's: a line written does not change it") {
  const TemporaryFolder folder;
  const Log log(tutti::make_file_sink(folder.file()), LogLevel::info);
  errno = EXDEV;
  log.info("x");
  CHECK(errno == EXDEV);
}

TEST_CASE("eight processes at debug level into one pipe: every line is whole") {
  constexpr int kProcesses = 8;
  constexpr int kLines = 400;
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kProcesses; ++rank) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      const Log log(tutti::make_stderr_sink(), LogLevel::debug, std::to_string(rank));
      for (int i = 0; i < kLines; ++i)
        log.debug("line {} {} end", i, std::string(static_cast<size_t>(i), static_cast<char>('a' + rank)));
      _exit(0);
    }
    children.push_back(child);
  }
  close(ends[1]);
  std::istringstream text(read_all(ends[0]));
  close(ends[0]);
  std::map<int, int> next_line;
  for (std::string line; std::getline(text, line);) {
    const size_t tag = line.find(" tutti debug: [");
    REQUIRE(tag == 12);  // after the time
    const int rank = line.at(tag + 15) - '0';
    const int number = next_line[rank]++;
    const std::string rest = std::string(static_cast<size_t>(number), static_cast<char>('a' + rank));
    REQUIRE(line.substr(tag + 15) == fmt::format("{}] line {} {} end", rank, number, rest));
  }
  CHECK(next_line.size() == kProcesses);
  for (const auto& [rank, lines] : next_line) CHECK(lines == kLines);
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("a reader that has gone raises no SIGPIPE and is no reason to stop") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) _exit(2);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    const Log log(tutti::make_stderr_sink(), LogLevel::info);
    log.info("into nothing");
    log.info("and once more");
    sigset_t pending;
    sigpending(&pending);
    _exit(sigismember(&pending, SIGPIPE) == 0 ? 0 : 3);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
