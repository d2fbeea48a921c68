// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "agent.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "processes.hpp"

namespace tutti::launch {

namespace {
/// How long the pipes of a rank that has ended may stay open for what it started (`prog > >(tee log)`).
constexpr uint64_t kLingerNs = 100'000'000;
/// How long processes may take to vanish after SIGKILL before they are reported instead of waited for.
constexpr uint64_t kAfterKillNs = 5'000'000'000;
constexpr uint64_t kLookNs = 50'000'000;
constexpr uint64_t kGuardExtraNs = 1'000'000'000;
}  // namespace

Agent::Agent(Loop& loop, Fd in, Fd out, const StartState& start, Fd signals)
    : loop_(loop),
      start_(start),
      signals_(std::move(signals)),
      channel_(loop, std::move(in), std::move(out), false,
               {[this](Frame frame) { on_frame(std::move(frame)); }, [this](const Status&) { on_close(); },
                [this] { pause_output(false); }}) {
  loop_.watch(signals_.get(), EPOLLIN, [this](uint32_t) { on_signal(); });
}

void Agent::run() {
  say_hello();
  while (!exit_) loop_.run_once();
}

void Agent::say_hello() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const char* const connection = getenv("SSH_CONNECTION");
  Hello hello;
  hello.pid = static_cast<uint32_t>(getpid());
  hello.host_name = name;
  if (connection != nullptr) hello.launcher_address = std::string(connection, strcspn(connection, " "));
  channel_.send_raw(kAgentMagic);
  channel_.send(FrameType::hello, pack(hello));
}

void Agent::on_frame(Frame frame) {
  Unpacker in(frame.payload);
  switch (frame.type) {
    case FrameType::job: {
      const Result<JobDescription> job = unpack_job(frame.payload);
      if (!job.ok()) return channel_.send(FrameType::failed, job.status().message());
      return start_job(job.value());
    }
    case FrameType::stdin_data:
      if (input_) return input_->write(frame.payload);
      return channel_.send(FrameType::stdin_credit, Packer().u32(static_cast<uint32_t>(frame.payload.size())).take());
    case FrameType::stdin_end:
      if (input_) input_->finish();
      return;
    case FrameType::signal:
      return signal_ranks(static_cast<int>(in.u32()));
    case FrameType::end: {
      started_ = true;  // a job that still comes is not begun
      const int first = static_cast<int>(in.u32());
      return begin_end(Scope::everything, first == SIGTERM ? std::vector<int>{SIGTERM, SIGKILL}
                                                           : std::vector<int>{first, SIGTERM, SIGKILL});
    }
    case FrameType::kill:
      started_ = true;
      return begin_end(Scope::everything, {SIGKILL});
    case FrameType::guard:
      guarded_.insert(static_cast<pid_t>(in.u32()));
      grace_ns_ = in.u64();
      return;
    case FrameType::unguard:
      guarded_.erase(static_cast<pid_t>(in.u32()));
      return;
    case FrameType::bye:
      exit_ = done_ || !started_;
      return;
    default:
      return;
  }
}

/// End of file while work is left: the launcher was killed, or the line to it broke.
void Agent::on_close() {
  if (done_ && guarded_.empty()) {
    exit_ = true;
    return;
  }
  done_ = false;  // at least the ways to other hosts are left
  launcher_gone_ = true;
  started_ = true;
  guard_over_ = guarded_.empty();
  pause_output(false);
  signal_guarded(SIGTERM);
  loop_.after(grace_ns_ + kGuardExtraNs, [this] {
    signal_guarded(SIGKILL);
    guard_over_ = true;
    check_finished();
  });
  begin_end(Scope::everything, {SIGTERM, SIGKILL});
  if (!exit_) look_at_guarded();
}

/// Nobody tells us of the ends of processes that are not our children, so for these last seconds we have to look.
void Agent::look_at_guarded() {
  check_finished();
  if (!exit_) loop_.after(kLookNs, [this] { look_at_guarded(); });
}

