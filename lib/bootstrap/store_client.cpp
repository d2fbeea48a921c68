// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/store_client.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "store_wire.hpp"

namespace tutti {
namespace {

constexpr uint64_t kFirstBackoffNs = 10'000'000;
constexpr uint64_t kMostBackoffNs = 320'000'000;
constexpr uint64_t kFirstAttemptOfManyNs = 1'000'000'000;  // with several servers: one that swallows packets delays the rest
constexpr int kMostReadsACall = 16;

}  // namespace

struct StoreClient::State {
  struct Request {
    FrameKind kind;
    std::string question;  // in `questions`; "" for set and erase
    std::string frame;
  };
  struct Question {
    bool answered = false;
    std::string answer;
  };

  StoreClientOptions options;
  const Clock* clock = nullptr;
  std::unique_ptr<Poller> poller;
  std::vector<Status> troubles;  // of each server, the last one
  Status fatal;

  enum class Phase : uint8_t { idle, shaking_hands, expecting_welcome, up };
  Phase phase = Phase::idle;
  std::unique_ptr<Stream> stream;
  std::optional<Handshake> handshake;
  FrameReader reader;
  FrameWriter writer;
  bool watching_write = false;
  size_t server = 0;        // to try next, or the one being tried
  uint32_t rounds = 0;      // of all servers without success
  uint64_t retry_ns = 0;    // phase idle
  uint64_t attempt_ns = 0;  // end of the attempt
  uint64_t refused_since_ns = Deadline::kNever;
  bool refused = false;

  std::string instance;
  uint32_t incarnation = 0;
  uint64_t next_id = 1;
  std::map<uint64_t, Request> requests;  // unanswered, oldest first
  std::map<std::string, Question, std::less<>> questions;
  size_t unseen = 0;  // answered questions that nobody has asked again
  bool news = false;  // ... and which wait() has not told of
  size_t writes = 0;  // unanswered set, claim and erase

