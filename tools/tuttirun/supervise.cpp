// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "supervise.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "address.hpp"
#include "base/types.hpp"
#include "processes.hpp"

namespace tutti::launch {

namespace {
/// So many hosts are being connected at a time: sshd and the network dislike a thousand at once.
constexpr size_t kMaxConnecting = 64;
/// After the ladder of every agent has ended, this long for their answers.
constexpr uint64_t kExtraNs = 8'000'000'000;
constexpr uint64_t kGoodbyeNs = 2'000'000'000;
constexpr uint64_t kAfterKillNs = 2'000'000'000;
constexpr size_t kResumeBytes = Output::kHighWater / 4;

std::string own_path() {
  std::string path(4096, '\0');
  const ssize_t count = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return path.empty() ? "tuttirun" : path;
}

std::string own_host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}
}  // namespace

Supervisor::Supervisor(Loop& loop, const Options& options, const StartState& start, Fd signals)
    : loop_(loop),
      options_(options),
      start_(start),
      signals_(std::move(signals)),
      output_(loop, {options.tag_output, options.output_directory}),
      input_(loop, {[this](std::string_view bytes) { link_of_rank0()->send(FrameType::stdin_data, bytes); },
                    [this] { link_of_rank0()->send(FrameType::stdin_end); }}),
      ranks_(options.ranks),
      secret_(make_secret()),
      job_id_(make_job_id()) {
  output_.on_change = [this] { on_output_change(); };
  loop_.watch(signals_.get(), EPOLLIN, [this](uint32_t) { on_signals(); });
}

int Supervisor::run(LocalAgent agent) {
  if (output_.to_files()) {
    if (const Status opened = output_.open_files(options_.ranks); !opened.ok()) {
      output_.say(opened.message());
      kill(agent.pid, SIGKILL);  // it has no ranks yet
      return kExitUsage;
    }
  }
  make_links(std::move(agent));
  connect_more();
  while (!all_done() && !abandon_) loop_.run_once();
  loop_.cancel(patience_timer_);
  say_goodbyes();
  const int code = report();
  while (output_.pending() > 0 && !abandon_) loop_.run_once();
  return code;
}

void Supervisor::make_links(LocalAgent agent) {
  const std::vector<LocalAddress> own = local_addresses();
  const std::string host_name = own_host_name();
  std::vector<uint32_t> here;
  std::vector<HostRanks> remote;
  for (const HostRanks& host : options_.hosts) {
    const bool local = is_this_host(host.name, host_name, own);
    for (const uint32_t rank : host.ranks)
      ranks_[rank].host = local && host.name == "localhost" ? host_name : host.name;
    if (local) {
      here.insert(here.end(), host.ranks.begin(), host.ranks.end());
    } else {
      remote.push_back(host);
    }
  }
  const auto add = [this](std::string name, std::vector<uint32_t> ranks) {
    const size_t index = links_.size();
    HostLink::Handlers handlers;
    handlers.on_frame = [this, index](Frame frame) { on_frame(*links_[index], std::move(frame)); };
    handlers.on_lost = [this, index] { on_lost(*links_[index]); };
    handlers.on_stderr = [this, name](std::string_view lines) { output_.say_from(name, lines); };
    links_.push_back(std::make_unique<HostLink>(loop_, std::move(name), std::move(ranks), std::move(handlers)));
  };
  std::sort(here.begin(), here.end());
  add(host_name, std::move(here));
  for (HostRanks& host : remote) add(std::move(host.name), std::move(host.ranks));
  links_[0]->attach(std::move(agent));
}

void Supervisor::connect_more() {
  size_t connecting = 0;
  for (const auto& link : links_) {
    if (!link->local && link->state == HostLink::State::connecting) ++connecting;
  }
  for (const auto& link : links_) {
    if (connecting >= kMaxConnecting || ending_) return;
    if (link->state != HostLink::State::waiting) continue;
    connect(*link);
    ++connecting;
  }
}

