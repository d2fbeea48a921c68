// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/bootstrap.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "board.hpp"
#include "bootstrap/store_client.hpp"

namespace tutti {
namespace {

constexpr uint64_t kLookAgainNs = 20'000'000;
constexpr uint64_t kListenAgainNs = 100'000'000;
constexpr uint64_t kStaleServerNs = 50'000'000;
constexpr uint64_t kLongestSleepNs = 200'000'000;

/// The store of a rank that has put an invitation somewhere: takes it away when nobody needs it any more.
class InvitingStore final : public Store {
 public:
  InvitingStore(std::unique_ptr<Store> store, std::unique_ptr<Poller> sleeper, std::unique_ptr<Board> board)
      : sleeper_(std::move(sleeper)), board_(std::move(board)), store_(std::move(store)) {}
  ~InvitingStore() override { board_->retract(); }
  Status set(std::string_view key, std::string_view value) override { return store_->set(key, value); }
  Result<bool> get(std::string_view key, std::string* value) override { return store_->get(key, value); }
  Result<bool> claim(std::string_view key, std::string_view value, std::string* holder) override {
    return store_->claim(key, value, holder);
  }
  Result<bool> find_absent(std::string_view prefix, uint32_t count, RankSet* absent) override {
    return store_->find_absent(prefix, count, absent);
  }
  Status erase(std::string_view prefix) override { return store_->erase(prefix); }
  Result<bool> flushed() override { return store_->flushed(); }
  Status wait(Deadline deadline) override { return store_->wait(deadline); }
  int fd() const noexcept override { return store_->fd(); }
  uint64_t next_ns() const noexcept override { return store_->next_ns(); }
  uint32_t incarnation() const noexcept override { return store_->incarnation(); }
  std::string trouble() const override { return store_->trouble(); }

 private:
  std::unique_ptr<Poller> sleeper_;  // the board sleeps on it
  std::unique_ptr<Board> board_;
  std::unique_ptr<Store> store_;
};

}  // namespace

struct Bootstrap::State {
  BootstrapOptions options;
  const Clock* clock = nullptr;
  LaunchInfo launch;
  JobInfo job;
  std::unique_ptr<Poller> sleeper;
  std::unique_ptr<Board> board;
  std::unique_ptr<StoreClient> client;
  Invitation invitation;  // of a board or a unique id
  bool invited = false;   // `invitation` is good, and gives job and secret
  std::string seen;       // what the board says
  bool posted = false;
  uint64_t again_ns = 0;  // when to look, listen or connect again
  Status listen_trouble;
  Status failure;
  bool fresh = false;  // the server is not one of an earlier start of this job
  bool have_job = false;
  bool have_secret = false;
  bool done = false;