void Agent::start_job(const JobDescription& job) {
  if (started_) return;
  started_ = true;
  grace_ns_ = job.grace_ns;
  if (!job.directory.empty() && chdir(job.directory.c_str()) != 0) {
    return channel_.send(FrameType::failed, fmt::format("cannot change to the directory '{}': {}; say --chdir DIR",
                                                        job.directory, strerror(errno)));
  }
  Result<std::pair<Fd, Fd>> failures = make_pipe();
  if (!failures.ok()) return channel_.send(FrameType::failed, failures.status().message());
  failures_ = std::move(failures).value();
  (void)set_nonblocking(failures_.first.get());

  const uint32_t count = static_cast<uint32_t>(job.ranks.size());
  const Binding binding = plan_binding(job.bind, read_cpu_map(allowed_cpus()), count);
  if (!binding.remark.empty()) channel_.send(FrameType::note, binding.remark);
  // The launcher's environment goes over that of this host: what exists only here (a session's directories) stays.
  const std::vector<std::string> environment = merge_environment(current_environment(), job.environment, {});
  for (uint32_t i = 0; i < count; ++i) {
    const CpuList cpus = binding.by_local_rank.empty() ? CpuList{} : binding.by_local_rank[i];
    if (!start_rank(job, environment, i, cpus)) return;
    if (job.verbose) {
      const std::string where = cpus.empty() ? "not bound" : "on CPUs " + format_cpu_list(cpus);
      channel_.send(FrameType::note, fmt::format("rank {} is process {}, {}", job.ranks[i], ranks_.back()->pid, where));
    }
  }
}

bool Agent::start_rank(const JobDescription& job, const std::vector<std::string>& environment, uint32_t local_rank,
                       const CpuList& cpus) {
  SpawnPlan plan;
  plan.rank = job.ranks[local_rank];
  plan.with_stdin = plan.rank == 0;
  plan.cpus = cpus;
  plan.command = job.command;
  plan.secret = job.secret;
  plan.secret_variable = "TUTTI_SECRET_FD";
  plan.environment = merge_environment(
      environment,
      {"TUTTI_LAUNCHER=tuttirun", fmt::format("TUTTI_RANK={}", plan.rank), fmt::format("TUTTI_SIZE={}", job.size),
       fmt::format("TUTTI_LOCAL_RANK={}", local_rank), fmt::format("TUTTI_LOCAL_SIZE={}", job.ranks.size()),
       fmt::format("TUTTI_JOB_ID={}", job.job_id), fmt::format("TUTTI_RENDEZVOUS={}", job.rendezvous)},
      // Beside other secrets, what launchers around us told their process, and not ours: a rank that sees these was started by
      // a launcher inside this job.
      {"TUTTI_SECRET", "TUTTI_SECRET_FILE", "TUTTI_SECRET_FD", "PMI_FD", "PMI_PORT", "PMIX_RANK", "PMIX_NAMESPACE",
       "TORCHELASTIC_RUN_ID"});
  Result<Spawned> spawned = spawn_rank(plan, start_, failures_.second.get());
  if (!spawned.ok()) {
    channel_.send(FrameType::failed,
                  spawned.status().with_context(fmt::format("cannot start rank {}", plan.rank)).message());
    return false;
  }
  auto rank = std::make_unique<Rank>();
  rank->number = plan.rank;
  watch_rank(*rank, std::move(spawned).value());
  channel_.send(FrameType::started, Packer().u32(plan.rank).u32(static_cast<uint32_t>(rank->pid)).take());
  ranks_.push_back(std::move(rank));
  return true;
}