void Supervisor::connect(HostLink& link) {
  const std::string path = options_.agent_path.empty() ? own_path() : options_.agent_path;
  const std::vector<std::string> command = agent_command(options_.rsh, link.name, path);
  if (const Status begun = link.connect(command, start_); !begun.ok()) {
    Outcome outcome;
    outcome.cause = Outcome::Cause::launcher;
    outcome.text = fmt::format("host '{}': {}", link.name, begun.message());
    return end_job(std::move(outcome), SIGTERM);
  }
  if (options_.verbose) output_.say(fmt::format("connecting to host '{}' with {}", link.name, command.front()));
  // Whatever leads to other hosts must not outlive a launcher that is killed either.
  links_[0]->send(FrameType::guard, Packer().u32(static_cast<uint32_t>(link.child())).u64(options_.grace_ns).take());
  HostLink* const self = &link;
  loop_.after(options_.launch_timeout_ns, [this, self] { self->give_up(options_.launch_timeout_ns); });
}

void Supervisor::on_hello(HostLink& link, const Frame& frame) {
  const Result<Hello> hello = unpack_hello(frame.payload);
  if (!hello.ok() || link.state != HostLink::State::connecting) return;
  link.state = HostLink::State::ready;
  link.launcher_address = hello->launcher_address;
  if (options_.verbose && !link.local) {
    output_.say(fmt::format("host '{}' answers: {}, agent {}", link.name, hello->host_name, hello->pid));
    if (!link.banner().empty()) output_.say_from(link.name, link.banner());
  }
  if (ending_) {
    link.state = HostLink::State::done;  // it came too late and has begun nothing
    return;
  }
  connect_more();
  const auto is_ready = [](const auto& other) { return other->state == HostLink::State::ready; };
  if (std::all_of(links_.begin(), links_.end(), is_ready)) launch();
}

Status Supervisor::start_rendezvous() {
  std::string address = "127.0.0.1";
  if (links_.size() > 1) {
    std::vector<std::string> seen;
    for (const auto& link : links_) {
      if (!link->local) seen.push_back(link->launcher_address);
    }
    Result<std::string> chosen = choose_address(options_.interface, seen, local_addresses());
    TUTTI_TRY(chosen.status());
    address = std::move(chosen).value();
  }
  Result<std::unique_ptr<Rendezvous>> started =
      Rendezvous::start(loop_, address, secret_, job_id_, [this](std::string_view line) { output_.say(line); });
  TUTTI_TRY(started.status());
  rendezvous_ = std::move(started).value();
  return Status();
}

void Supervisor::launch() {
  if (const Status met = start_rendezvous(); !met.ok()) {
    Outcome outcome;
    outcome.cause = Outcome::Cause::launcher;
    outcome.text = std::string(met.message());
    return end_job(std::move(outcome), SIGTERM);
  }
  launched_ = true;
  JobDescription job;
  job.job_id = job_id_;
  job.secret = secret_;
  job.rendezvous = rendezvous_->url();
  job.size = options_.ranks;
  job.command = options_.command;
  job.environment = merge_environment(current_environment(), options_.environment, {});
  job.grace_ns = options_.grace_ns;
  job.bind = options_.bind;
  job.verbose = options_.verbose;
  char directory[4096] = "";
  job.directory = !options_.directory.empty()                      ? options_.directory
                  : getcwd(directory, sizeof directory) != nullptr ? directory
                                                                   : "";
  if (options_.verbose)
    output_.say(fmt::format("job {}: {} ranks, rendezvous at {}", job_id_, options_.ranks, job.rendezvous));
  for (const auto& link : links_) {
    if (link->ranks.empty()) {
      link->state = HostLink::State::done;  // only guards the way to the others
      continue;
    }
    link->state = HostLink::State::running;
    job.ranks = link->ranks;
    link->send(FrameType::job, pack(job));
  }
  input_.start();
  if (options_.timeout_ns > 0) {
    loop_.after(options_.timeout_ns, [this] {
      Outcome outcome;
      outcome.cause = Outcome::Cause::timeout;
      outcome.text = fmt::format("the job did not end within {} (--timeout)", format_duration_ns(options_.timeout_ns));
      end_job(std::move(outcome), SIGTERM);
    });
  }
}

HostLink* Supervisor::link_of_rank0() {
  const auto has_rank0 = [](const auto& link) {
    return std::find(link->ranks.begin(), link->ranks.end(), 0u) != link->ranks.end();
  };
  return std::find_if(links_.begin(), links_.end(), has_rank0)->get();
}

