// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "host_link.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent.hpp"
#include "base/types.hpp"
#include "report.hpp"

namespace tutti::launch {

namespace {
/// How long the end of ssh may lag behind the end of its output before the loss is reported without its exit code.
constexpr uint64_t kLagNs = 500'000'000;

bool plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+@%,:=").find(c) != std::string_view::npos;
  });
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

[[noreturn]] void be_local_agent(Fd in, Fd out, const StartState& start) {
  setsid();  // Ctrl-C and hang-ups of the terminal are for the launcher, which ends the job in order
  const int null = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  if (null > STDERR_FILENO) close(null);
  run_agent(std::move(in), std::move(out), start, {SIGCHLD, SIGTERM, SIGINT, SIGHUP});
  _exit(0);
}
}  // namespace

Result<LocalAgent> fork_local_agent(const StartState& start) {
  Result<std::pair<Fd, Fd>> down = make_pipe();
  TUTTI_TRY(down.status());
  Result<std::pair<Fd, Fd>> up = make_pipe();
  TUTTI_TRY(up.status());
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork", errno);
  if (pid == 0) {
    // These two would keep the pipes open after the launcher's death.
    down->second.reset();
    up->first.reset();
    be_local_agent(std::move(down->first), std::move(up->second), start);
  }
  LocalAgent agent;
  agent.pid = pid;
  agent.in = std::move(up->first);
  agent.out = std::move(down->second);
  return agent;
}

std::vector<std::string> agent_command(const std::vector<std::string>& rsh, const std::string& host,
                                       const std::string& path) {
  std::vector<std::string> command;
  bool placed = false;
  for (std::string word : rsh) {
    if (const size_t at = word.find("{host}"); at != std::string::npos) {
      word.replace(at, 6, host);
      placed = true;
    }
    command.push_back(std::move(word));
  }
  if (!placed) command.push_back(host);
  const std::string program = rsh.front().substr(rsh.front().rfind('/') + 1);
  const bool shell_reads = program == "ssh" || program == "rsh";
  command.push_back(shell_reads && !plain(path) ? quoted(path) : path);
  command.emplace_back("--agent");
  return command;
}

HostLink::HostLink(Loop& loop, std::string host, std::vector<uint32_t> numbers, Handlers handlers)
    : name(std::move(host)), ranks(std::move(numbers)), loop_(loop), handlers_(std::move(handlers)) {}

void HostLink::open_channel(Fd in, Fd out) {
  state = State::connecting;
  channel_ = std::make_unique<Channel>(loop_, std::move(in), std::move(out), true,
                                       Channel::Handlers{[this](Frame frame) { handlers_.on_frame(std::move(frame)); },
                                                         [this](const Status& why) { on_close(why); }, nullptr});
}

void HostLink::attach(LocalAgent agent) {
  local = true;
  child_ = agent.pid;
  open_channel(std::move(agent.in), std::move(agent.out));
}

Status HostLink::connect(const std::vector<std::string>& command, const StartState& start) {
  command_ = command;
  Result<Spawned> spawned = spawn_command(command, start);
  TUTTI_TRY(spawned.status());
  child_ = spawned->pid;
  const auto line = [this](std::string_view lines) {
    while (!lines.empty() && (lines.back() == '\n' || lines.back() == '\r')) lines.remove_suffix(1);
    if (lines.empty()) return;
    last_line_ = std::string(lines.substr(lines.rfind('\n') + 1));
    handlers_.on_stderr(lines);
  };
  errors_ = std::make_unique<RankStream>(loop_, std::move(spawned->stderr_end), line, [this] { check_lost(); });
  open_channel(std::move(spawned->stdout_end), std::move(spawned->stdin_end));
  return Status();
}

void HostLink::send(FrameType type, std::string_view payload) {
  if (channel_) channel_->send(type, payload);
}

void HostLink::pause(bool paused) {
  if (channel_) channel_->pause(paused);
}

void HostLink::say_goodbye() {
  if (!channel_) return;
  channel_->send(FrameType::bye);
  channel_->finish_writing();
}

void HostLink::signal_child(int signal) const {
  if (child_running()) kill(local ? child_ : -child_, signal);
}

void HostLink::child_ended(int wait_status) {
  child_status_ = wait_status;
  if (errors_) errors_->end_soon();
  check_lost();
}

void HostLink::on_close(const Status& why) {
  closed_ = true;
  close_reason_ = std::string(why.message());
  if (!why.ok()) signal_child(SIGTERM);
  loop_.after(kLagNs, [this] {
    waited_ = true;
    check_lost();
  });
  check_lost();
}

std::string HostLink::last_words() const {
  std::string words = errors_ ? errors_->unfinished() : std::string();
  if (words.empty()) words = last_line_;
  if (words.empty() && state == State::connecting) {
    words = banner();
    while (!words.empty() && words.back() == '\n') words.pop_back();
    words.erase(0, words.rfind('\n') + 1);
  }
  return words.empty() ? std::string() : fmt::format("; its last words: '{}'", words.substr(0, 200));
}

void HostLink::check_lost() {
  if (!closed_ || state == State::done || state == State::lost) return;
  const bool complete = child_status_ && (!errors_ || errors_->ended());
  if (!complete && !waited_) return;
  std::string end = "closed the connection";
  if (child_status_ && WIFSIGNALED(*child_status_)) {
    end = fmt::format("was killed by signal {} ({})", WTERMSIG(*child_status_), signal_text(WTERMSIG(*child_status_)));
  } else if (child_status_) {
    end = fmt::format("exited with {}", WEXITSTATUS(*child_status_));
  }
  const std::string who = local ? "tuttirun's agent" : command_.front();
  loss_ = fmt::format("host '{}': {} {}{}{}", name, who, end, last_words(),
                      close_reason_.empty() ? "" : " (" + close_reason_ + ")");
  if (state == State::connecting && child_status_ && WIFEXITED(*child_status_) && WEXITSTATUS(*child_status_) == 127) {
    loss_ += fmt::format("; is tuttirun there? see --agent-path (tried {})", command_[command_.size() - 2]);
  }
  state = State::lost;
  handlers_.on_lost();
}

void HostLink::give_up(uint64_t waited_ns) {
  if (state != State::connecting) return;
  loss_ = fmt::format("host '{}': no answer within {} from '{}'{}", name, format_duration_ns(waited_ns),
                      joined(command_), last_words());
  state = State::lost;
  handlers_.on_lost();
}

}  // namespace tutti::launch
