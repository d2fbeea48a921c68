// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "channel.hpp"
#include "rank_stream.hpp"
#include "spawn.hpp"

namespace tutti::launch {

/// The agent of this host: forked before the launcher has a loop or a thread.
struct LocalAgent {
  pid_t pid = -1;
  Fd in;   // its frames
  Fd out;  // frames for it
};
Result<LocalAgent> fork_local_agent(const StartState& start);

/// The words that start an agent on `host`: {host} in a word is replaced, else the host follows the last word. A path
/// with odd characters is quoted when a remote shell will read it (ssh, rsh).
std::vector<std::string> agent_command(const std::vector<std::string>& rsh, const std::string& host,
                                       const std::string& path);

/// The launcher's end of one host: the process that leads there (our own agent, or ssh) and the frames to and from its
/// agent.
class HostLink {
 public:
  enum class State : uint8_t {
    waiting,     // not begun
    connecting,  // no greeting yet
    ready,       // the agent has greeted and waits for the job
    running,     // it has the job
    done,        // it has nothing left to do
    lost,        // it is gone, or never came
  };
  struct Handlers {
    std::function<void(Frame)> on_frame;
    std::function<void()> on_lost;                    // once; the reason is in loss()
    std::function<void(std::string_view)> on_stderr;  // lines that ssh itself printed
  };

  HostLink(Loop& loop, std::string name, std::vector<uint32_t> ranks, Handlers handlers);
  void attach(LocalAgent agent);
  Status connect(const std::vector<std::string>& command, const StartState& start);

  void send(FrameType type, std::string_view payload = {});
  void pause(bool paused);
  /// The child was reaped.
  void child_ended(int wait_status);
  /// No answer came in time.
  void give_up(uint64_t waited_ns);
  /// For the process that leads to the host (its session) when frames do not help any more.
  void signal_child(int signal) const;
  void say_goodbye();

  const std::string name;
  const std::vector<uint32_t> ranks;
  State state = State::waiting;
  bool local = false;
  std::string launcher_address;  // as the agent's host saw us
  pid_t child() const { return child_; }
  bool child_running() const { return child_ > 0 && !child_status_; }
  const std::string& loss() const { return loss_; }
  std::string banner() const { return channel_ ? channel_->banner() : std::string(); }

 private:
  void open_channel(Fd in, Fd out);
  void on_close(const Status& why);
  void check_lost();
  std::string last_words() const;

  Loop& loop_;
  Handlers handlers_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<RankStream> errors_;
  std::vector<std::string> command_;
  pid_t child_ = -1;
  std::optional<int> child_status_;
  bool closed_ = false;
  bool waited_ = false;
  std::string close_reason_;
  std::string last_line_;
  std::string loss_;
};

}  // namespace tutti::launch