  Status prepare();
  Status choose_meeting();
  Status meet_by_manager();
  Status take_secret();
  Status judge_missing_secret();
  Status advance();
  bool serves() const;
  bool due() const { return clock->now_ns() >= again_ns; }
  void later(uint64_t ns) { again_ns = Deadline::after(*clock, ns).at_ns; }
  Status host(const std::vector<Endpoint>& at, bool first_free, const std::string& job_id, const Secret& secret);
  Status host_invitation();
  Status listen_at_meeting();
  Status look_for_invitation();
  Status connect(const std::vector<Endpoint>& servers, const std::string& job_id, const Secret& secret);
  Status ask();
  Result<bool> ask_generation();
  Status finish();
  Status explain(const Status& why) const;
  Status check_in_time() const;
};

bool Bootstrap::State::serves() const {
  const bool by_rank = launch.meeting == Meeting::rank_zero || launch.meeting == Meeting::file ||
                       launch.meeting == Meeting::pmi || launch.meeting == Meeting::pmix;
  return launch.rank == 0 && (by_rank || options.store != nullptr);
}

Status Bootstrap::State::prepare() {
  clock = &options.network->clock();
  job.deadline = Deadline::after(*clock, options.config->duration_ns(Setting::bootstrap_timeout));
  job.version = options.version;
  Result<std::unique_ptr<Poller>> made = options.network->make_poller();
  TUTTI_TRY(made.status());
  sleeper = std::move(made).value();
  TUTTI_TRY(choose_meeting());
  TUTTI_TRY(take_secret());
  job.rank = launch.rank;
  job.size = launch.size;
  job.local_rank_hint = launch.local_rank;
  job.local_size_hint = launch.local_size;
  job.launcher = launch.launcher;
  job.job_id = launch.job_id;
  job.single_host_hint = launch.single_host;
  job.host_identity = host_identity(*options.config);
  job.addresses = options.addresses;
  if (job.addresses.empty()) {
    Result<std::vector<std::string>> chosen = choose_local_addresses(*options.config, launch.single_host);
    TUTTI_TRY(chosen.status());
    job.addresses = std::move(chosen).value();
  }
  return judge_missing_secret();
}

Status Bootstrap::State::choose_meeting() {
  if (options.unique_id == nullptr && options.store == nullptr) {
    const EnvironmentLookup lookup = options.environment ? options.environment : process_environment();
    Result<LaunchInfo> found = detect_launch(*options.config, lookup);
    TUTTI_TRY(found.status());
    launch = std::move(found).value();
    if (launch.meeting == Meeting::file) board = make_file_board(launch.path, *sleeper, *options.random);
    const bool managed = launch.meeting == Meeting::pmi || launch.meeting == Meeting::pmix;
    return managed ? meet_by_manager() : Status();
  }
  if (options.size < 1) return error(TUTTI_ERR_ARGUMENT, "a job of {} ranks: the size is at least 1", options.size);
  if (options.rank < 0 || options.rank >= options.size) {
    return error(TUTTI_ERR_RANK, "rank {} is outside 0..{}", options.rank, options.size - 1);
  }
  launch.rank = options.rank;
  launch.size = options.size;
  launch.single_host = options.size == 1;
  if (options.unique_id != nullptr) {
    Result<Invitation> decoded = Invitation::decode(std::as_bytes(std::span(options.unique_id->bytes)));
    TUTTI_TRY(decoded.status());
    invitation = std::move(decoded).value();
    invited = true;
  }
  if (options.size == 1) return Status();  // Meeting::alone
  launch.meeting = Meeting::served;
  if (options.unique_id != nullptr) {
    launch.servers = invitation.servers;
    launch.job_id = invitation.job_id();
  } else {
    board = make_store_board(*options.store, *sleeper, *clock);
  }
  return Status();
}

Status Bootstrap::State::meet_by_manager() {
  if (const std::string kept = kept_invitation(); !kept.empty()) {
    // Not the first start of this process: the ranks meet where they met before, with the secret that they had then.
    const size_t space = std::min(kept.find(' '), kept.size());
    std::from_chars(kept.data(), kept.data() + space, launch.size);
    const Result<std::vector<std::byte>> bytes = from_hex(std::string_view(kept).substr(std::min(space + 1, kept.size())));
    TUTTI_TRY(bytes.status().with_context("the meeting point of the first start"));
    const Result<Invitation> before = Invitation::decode(*bytes);
    TUTTI_TRY(before.status().with_context("the meeting point of the first start"));
    launch.meeting = Meeting::rank_zero;
    launch.servers = before->servers;
    launch.job_id = before->job_id();
    job.secret = before->secret;
    return Status();
  }
  if (launch.meeting == Meeting::pmix) {
    board = make_pmix_board(launch, *sleeper);
    return Status();
  }
  Result<std::unique_ptr<Poller>> poller = options.network->make_poller();
  TUTTI_TRY(poller.status());
  board = make_pmi_board(launch, *options.network, std::move(poller).value());
  return Status();
}

Status Bootstrap::State::take_secret() {
  if (!job.secret.empty()) return Status();
  if (invited && !invitation.secret.empty()) {
    job.secret = invitation.secret;
    return Status();
  }
  Config config = *options.config;
  // A launcher inside a job of tuttirun's passes variables on, but no descriptors.
  const bool inherited = launch.launcher != Launcher::tuttirun && launch.launcher != Launcher::by_hand &&
                         config.source(Setting::secret_fd) == SettingSource::environment;
  if (inherited) TUTTI_TRY(config.set("secret_fd", ""));
  Result<Secret> loaded = load_secret(config);
  TUTTI_TRY(loaded.status());
  job.secret = std::move(loaded).value();
  return Status();
}

/// Without a secret whoever reaches the rendezvous is let in. Within a host that is a matter of its users; over a network a
/// person must have said so.
Status Bootstrap::State::judge_missing_secret() {
  if (!job.secret.empty() || board || launch.meeting == Meeting::alone || launch.meeting == Meeting::pmi ||
      launch.meeting == Meeting::pmix) {
    return Status();
  }
  const auto all = [&](auto&& good) { return std::all_of(launch.servers.begin(), launch.servers.end(), good); };
  if (all([](const Endpoint& server) { return server.is_unix(); })) return Status();
  job.insecure = true;
  if (all([](const Endpoint& server) { return server.on_this_machine(); })) {
    if (options.log) options.log->info("this job has no secret: every user of this machine could join it");
    return Status();
  }
  if (!options.config->flag(Setting::insecure)) {
    return error(TUTTI_ERR_CONFIG,
                 "this job runs on several hosts and has no secret, so that anybody on the network could join it: put the same "
                 "random words into a file of mode 0600 and set TUTTI_SECRET_FILE on every rank, or start the job with "
                 "tuttirun, or allow it with TUTTI_INSECURE=1");
  }
  if (options.log)
    options.log->warn("this job has no secret (TUTTI_INSECURE): anybody who reaches {} can join it",
                      endpoints_text(launch.servers));
  return Status();
}

Status Bootstrap::State::host(const std::vector<Endpoint>& at, bool first_free, const std::string& job_id, const Secret& secret) {
  StoreServerOptions server;
  server.network = options.network;
  server.random = options.random;
  server.log = options.log;
  server.secret = secret;
  server.job_id = job_id;
  server.version = options.version;
  server.addresses = at;
  server.first_free = first_free;
  Result<PortRange> ports = PortRange::parse(options.config->text(Setting::port_range));
  TUTTI_TRY(ports.status());
  server.ports = *ports;
  Result<std::unique_ptr<StoreHost>> opened =
      StoreHost::open(server, static_cast<uint32_t>(job.size), options.host_thread, options.start_thread);
  TUTTI_TRY(opened.status());
  job.host = std::move(opened).value();
  return Status();
}

Status Bootstrap::State::connect(const std::vector<Endpoint>& servers, const std::string& job_id, const Secret& secret) {
  StoreClientOptions to;
  to.network = options.network;
  to.random = options.random;
  to.log = options.log;
  to.secret = secret;
  to.job_id = job_id;
  to.version = options.version;
  to.servers = servers;
  to.deadline = job.deadline;
  // Where the address itself may be out of date, a refusal says nothing yet: the next look at the board decides.
  if (board) to.auth_grace_ns = Deadline::kNever;
  Result<std::unique_ptr<StoreClient>> opened = StoreClient::open(to);
  TUTTI_TRY(opened.status());
  client = std::move(opened).value();
  fresh = have_job = have_secret = false;
  return Status();
}

/// Rank 0 of a job whose meeting point everybody knows. Somebody else may have it: an earlier job that is just ending, a
/// second rank 0, or a program that has nothing to do with us. Which one, only asking there tells.
Status Bootstrap::State::listen_at_meeting() {
  if (job.host || !due()) return Status();
  if (client && fresh) return Status();
  listen_trouble = host(launch.servers, true, launch.job_id, job.secret);
  if (!listen_trouble.ok()) {
    later(kListenAgainNs);
    return client ? Status() : connect(launch.servers, launch.job_id, job.secret);
  }
  client.reset();
  return connect(job.host->endpoints(), launch.job_id, job.secret);
}

Status Bootstrap::State::host_invitation() {
  if (posted) return Status();
  if (!job.host) {
    options.random->fill(invitation.job);
    invitation.version = options.version;
    invitation.secret = job.secret.empty() ? Secret::generate(*options.random) : Secret();
    if (job.secret.empty()) job.secret = invitation.secret;
    std::vector<Endpoint> at;
    for (const std::string& address : job.addresses) at.push_back({address, 0});
    TUTTI_TRY(host(at, false, invitation.job_id(), job.secret));
    invitation.servers = job.host->endpoints();
    while (invitation.servers.size() > 1 && !invitation.encode().ok()) invitation.servers.pop_back();
    invited = true;
    TUTTI_TRY(connect({job.host->endpoints().front()}, invitation.job_id(), job.secret));
  }
  const Result<std::array<std::byte, Invitation::kBytes>> bytes = invitation.encode();
  TUTTI_TRY(bytes.status());
  const Result<bool> there = board->post(to_hex(*bytes));
  TUTTI_TRY(there.status());
  posted = *there;
  return Status();
}

Status Bootstrap::State::look_for_invitation() {
  if (!due() || (client && fresh)) return Status();
  later(kLookAgainNs);
  std::string text;
  const Result<bool> there = board->look(&text);
  TUTTI_TRY(there.status());
  if (!*there && board->wakes()) again_ns = 0;
  if (!*there || text == seen) return Status();
  seen = text;
  const Result<std::vector<std::byte>> bytes = from_hex(text);
  const Result<Invitation> decoded = bytes.ok() ? Invitation::decode(*bytes) : Result<Invitation>(bytes.status());
  if (!decoded.ok()) return Status();  // something else's, or half of it: rank 0 will put its own there
  invitation = *decoded;
  invited = true;
  return connect(invitation.servers, invitation.job_id(), invitation.secret.empty() ? job.secret : invitation.secret);
}

Result<bool> Bootstrap::State::ask_generation() {
  std::string had;
  const Result<bool> known = client->claim(fmt::format("{}{}", exchange_done_prefix({}), launch.rank), "0", &had);
  if (!known.ok() || !*known) return known;
  const bool first = had == "0";
  if (launch.meeting == Meeting::served && !board) {
    if (!first && options.unique_id != nullptr) {
      return error(TUTTI_ERR_ARGUMENT, "rank {} has already joined with this id; an id is good for one communicator",
                   launch.rank);
    }
    job.job_id = launch.job_id;
    fresh = true;
    seen = had;
    return true;
  }
  fresh = first;
  if (fresh) return true;
  // This rank has met there before: the server is one of the job before this one and will end soon.
  client.reset();
  later(kStaleServerNs);
  seen.clear();
  return false;
}

/// What all ranks must have in common, and no launcher has given.
Status Bootstrap::State::ask() {
  if (!client) return Status();
  if (!fresh) {
    const Result<bool> known = ask_generation();
    if (!known.ok() || !*known) return known.status();
  }
  if (invited) {
    job.job = invitation.job;
    if (!invitation.secret.empty()) job.secret = invitation.secret;
    have_job = true;
  }
  std::array<std::byte, 16> own_job{};
  if (!have_job) {
    options.random->fill(own_job);
    std::string holder;
    const std::string generation = launch.meeting == Meeting::served ? seen : "0";
    const Result<bool> known = client->claim(fmt::format("job/{}", generation), to_hex(own_job), &holder);
    TUTTI_TRY(known.status());
    if (*known) {
      const Result<std::vector<std::byte>> bytes = from_hex(holder);
      if (!bytes.ok() || bytes->size() != job.job.size()) return error(TUTTI_ERR_PROTOCOL, "the store's job id cannot be read");
      std::copy(bytes->begin(), bytes->end(), job.job.begin());
      have_job = true;
    }
  }
  if (!job.secret.empty()) have_secret = true;
  if (!have_secret) {
    std::string holder;
    const Result<bool> known = client->claim("secret", to_hex(Secret::generate(*options.random).bytes()), &holder);
    TUTTI_TRY(known.status());
    if (*known) {
      const Result<std::vector<std::byte>> bytes = from_hex(holder);
      if (!bytes.ok() || bytes->size() != Secret::kBytes) return error(TUTTI_ERR_PROTOCOL, "the store's secret cannot be read");
      job.secret = Secret::from_bytes(std::span(*bytes).first<Secret::kBytes>());
      have_secret = true;
    }
  }
  return have_job && have_secret ? finish() : Status();
}

Status Bootstrap::State::finish() {
  if (job.size == 0 && board) job.size = board->size();
  if (job.size <= job.rank) {
    return error(TUTTI_ERR_ENVIRONMENT, "the launcher ({}) says rank {} of {} ranks", name(launch.launcher), job.rank, job.size);
  }
  if (job.job_id.empty()) job.job_id = to_hex(std::span(job.job).first(4));
  if (board && invited) {
    if (const auto bytes = invitation.encode(); bytes.ok()) board->keep(fmt::format("{} {}", job.size, to_hex(*bytes)));
  }
  if (board && posted) {
    job.store = std::make_unique<InvitingStore>(std::move(client), std::move(sleeper), std::move(board));
  } else {
    job.store = std::move(client);
  }
  done = true;
  return Status();
}

Status Bootstrap::State::advance() {
  if (launch.meeting == Meeting::alone) {
    if (job.secret.empty()) job.secret = Secret::generate(*options.random);
    if (invited) {
      job.job = invitation.job;
    } else {
      options.random->fill(job.job);
    }
    if (job.job_id.empty()) job.job_id = to_hex(std::span(job.job).first(4));
    done = true;
    return Status();
  }
  if (job.host) job.host->step();
  if (board) {
    TUTTI_TRY(serves() ? host_invitation() : look_for_invitation());
  } else if (serves()) {
    TUTTI_TRY(listen_at_meeting());
  } else if (!client && due()) {
    TUTTI_TRY(connect(launch.servers, launch.job_id, job.secret));
  }
  // An invitation is worth nothing before it is posted: the others would wait for rank 0 without a sign of it.
  if (board && serves() && !posted) return check_in_time();
  TUTTI_TRY(ask());
  return done ? Status() : check_in_time();
}

Status Bootstrap::State::check_in_time() const {
  if (!job.deadline.passed(*clock)) return Status();
  if (board && board->is_barrier() && (serves() ? !posted : !client)) {
    return error(TUTTI_ERR_MISSING_RANK, "not all ranks came to {} in time, which does not tell who is missing", board->place());
  }
  std::string where = client ? client->trouble() : board ? "there is no invitation yet at " + board->place() : "";
  if (where.empty()) where = "the rendezvous is that of an earlier job";
  return error(TUTTI_ERR_CONNECT, "{}", where);
}

/// Errors at the end of the wait, in terms of the job.
Status Bootstrap::State::explain(const Status& why) const {
  if (!listen_trouble.ok() && !job.host) {
    return error(why.code(), "rank 0 cannot serve the rendezvous: {}; and there: {}", listen_trouble.message(), why.message());
  }
  const bool waits_for_rank_zero = launch.rank != 0 && (board || launch.meeting == Meeting::rank_zero);
  if (why.code() != TUTTI_ERR_CONNECT || !waits_for_rank_zero) return why;
  return error(TUTTI_ERR_MISSING_RANK, "rank 0, which serves the rendezvous, did not arrive in time: {}", why.message());
}

Bootstrap::Bootstrap(std::unique_ptr<State> state) : state_(std::move(state)) {}
Bootstrap::~Bootstrap() = default;

Result<std::unique_ptr<Bootstrap>> Bootstrap::start(BootstrapOptions options) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  TUTTI_TRY(state->prepare());
  return std::unique_ptr<Bootstrap>(new Bootstrap(std::move(state)));
}