  Status pump();
  void start_attempt();
  void fail_attempt(Status why);
  void lose(Status why);
  void drive_handshake();
  bool read();
  bool take(const Frame& frame);
  bool take_welcome(std::string_view from);
  void update_watch(bool want);
  void send(FrameKind kind, std::string_view key, std::string_view payload, std::string question);
  Result<bool> ask(FrameKind kind, std::string_view key, std::string_view payload, std::string* answer);
  void check_deadline();
  Status given_up() const;
  uint64_t next_ns() const noexcept;
};

Status StoreClient::State::pump() {
  if (!fatal.ok()) return fatal;
  // Two rounds at most: an attempt that fails at once (connection refused) makes room for the next server.
  for (size_t tries = 0; tries <= options.servers.size(); ++tries) {
    if (phase == Phase::idle && clock->now_ns() >= retry_ns) start_attempt();
    if (phase == Phase::shaking_hands) drive_handshake();
    if (phase != Phase::idle || !fatal.ok() || clock->now_ns() < retry_ns) break;
  }
  if (phase == Phase::expecting_welcome || phase == Phase::up) {
    if (read() && phase == Phase::up) {
      const Io io = writer.flush(*stream);
      if (io == Io::closed || io == Io::failed) {
        lose(error(TUTTI_ERR_CONNECT, "the connection broke: {}", stream->error()));
      } else {
        update_watch(!writer.empty());
      }
    }
  }
  if (phase != Phase::idle && phase != Phase::up && clock->now_ns() >= attempt_ns) {
    fail_attempt(error(TUTTI_ERR_CONNECT, "{}",
                       stream->finish_connect() == Io::done
                           ? "it accepts connections but does not answer: not a Tutti server, or stopped"
                           : "no answer to the attempt to connect"));
  }
  check_deadline();
  return fatal;
}

void StoreClient::State::start_attempt() {
  const uint64_t patience = options.servers.size() == 1
                                ? options.attempt_ns
                                : std::min(options.attempt_ns, kFirstAttemptOfManyNs << std::min<uint32_t>(rounds, 6));
  attempt_ns = Deadline::after(*clock, patience).at_ns;
  Result<std::unique_ptr<Stream>> made = options.network->connect(options.servers[server]);
  if (!made.ok()) return fail_attempt(made.status());
  stream = std::move(made).value();
  handshake.emplace(HandshakeRole::initiator, options.secret, store_purpose(options.job_id), *options.random, options.version);
  reader = FrameReader();
  writer.clear();
  phase = Phase::shaking_hands;
  watching_write = true;
  if (const Status watched = poller->watch(stream->fd(), true, 0); !watched.ok()) fail_attempt(watched);
}

void StoreClient::State::fail_attempt(Status why) {
  refused = why.code() == TUTTI_ERR_AUTH;
  troubles[server] = std::move(why);
  if (stream) poller->forget(stream->fd());
  stream.reset();
  handshake.reset();
  phase = Phase::idle;
  retry_ns = 0;
  if (++server < options.servers.size()) return;
  server = 0;
  const uint64_t backoff = std::min(kFirstBackoffNs << std::min<uint32_t>(rounds, 10), kMostBackoffNs);
  ++rounds;
  std::array<std::byte, 2> dice{};
  options.random->fill(dice);
  // Between a half and the whole: those that were refused together do not come back together.
  const uint64_t jitter = std::to_integer<uint64_t>(dice[0]) << 8 | std::to_integer<uint64_t>(dice[1]);
  retry_ns = Deadline::after(*clock, backoff / 2 + backoff / 2 * jitter / 65536).at_ns;

  const bool all_refused =
      std::all_of(troubles.begin(), troubles.end(), [](const Status& trouble) { return trouble.code() == TUTTI_ERR_AUTH; });
  if (!all_refused) {
    refused_since_ns = Deadline::kNever;
  } else if (refused_since_ns == Deadline::kNever) {
    refused_since_ns = clock->now_ns();
  } else if (clock->now_ns() - refused_since_ns >= options.auth_grace_ns) {
    fatal = given_up();
  }
}

void StoreClient::State::lose(Status why) {
  const size_t same = server;
  fail_attempt(std::move(why));
  server = same;  // it has been the right one; ask it first
}

void StoreClient::State::drive_handshake() {
  const Io io = drive(*handshake, *stream);
  if (io == Io::again) return update_watch(stream->finish_connect() != Io::done || !handshake->output().empty());
  if (io == Io::done && handshake->state() == Handshake::State::accepted) {
    handshake.reset();
    phase = Phase::expecting_welcome;
    return update_watch(false);
  }
  if (io == Io::done) {
    const Status& why = handshake->why();
    if (why.code() == TUTTI_ERR_VERSION) {
      fatal = why.with_context(options.servers[server].text());
      return fail_attempt(why);
    }
    if (why.code() == TUTTI_ERR_PROTOCOL) {
      return fail_attempt(error(TUTTI_ERR_PROTOCOL, "not a Tutti server: {}", why.message()));
    }
    return fail_attempt(why);
  }
  if (handshake->peer_version() != 0 && handshake->output().empty()) {
    // It had our proof in hand and hung up.
    return fail_attempt(error(TUTTI_ERR_AUTH, "it refuses this process: its secret is another one"));
  }
  fail_attempt(error(TUTTI_ERR_CONNECT, "{}",
                     io == Io::failed ? stream->error() : "it closes connections without an answer: not a Tutti server?"));
}

/// false: the connection is gone.
bool StoreClient::State::read() {
  for (int i = 0; i < kMostReadsACall; ++i) {
    const Io io = reader.fill(*stream);
    if (io == Io::again) return true;
    if (io != Io::done) {
      lose(error(TUTTI_ERR_CONNECT, "{}", io == Io::closed ? "the server closed the connection" : stream->error()));
      return false;
    }
    Frame frame;
    FrameReader::Next next;
    while ((next = reader.next(&frame)) == FrameReader::Next::frame) {
      if (!take(frame)) next = FrameReader::Next::malformed;
      if (next == FrameReader::Next::malformed) break;
    }
    if (next == FrameReader::Next::malformed) {
      lose(error(TUTTI_ERR_PROTOCOL, "the server sent an answer that Tutti would not send"));
      return false;
    }
  }
  return true;
}

bool StoreClient::State::take(const Frame& frame) {
  if (phase == Phase::expecting_welcome) return frame.kind == FrameKind::welcome && take_welcome(frame.payload);
  if (frame.kind != FrameKind::answer) return false;
  const auto found = requests.find(frame.id);
  if (found == requests.end()) return false;
  const Request& request = found->second;
  if (request.kind != FrameKind::get && request.kind != FrameKind::find_absent) --writes;
  if (!request.question.empty()) {
    Question& question = questions[request.question];
    question.answered = true;
    ++unseen;
    news = true;
    question.answer.assign(frame.payload);
  }
  requests.erase(found);
  return true;
}

bool StoreClient::State::take_welcome(std::string_view from) {
  phase = Phase::up;
  rounds = 0;
  refused = false;
  refused_since_ns = Deadline::kNever;
  for (Status& trouble : troubles) trouble = Status();
  if (instance != from) {
    if (!instance.empty()) {
      ++incarnation;
      requests.clear();
      questions.clear();
      unseen = writes = 0;
      news = true;
    }
    instance.assign(from);
  }
  for (const auto& [id, request] : requests) writer.push(request.frame);
  return true;
}

void StoreClient::State::update_watch(bool want) {
  if (!stream || want == watching_write) return;
  watching_write = want;
  if (const Status watched = poller->watch(stream->fd(), want, 0); !watched.ok()) lose(watched);
}

void StoreClient::State::send(FrameKind kind, std::string_view key, std::string_view payload, std::string question) {
  const uint64_t id = next_id++;
  std::string frame = encode_frame({kind, id, key, payload});
  if (phase == Phase::up) writer.push(frame);
  requests.emplace(id, Request{kind, std::move(question), std::move(frame)});
  if (kind != FrameKind::get && kind != FrameKind::find_absent) ++writes;
}

Result<bool> StoreClient::State::ask(FrameKind kind, std::string_view key, std::string_view payload, std::string* answer) {
  std::string name(1, static_cast<char>(kind));
  name.append(key);
  if (kind == FrameKind::find_absent) name.append(1, '\0').append(payload);
  if (questions.find(name) == questions.end()) {
    questions.emplace(name, Question());
    send(kind, key, payload, name);
  }
  TUTTI_TRY(pump());
  // Looked up again: another server may have taken its place, with everything asked before forgotten.
  const auto found = questions.find(name);
  if (found == questions.end() || !found->second.answered) return false;
  *answer = std::move(found->second.answer);
  questions.erase(found);
  if (--unseen == 0) news = false;
  return true;
}

void StoreClient::State::check_deadline() {
  if (fatal.ok() && phase != Phase::up && options.deadline.passed(*clock)) fatal = given_up();
}

Status StoreClient::State::given_up() const {
  tutti_status_t code = TUTTI_ERR_CONNECT;
  std::string text;
  for (size_t i = 0; i < troubles.size(); ++i) {
    const Status& trouble = troubles[i];
    if (trouble.code() == TUTTI_ERR_PROTOCOL && code == TUTTI_ERR_CONNECT) code = TUTTI_ERR_PROTOCOL;
    if (trouble.code() == TUTTI_ERR_AUTH) code = TUTTI_ERR_AUTH;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", options.servers[i].text(),
                        trouble.ok() ? "no answer" : trouble.message());
  }
  return error(code, "cannot reach the job's rendezvous: {}", text);
}