void Supervisor::on_frame(HostLink& link, Frame frame) {
  switch (frame.type) {
    case FrameType::hello:
      return on_hello(link, frame);
    case FrameType::started: {
      Unpacker in(frame.payload);
      const uint32_t rank = in.u32();
      if (rank >= ranks_.size()) return;
      ranks_[rank].pid = in.u32();
      ranks_[rank].state = RankRecord::State::running;
      return;
    }
    case FrameType::output:
      return on_output(frame);
    case FrameType::exited:
      return on_exited(frame);
    case FrameType::stdin_credit:
      return input_.credit(Unpacker(frame.payload).u32());
    case FrameType::note:
      return output_.say(fmt::format("host '{}': {}", link.name, frame.payload));
    case FrameType::failed: {
      Outcome outcome;
      outcome.cause = Outcome::Cause::launcher;
      outcome.text = fmt::format("host '{}': {}", link.name, frame.payload);
      return end_job(std::move(outcome), SIGTERM);
    }
    case FrameType::done:
      link.state = HostLink::State::done;
      return;
    default:
      return;
  }
}

void Supervisor::on_output(const Frame& frame) {
  Unpacker in(frame.payload);
  const uint32_t rank = in.u32();
  const int stream = in.u8();
  if (!in.ok() || rank >= ranks_.size()) return;
  output_.write_rank(rank, stream, in.rest());
  update_flow();
}

void Supervisor::on_exited(const Frame& frame) {
  Result<ExitReport> exit = unpack_exit(frame.payload);
  if (!exit.ok() || exit->rank >= ranks_.size()) return;
  const uint32_t rank = exit->rank;
  ranks_[rank].state = RankRecord::State::ended;
  ranks_[rank].exit = std::move(exit).value();
  ranks_[rank].ended_by_us = ending_;
  if (rank == 0) input_.stop();
  if (failed(ranks_[rank])) note_failed_rank(rank);
}

void Supervisor::note_failed_rank(uint32_t rank) {
  Outcome outcome;
  outcome.cause = Outcome::Cause::rank;
  outcome.rank = rank;
  if (!options_.keep_going) return end_job(std::move(outcome), SIGTERM);
  if (outcome_.cause == Outcome::Cause::none) outcome_ = std::move(outcome);
}

void Supervisor::on_lost(HostLink& link) {
  for (const uint32_t rank : link.ranks) {
    if (ranks_[rank].state != RankRecord::State::running) continue;
    ranks_[rank].state = RankRecord::State::lost;
    ranks_[rank].ended_by_us = ending_;
  }
  link.signal_child(SIGTERM);
  loop_.after(options_.grace_ns, [&link] { link.signal_child(SIGKILL); });
  Outcome outcome;
  outcome.cause = Outcome::Cause::launcher;
  outcome.text = link.loss();
  if (outcome_.cause == Outcome::Cause::none) {
    for (const auto& other : links_) {
      if (!other->local && other->state == HostLink::State::connecting)
        outcome.text += fmt::format("; no answer yet from '{}' either", other->name);
    }
  }
  end_job(std::move(outcome), SIGTERM);
}

void Supervisor::on_signals() {
  while (const int signal = read_signal(signals_.get())) {
    if (signal == SIGCHLD) {
      on_child();
    } else {
      handle_signal(signal);
    }
  }
}

void Supervisor::on_child() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    for (const auto& link : links_) {
      if (link->child() != pid || !link->child_running()) continue;
      if (!link->local) links_[0]->send(FrameType::unguard, Packer().u32(static_cast<uint32_t>(pid)).take());
      link->child_ended(status);
    }
  }
}

void Supervisor::handle_signal(int signal) {
  const auto forward = [this](int number) {
    for (const auto& link : links_) link->send(FrameType::signal, Packer().u32(static_cast<uint32_t>(number)).take());
  };
  switch (signal) {
    case SIGTSTP:
      forward(SIGSTOP);
      raise(SIGSTOP);
      return;
    case SIGCONT:
      forward(SIGCONT);
      input_.look_again();
      return;
    case SIGUSR1:
    case SIGUSR2:
      return forward(signal);
    default:
      break;
  }
  ++interrupts_;
  if (interrupts_ == 1) {
    Outcome outcome;
    outcome.cause = Outcome::Cause::signal;
    outcome.signal = signal;
    if (ending_) return forward(signal);  // it ends already; a second one makes it quick
    return end_job(std::move(outcome), signal);
  }
  if (interrupts_ > 2) {
    abandon_ = true;
    return;
  }
  for (const auto& link : links_) link->send(FrameType::kill);
  kill_connecting(SIGKILL);
  loop_.after(kAfterKillNs, [this] { abandon_ = true; });
}