Result<bool> Bootstrap::step() {
  State& state = *state_;
  if (!state.failure.ok()) return state.failure;
  if (state.done) return true;
  if (state.options.abort != nullptr && state.options.abort->load()) {
    return state.failure = error(TUTTI_ERR_ABORTED, "the start of the job was aborted");
  }
  if (const Status why = state.advance(); !why.ok()) return state.failure = state.explain(why);
  return state.done;
}

void Bootstrap::wait(Deadline deadline) {
  State& state = *state_;
  if (state.done || !state.failure.ok()) return;
  const bool hurried = state.options.abort != nullptr || state.board || (state.serves() && !state.job.host);
  const uint64_t cap = !state.options.host_thread && state.job.host ? 1'000'000 : hurried ? kLookAgainNs : kLongestSleepNs;
  uint64_t until = std::min({deadline.at_ns, Deadline::after(*state.clock, cap).at_ns, state.job.deadline.at_ns});
  if (state.again_ns > state.clock->now_ns()) until = std::min(until, state.again_ns);
  if (state.client) {
    (void)state.client->wait(Deadline{until}).ok();  // the next step sees the error itself
  } else if (state.board) {
    state.board->wait(Deadline{until});
  } else {
    std::vector<uint64_t> ready;
    state.sleeper->wait(Deadline{until}, &ready);
  }
}

JobInfo Bootstrap::take() { return std::move(state_->job); }

}  // namespace tutti