void Agent::watch_rank(Rank& rank, Spawned spawned) {
  rank.pid = spawned.pid;
  rank.pid_fd = std::move(spawned.pid_fd);
  Rank* const self = &rank;
  if (rank.pid_fd.valid()) {
    // SIGCHLD alone would do, but epoll hands pidfds out in the order of the deaths: that tells which failure was
    // first.
    loop_.watch(rank.pid_fd.get(), EPOLLIN, [this, self](uint32_t) {
      int status = 0;
      if (!self->reaped && waitpid(self->pid, &status, WNOHANG) == self->pid) rank_ended(*self, status);
    });
  }
  Fd ends[2] = {std::move(spawned.stdout_end), std::move(spawned.stderr_end)};
  for (uint8_t stream = 1; stream <= 2; ++stream) {
    const auto emit = [this, number = rank.number, stream](std::string_view lines) {
      std::string payload = Packer().u32(number).u8(stream).take();
      payload.append(lines);
      channel_.send(FrameType::output, payload);
      if (channel_.congested()) pause_output(true);
    };
    rank.streams[stream - 1] =
        std::make_unique<RankStream>(loop_, std::move(ends[stream - 1]), emit, [this] { check_finished(); });
  }
  if (spawned.stdin_end.valid()) {
    input_ = std::make_unique<RankInput>(loop_, std::move(spawned.stdin_end), [this](size_t bytes) {
      channel_.send(FrameType::stdin_credit, Packer().u32(static_cast<uint32_t>(bytes)).take());
    });
  }
}

void Agent::pause_output(bool paused) {
  for (const auto& rank : ranks_) {
    for (const auto& stream : rank->streams) stream->pause(paused && !launcher_gone_);
  }
}

void Agent::on_signal() {
  while (const int signal = read_signal(signals_.get())) {
    if (signal == SIGCHLD) {
      loop_.defer([this] { reap_all(); });  // after the pidfds of this round, which know the order
      continue;
    }
    channel_.send(FrameType::note,
                  fmt::format("the agent got signal {} ({}) and ends its ranks", signal, strsignal(signal)));
    begin_end(Scope::everything, {SIGTERM, SIGKILL});
  }
}

void Agent::reap_all() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    const auto same = [pid](const auto& rank) { return rank->pid == pid && !rank->reaped; };
    if (const auto found = std::find_if(ranks_.begin(), ranks_.end(), same); found != ranks_.end())
      rank_ended(**found, status);
  }
  if (killing_) signal_everything(SIGKILL);  // what was forked while the last round of signals went out
  check_finished();
}

void Agent::rank_ended(Rank& rank, int wait_status) {
  rank.reaped = true;
  if (rank.pid_fd.valid()) loop_.forget(rank.pid_fd.get());
  rank.pid_fd.reset();
  SpawnFailure failure{};
  while (read(failures_.first.get(), &failure, sizeof failure) == static_cast<ssize_t>(sizeof failure)) {
    failure.step[sizeof failure.step - 1] = '\0';
    start_failures_[failure.rank] = failure;
  }
  ExitReport report{rank.number, wait_status, 0, ""};
  if (const auto found = start_failures_.find(rank.number); found != start_failures_.end()) {
    report.start_errno = found->second.error_number;
    report.start_step = found->second.step;
  }
  channel_.send(FrameType::exited, pack(report));
  if (rank.number == 0 && input_) input_->close();
  loop_.after(kLingerNs, [this, &rank] { after_linger(rank); });
  check_finished();
}

void Agent::after_linger(Rank& rank) {
  for (const auto& stream : rank.streams) stream->end_soon();
  if (scope_ == Scope::nobody && std::all_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r->reaped; }) &&
      groups_alive()) {
    begin_end(Scope::leftovers, {SIGTERM, SIGKILL});
  }
  check_finished();
}

void Agent::begin_end(Scope scope, std::vector<int> ladder) {
  const bool at_once = ladder.front() == SIGKILL;
  if (scope_ >= scope && !at_once) return;  // already under way
  if (killing_ && scope_ == scope) return;
  scope_ = scope;
  ladder_ = std::move(ladder);
  loop_.cancel(step_timer_);
  next_step();
}