void Supervisor::kill_connecting(int signal) {
  for (const auto& link : links_) {
    if (!link->local && (link->state == HostLink::State::connecting || link->state == HostLink::State::lost))
      link->signal_child(signal);
  }
}

void Supervisor::end_job(Outcome outcome, int first_signal) {
  if (outcome_.cause == Outcome::Cause::none) outcome_ = std::move(outcome);
  if (ending_) return;
  ending_ = true;
  input_.stop();
  for (const auto& link : links_) {
    if (link->state == HostLink::State::waiting) link->state = HostLink::State::lost;
    if (link->state == HostLink::State::ready) link->state = HostLink::State::done;  // it has begun nothing
    if (link->state == HostLink::State::running)
      link->send(FrameType::end, Packer().u32(static_cast<uint32_t>(first_signal)).take());
  }
  kill_connecting(SIGTERM);
  loop_.after(options_.grace_ns, [this] { kill_connecting(SIGKILL); });
  be_patient();
}

/// The agents keep to their own ladder (at most two graces and their patience after SIGKILL); one that does not answer
/// after that will not at all. Unless its answer waits behind output that nobody reads just now.
void Supervisor::be_patient() {
  const uint64_t patience_ns = 2 * std::min(options_.grace_ns, Deadline::kNever / 4) + kExtraNs;
  patience_timer_ = loop_.after(patience_ns, [this] {
    if (output_.pending() > 0) return be_patient();
    abandon_ = true;
  });
}

bool Supervisor::all_done() const {
  return std::all_of(links_.begin(), links_.end(), [this](const auto& link) {
    if (link->state == HostLink::State::done) return true;
    if (link->state == HostLink::State::connecting) return ending_ && !link->local && !link->child_running();
    return link->state == HostLink::State::lost && !link->child_running();
  });
}

void Supervisor::say_goodbyes() {
  rendezvous_.reset();
  // The agent of this host last: it guards the ways to the others.
  for (auto link = links_.rbegin(); link != links_.rend(); ++link) (*link)->say_goodbye();
  bool late = abandon_;
  const Loop::TimerId timer = loop_.after(kGoodbyeNs, [&late] { late = true; });
  const auto running = [](const auto& link) { return link->child_running(); };
  while (!late && !abandon_ && std::any_of(links_.begin(), links_.end(), running)) loop_.run_once();
  loop_.cancel(timer);
  for (const auto& link : links_) link->signal_child(SIGKILL);
  // Only when our agent was killed itself are there ranks' processes here that nobody has ended.
  if (outcome_.cause != Outcome::Cause::none && links_[0]->state != HostLink::State::done) {
    for (const pid_t pid : descendants(read_processes(), getpid())) kill(pid, SIGKILL);
  }
}

void Supervisor::on_output_change() {
  if (output_.reader_gone() && !ending_) {
    Outcome outcome;
    outcome.cause = Outcome::Cause::output_closed;
    return end_job(std::move(outcome), SIGTERM);
  }
  update_flow();
}

void Supervisor::update_flow() {
  if (!paused_ && !output_.congested()) return;
  if (paused_ && output_.pending() > kResumeBytes) return;
  paused_ = !paused_;
  for (const auto& link : links_) link->pause(paused_);
}

int Supervisor::report() {
  int code = exit_code(outcome_, ranks_);
  if (const std::string trouble = output_.failure();
      !trouble.empty() && outcome_.cause != Outcome::Cause::output_closed) {
    output_.say(trouble);
    if (code == 0) code = 1;
  }
  if (code == 0) return 0;
  if (launched_) output_.say_raw(make_table(outcome_, ranks_, options_.command.front()));
  std::string file;
  if (output_.to_files() && outcome_.cause == Outcome::Cause::rank) file = output_.file_of(outcome_.rank, 2);
  if (outcome_.cause != Outcome::Cause::none) output_.say(last_line(outcome_, ranks_, options_.command.front(), file));
  return code;
}

}  // namespace tutti::launch