uint64_t StoreClient::State::next_ns() const noexcept {
  if (!fatal.ok()) return 0;
  if (news) return 0;
  if (phase == Phase::up) return Deadline::kNever;
  return std::min(phase == Phase::idle ? retry_ns : attempt_ns, options.deadline.at_ns);
}

StoreClient::StoreClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
// Programs that create communicators again and again would use up the ports otherwise.
StoreClient::~StoreClient() {
  // Questions whose answers nobody will read may be open.
  if (state_->phase == State::Phase::up && state_->writes == 0 && state_->writer.empty()) state_->stream->leave_no_trace();
}

Result<std::unique_ptr<StoreClient>> StoreClient::open(const StoreClientOptions& options) {
  if (options.servers.empty()) return error(TUTTI_ERR_ARGUMENT, "there is no address of a rendezvous server");
  auto state = std::make_unique<State>();
  state->options = options;
  state->clock = &options.network->clock();
  state->troubles.resize(options.servers.size());
  Result<std::unique_ptr<Poller>> poller = options.network->make_poller();
  TUTTI_TRY(poller.status());
  state->poller = std::move(poller).value();
  return std::unique_ptr<StoreClient>(new StoreClient(std::move(state)));
}

bool StoreClient::connected() const noexcept { return state_->phase == State::Phase::up; }
bool StoreClient::refused() const noexcept { return state_->refused; }

