// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "channel.hpp"
#include "rank_stream.hpp"
#include "spawn.hpp"
#include "wire.hpp"

namespace tutti::launch {

/// The part of tuttirun that is the parent of a host's ranks: forked by the launcher on its own host, started through
/// ssh on others. It lives for one job, and ends its ranks when the launcher is gone. As a child subreaper it stays the
/// ancestor of whatever the ranks start, so that nothing can be left behind.
class Agent {
 public:
  Agent(Loop& loop, Fd in, Fd out, const StartState& start, Fd signals);
  /// Until the launcher has said goodbye, or is gone and everything is cleaned up.
  void run();

 private:
  struct Rank {
    uint32_t number = 0;
    pid_t pid = -1;  // also its process group
    Fd pid_fd;
    bool reaped = false;
    bool group_gone = false;
    std::unique_ptr<RankStream> streams[2];
  };
  /// Whom the steps of an ending reach.
  enum class Scope : uint8_t { nobody, leftovers, everything };

  void on_frame(Frame frame);
  void on_close();
  void say_hello();

  void start_job(const JobDescription& job);
  bool start_rank(const JobDescription& job, const std::vector<std::string>& environment, uint32_t local_rank,
                  const CpuList& cpus);
  void watch_rank(Rank& rank, Spawned spawned);
  void pause_output(bool paused);

  void on_signal();
  void reap_all();
  void rank_ended(Rank& rank, int wait_status);
  void after_linger(Rank& rank);

  void begin_end(Scope scope, std::vector<int> ladder);
  void next_step();
  void signal_ranks(int signal);
  void signal_everything(int signal);
  void signal_guarded(int signal);
  bool groups_alive();
  bool guards_alive() const;
  void look_at_guarded();
  void check_finished();

  Loop& loop_;
  const StartState& start_;
  Fd signals_;
  Channel channel_;
  std::pair<Fd, Fd> failures_;
  std::map<uint32_t, SpawnFailure> start_failures_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<RankInput> input_;
  std::set<pid_t> guarded_;
  uint64_t grace_ns_ = 3'000'000'000;
  Scope scope_ = Scope::nobody;
  std::vector<int> ladder_;  // signals still to be sent
  Loop::TimerId step_timer_ = 0;
  bool killing_ = false;
  bool gave_up_ = false;
  bool started_ = false;
  bool launcher_gone_ = false;
  bool guard_over_ = true;
  bool done_ = false;
  bool exit_ = false;
};

/// Runs an agent on two descriptors; does not return before it has finished.
void run_agent(Fd in, Fd out, const StartState& start, const std::vector<int>& signals);

}  // namespace tutti::launch