void Agent::next_step() {
  if (ladder_.empty()) {
    gave_up_ = true;
    return check_finished();
  }
  const int signal = ladder_.front();
  ladder_.erase(ladder_.begin());
  killing_ = signal == SIGKILL;
  if (signal == SIGTERM || signal == SIGKILL) {
    signal_everything(signal);
  } else {
    signal_ranks(signal);
  }
  if (!killing_) signal_ranks(SIGCONT);  // a stopped process would not see it
  step_timer_ = loop_.after(killing_ ? kAfterKillNs : grace_ns_, [this] { next_step(); });
  check_finished();
}

void Agent::signal_ranks(int signal) {
  for (const auto& rank : ranks_) {
    if (rank->group_gone) continue;
    if (kill(-rank->pid, signal) != 0 && errno == ESRCH && rank->reaped) rank->group_gone = true;
  }
}

void Agent::signal_everything(int signal) {
  signal_ranks(signal);
  if (scope_ != Scope::everything) return;
  std::set<pid_t> reached;
  for (const auto& rank : ranks_) reached.insert(rank->pid);
  for (const pid_t pid : descendants(read_processes(), getpid())) {
    // Members of the ranks' groups have it already; a second TERM could break an orderly end.
    if (signal == SIGKILL || reached.count(getpgid(pid)) == 0) kill(pid, signal);
  }
}

void Agent::signal_guarded(int signal) {
  for (const pid_t group : guarded_) kill(-group, signal);
}

bool Agent::guards_alive() const {
  // They are somebody else's children now, who may take his time to reap them.
  const ProcessMap processes = read_processes();
  return std::any_of(guarded_.begin(), guarded_.end(), [&](pid_t group) { return has_group(processes, group); });
}

bool Agent::groups_alive() {
  bool alive = false;
  for (const auto& rank : ranks_) {
    if (rank->group_gone) continue;
    // Gone for good only once the rank is reaped: then the number may belong to a stranger soon.
    if (rank->reaped && !group_alive(rank->pid)) rank->group_gone = true;
    if (!rank->group_gone) alive = true;
  }
  return alive;
}

void Agent::check_finished() {
  if (done_ || !started_ || (ranks_.empty() && scope_ == Scope::nobody)) return;
  for (const auto& rank : ranks_) {
    if (!rank->reaped && !gave_up_) return;
  }
  if (groups_alive() && !gave_up_) return;
  if (scope_ == Scope::everything && !gave_up_ && !descendants(read_processes(), getpid()).empty()) {
    if (ladder_.empty()) return;
    // The ranks are gone; what they left in sessions of its own has had its TERM.
    ladder_ = {SIGKILL};
    loop_.cancel(step_timer_);
    return next_step();
  }
  for (const auto& rank : ranks_) {
    if (!launcher_gone_ && !gave_up_ &&
        std::any_of(std::begin(rank->streams), std::end(rank->streams),
                    [](const auto& stream) { return !stream->ended(); }))
      return;
  }
  if (gave_up_) channel_.send(FrameType::note, "some processes did not vanish after SIGKILL");
  if (launcher_gone_ && !guard_over_ && guards_alive()) return;
  done_ = true;
  loop_.cancel(step_timer_);
  channel_.send(FrameType::done);
  exit_ = launcher_gone_;
}

void run_agent(Fd in, Fd out, const StartState& start, const std::vector<int>& signals) {
  // Names that `pkill tuttirun` does not match: somebody who kills the launcher so should not hit its cleaner as well.
  prctl(PR_SET_NAME, "tutti-agent");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  Result<Fd> descriptor = signal_descriptor(signals);
  if (!descriptor.ok()) return;
  Loop loop;
  Agent agent(loop, std::move(in), std::move(out), start, std::move(descriptor).value());
  agent.run();
}

}  // namespace tutti::launch
