// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host_link.hpp"
#include "input.hpp"
#include "options.hpp"
#include "output.hpp"
#include "rendezvous.hpp"
#include "report.hpp"

namespace tutti::launch {

/// One job from the first agent to the last line of the report. All hosts must have answered before the first rank
/// starts, so that a host that does not leaves nothing to be cleaned up on the others.
class Supervisor {
 public:
  Supervisor(Loop& loop, const Options& options, const StartState& start, Fd signals);
  /// Returns the exit code.
  int run(LocalAgent agent);

 private:
  void make_links(LocalAgent agent);
  void connect_more();
  void connect(HostLink& link);
  void on_hello(HostLink& link, const Frame& frame);
  void launch();
  Status start_rendezvous();

  void on_frame(HostLink& link, Frame frame);
  void on_output(const Frame& frame);
  void on_exited(const Frame& frame);
  void on_lost(HostLink& link);
  void on_signals();
  void on_child();
  void handle_signal(int signal);
  void on_output_change();
  void update_flow();

  /// Notes the first reason, and ends everything in order. `first_signal` is what the ranks get before SIGTERM.
  void end_job(Outcome outcome, int first_signal);
  void be_patient();
  void kill_connecting(int signal);
  void note_failed_rank(uint32_t rank);
  bool all_done() const;
  void say_goodbyes();
  int report();
  HostLink* link_of_rank0();

  Loop& loop_;
  const Options& options_;
  const StartState& start_;
  Fd signals_;
  Output output_;
  StandardInput input_;
  std::vector<std::unique_ptr<HostLink>> links_;  // [0] is this host's agent, with or without ranks
  std::vector<RankRecord> ranks_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::string secret_;
  std::string job_id_;
  Outcome outcome_;
  Loop::TimerId patience_timer_ = 0;
  bool ending_ = false;
  bool launched_ = false;
  int interrupts_ = 0;
  bool abandon_ = false;  // a third signal, or nothing helps: leave now
  bool paused_ = false;
};

}  // namespace tutti::launch