Status StoreClient::set(std::string_view key, std::string_view value) {
  if (key.empty() || key.size() > kMostKeyBytes || value.size() > kMostValueBytes) {
    return error(TUTTI_ERR_ARGUMENT, "a key of {} and a value of {} bytes do not fit into the store", key.size(), value.size());
  }
  state_->send(FrameKind::set, key, value, {});
  return state_->pump();
}

Result<bool> StoreClient::get(std::string_view key, std::string* value) { return state_->ask(FrameKind::get, key, {}, value); }

Result<bool> StoreClient::claim(std::string_view key, std::string_view value, std::string* holder) {
  return state_->ask(FrameKind::claim, key, value, holder);
}

Result<bool> StoreClient::find_absent(std::string_view prefix, uint32_t count, RankSet* absent) {
  std::string payload;
  put_u32(&payload, count);
  std::string answer;
  const Result<bool> known = state_->ask(FrameKind::find_absent, prefix, payload, &answer);
  if (!known.ok() || !*known) return known;
  std::optional<RankSet> set = decode_rank_set(answer);
  if (!set) return error(TUTTI_ERR_PROTOCOL, "the server's list of missing ranks cannot be read");
  *absent = std::move(*set);
  return true;
}

Status StoreClient::erase(std::string_view prefix) {
  state_->send(FrameKind::erase, prefix, {}, {});
  return state_->pump();
}

Result<bool> StoreClient::flushed() {
  TUTTI_TRY(state_->pump());
  return state_->writes == 0;
}

Status StoreClient::wait(Deadline deadline) {
  // An answer that came while another question was looked at: the caller has not seen it yet.
  if (std::exchange(state_->news, false)) return state_->pump();
  std::vector<uint64_t> ready;
  state_->poller->wait(Deadline{std::min(deadline.at_ns, state_->next_ns())}, &ready);
  return state_->pump();
}

int StoreClient::fd() const noexcept { return state_->poller->fd(); }
uint64_t StoreClient::next_ns() const noexcept { return state_->next_ns(); }
uint32_t StoreClient::incarnation() const noexcept { return state_->incarnation; }

std::string StoreClient::trouble() const {
  if (!state_->fatal.ok()) return std::string(state_->fatal.message());
  if (state_->phase == State::Phase::up) return {};
  std::string text;
  for (size_t i = 0; i < state_->troubles.size(); ++i) {
    if (state_->troubles[i].ok()) continue;
    text += fmt::format("{}connecting to {}: {}", text.empty() ? "" : "; ", state_->options.servers[i].text(),
                        state_->troubles[i].message());
  }
  return text.empty() ? "connecting to " + endpoints_text(state_->options.servers) : text;
}

}  // namespace tutti
