// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "bootstrap/store_server.hpp"

#include <map>
#include <optional>
#include <unordered_map>

#include "bootstrap/exchange.hpp"
#include "store_wire.hpp"

namespace tutti {
namespace {

constexpr uint64_t kFirstConnectionToken = uint64_t{1} << 32;  // smaller tokens are indices of listeners
constexpr int kMostAcceptsAStep = 64;                          // ... and reads: nobody keeps the others waiting
constexpr int kMostReadsAStep = 16;
constexpr uint64_t kAcceptPauseNs = 100'000'000;  // when descriptors have run out
constexpr size_t kMostQuestions = 1 << 16;        // of one client, unanswered
constexpr size_t kMostAnswers = 1 << 17;          // of one client that does not read them
constexpr size_t kInlineValueBytes = 4096;        // a copy of a small value is cheaper than a piece of its own
constexpr uint64_t kLoggedStrangers = 10;         // then only every power of two

struct Connection {
  std::unique_ptr<Stream> stream;
  std::optional<Handshake> handshake;
  uint64_t deadline_ns = Deadline::kNever;  // of the handshake
  FrameReader reader;
  FrameWriter writer;
  size_t questions = 0;
  bool watching_write = false;
  bool dirty = false;
  bool dead = false;
};

struct Waiter {
  uint64_t token;
  uint64_t id;
};

}  // namespace

struct StoreServer::State {
  StoreServerOptions options;
  const Clock* clock = nullptr;
  std::unique_ptr<Poller> poller;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<Endpoint> endpoints;
  uint64_t accept_again_ns = Deadline::kNever;
  uint64_t next_token = kFirstConnectionToken;
  std::map<uint64_t, Connection> connections;  // by token, that is by age
  size_t pending = 0;
  std::vector<uint64_t> dirty;
  std::vector<uint64_t> dead;
  std::vector<uint64_t> ready;
  uint64_t strangers = 0;
  std::string instance;
  std::map<std::string, std::shared_ptr<const std::string>, std::less<>> table;
  std::map<std::string, std::vector<Waiter>, std::less<>> waiters;
  size_t value_bytes = 0;
  const std::shared_ptr<const std::string> nothing = std::make_shared<const std::string>();

  Status listen();
  void accept(size_t listener);
  void add(std::unique_ptr<Stream> stream);
  void serve(uint64_t token);
  void drive_handshake(uint64_t token, Connection& connection);
  void read(uint64_t token, Connection& connection);
  bool handle(uint64_t token, Connection& connection, const Frame& frame);
  void refuse(Connection& connection, const Status& why);
  void kill(uint64_t token, Connection& connection);
  void touch(uint64_t token, Connection& connection);
  void flush();
  void bury();
  void expire();
  void update_watch(uint64_t token, Connection& connection);
  void answer(uint64_t token, uint64_t id, const std::shared_ptr<const std::string>& value);
  void store(std::string_view key, std::shared_ptr<const std::string> value);
  void erase(std::string_view prefix);
  RankSet absent(std::string_view prefix, uint32_t count) const;
};

Status StoreServer::State::listen() {
  Status why = error(TUTTI_ERR_ARGUMENT, "the store has no address to listen on");
  for (const Endpoint& at : options.addresses) {
    Result<std::unique_ptr<Listener>> listener = options.network->listen(at, options.ports);
    if (!listener.ok()) {
      why = listener.status();
      if (options.first_free) continue;
      return why;
    }
    TUTTI_TRY(poller->watch((*listener)->fd(), false, listeners.size()));
    endpoints.push_back((*listener)->endpoint());
    listeners.push_back(std::move(listener).value());
    if (options.first_free) break;
  }
  return listeners.empty() ? why : Status();
}

void StoreServer::State::accept(size_t listener) {
  for (int i = 0; i < kMostAcceptsAStep; ++i) {
    std::unique_ptr<Stream> stream;
    const Io io = listeners[listener]->accept(&stream);
    if (io == Io::done) {
      add(std::move(stream));
    } else if (io == Io::failed) {
      // The listener stays readable while nothing can be accepted: stop looking at it, or the loop spins.
      if (options.log && accept_again_ns == Deadline::kNever) {
        options.log->warn("the store cannot accept connections at {}: {}; trying again", endpoints[listener].text(),
                          listeners[listener]->error());
      }
      accept_again_ns = Deadline::after(*clock, kAcceptPauseNs).at_ns;
      for (const auto& each : listeners) poller->forget(each->fd());
      return;
    } else {
      return;
    }
  }
}

void StoreServer::State::add(std::unique_ptr<Stream> stream) {
  if (pending >= options.most_pending) {
    for (auto& [token, old] : connections) {
      if (!old.handshake || old.dead) continue;
      refuse(old, error(TUTTI_ERR_AUTH, "too many connections that do not say who they are"));
      kill(token, old);
      break;
    }
    bury();
  }
  const uint64_t token = next_token++;
  Connection& connection = connections[token];
  connection.stream = std::move(stream);
  connection.handshake.emplace(HandshakeRole::responder, options.secret, store_purpose(options.job_id), *options.random,
                               options.version);
  connection.deadline_ns = Deadline::after(*clock, options.handshake_ns).at_ns;
  ++pending;
  if (!poller->watch(connection.stream->fd(), false, token).ok()) kill(token, connection);
}

void StoreServer::State::serve(uint64_t token) {
  const auto found = connections.find(token);
  if (found == connections.end() || found->second.dead) return;
  Connection& connection = found->second;
  if (connection.handshake) drive_handshake(token, connection);
  if (!connection.handshake && !connection.dead) {
    read(token, connection);
    touch(token, connection);
  }
}

void StoreServer::State::drive_handshake(uint64_t token, Connection& connection) {
  const Io io = drive(*connection.handshake, *connection.stream);
  if (io == Io::again) return update_watch(token, connection);
  if (io != Io::done) {
    // Port scanners and health checks come and go; it is only worth a line for somebody who looks for it.
    if (options.log) options.log->debug("{} left before it said who it is", connection.stream->peer_text());
    return kill(token, connection);
  }
  if (connection.handshake->state() == Handshake::State::refused) {
    const Status why = connection.handshake->why();
    refuse(connection, why);
    if (why.code() == TUTTI_ERR_VERSION && table.find(kServerErrorKey) == table.end()) {
      // It is one of this job's ranks and will never join: those that wait for it should hear why.
      store(kServerErrorKey, std::make_shared<const std::string>(encode_status(why.with_context(
                                 fmt::format("the rank at {} was refused by the store", connection.stream->peer_text())))));
    }
    return kill(token, connection);
  }
  connection.handshake.reset();
  connection.deadline_ns = Deadline::kNever;
  --pending;
  connection.writer.push(encode_frame({FrameKind::welcome, 0, {}, instance}));
}

void StoreServer::State::read(uint64_t token, Connection& connection) {
  for (int i = 0; i < kMostReadsAStep; ++i) {
    const Io io = connection.reader.fill(*connection.stream);
    if (io == Io::again) return;
    if (io != Io::done) return kill(token, connection);
    Frame frame;
    FrameReader::Next next;
    while ((next = connection.reader.next(&frame)) == FrameReader::Next::frame) {
      if (!handle(token, connection, frame)) next = FrameReader::Next::malformed;
      if (next == FrameReader::Next::malformed) break;
    }
    if (next == FrameReader::Next::malformed) {
      refuse(connection, error(TUTTI_ERR_PROTOCOL, "it sent a request that Tutti would not send"));
      return kill(token, connection);
    }
  }
}

bool StoreServer::State::handle(uint64_t token, Connection& connection, const Frame& frame) {
  if (frame.key.empty() || connection.writer.piece_count() > kMostAnswers) return false;
  switch (frame.kind) {
    case FrameKind::set:
      store(frame.key, std::make_shared<const std::string>(frame.payload));
      answer(token, frame.id, nothing);
      return true;
    case FrameKind::claim: {
      auto found = table.find(frame.key);
      if (found == table.end()) {
        store(frame.key, std::make_shared<const std::string>(frame.payload));
        found = table.find(frame.key);
      }
      answer(token, frame.id, found->second);
      return true;
    }
    case FrameKind::get:
      if (const auto found = table.find(frame.key); found != table.end()) {
        answer(token, frame.id, found->second);
      } else {
        if (++connection.questions > kMostQuestions) return false;
        waiters[std::string(frame.key)].push_back({token, frame.id});
      }
      return true;
    case FrameKind::find_absent: {
      std::string_view payload = frame.payload;
      const std::optional<uint32_t> count = take_u32(&payload);
      if (!count || *count > uint32_t{INT32_MAX}) return false;
      answer(token, frame.id, std::make_shared<const std::string>(encode_rank_set(absent(frame.key, *count))));
      return true;
    }
    case FrameKind::erase:
      erase(frame.key);
      answer(token, frame.id, nothing);
      return true;
    case FrameKind::welcome:
    case FrameKind::answer:
      return false;
  }
  return false;
}

void StoreServer::State::refuse(Connection& connection, const Status& why) {
  ++strangers;
  const bool ours = why.code() == TUTTI_ERR_VERSION;  // a rank, whose trouble is worth every line
  if (!options.log || (!ours && strangers > kLoggedStrangers && (strangers & (strangers - 1)) != 0)) return;
  options.log->warn("closed a connection from {}: {}{}", connection.stream->peer_text(), why.message(),
                    strangers > kLoggedStrangers ? fmt::format(" ({} of this kind so far)", strangers) : "");
}

void StoreServer::State::kill(uint64_t token, Connection& connection) {
  if (connection.dead) return;
  connection.dead = true;
  dead.push_back(token);
}

void StoreServer::State::touch(uint64_t token, Connection& connection) {
  if (connection.dirty) return;
  connection.dirty = true;
  dirty.push_back(token);
}

void StoreServer::State::flush() {
  for (const uint64_t token : dirty) {
    const auto found = connections.find(token);
    if (found == connections.end()) continue;
    Connection& connection = found->second;
    connection.dirty = false;
    if (connection.dead) continue;
    const Io io = connection.writer.flush(*connection.stream);
    if (io == Io::done || io == Io::again) {
      update_watch(token, connection);
    } else {
      kill(token, connection);
    }
  }
  dirty.clear();
}

void StoreServer::State::bury() {
  for (const uint64_t token : dead) {
    const auto found = connections.find(token);
    if (found == connections.end()) continue;
    if (found->second.handshake) --pending;
    poller->forget(found->second.stream->fd());
    if (found->second.questions > 0) {
      for (auto at = waiters.begin(); at != waiters.end();) {
        std::erase_if(at->second, [token](const Waiter& waiter) { return waiter.token == token; });
        at = at->second.empty() ? waiters.erase(at) : std::next(at);
      }
    }
    connections.erase(found);
  }
  dead.clear();
}

void StoreServer::State::expire() {
  const uint64_t now = clock->now_ns();
  if (now >= accept_again_ns) {
    accept_again_ns = Deadline::kNever;
    for (size_t i = 0; i < listeners.size(); ++i) (void)poller->watch(listeners[i]->fd(), false, i).ok();
  }
  if (pending == 0) return;
  for (auto& [token, connection] : connections) {
    if (!connection.handshake || connection.dead) continue;
    if (connection.deadline_ns > now) break;  // younger ones have longer
    refuse(connection, error(TUTTI_ERR_AUTH, "it did not say who it is in time"));
    kill(token, connection);
  }
}

void StoreServer::State::update_watch(uint64_t token, Connection& connection) {
  const bool want = connection.handshake ? !connection.handshake->output().empty() : !connection.writer.empty();
  if (want == connection.watching_write) return;
  connection.watching_write = want;
  if (!poller->watch(connection.stream->fd(), want, token).ok()) kill(token, connection);
}

void StoreServer::State::answer(uint64_t token, uint64_t id, const std::shared_ptr<const std::string>& value) {
  const auto found = connections.find(token);
  if (found == connections.end() || found->second.dead) return;
  Connection& connection = found->second;
  std::string header = encode_frame_header(FrameKind::answer, id, {}, value->size());
  if (value->size() <= kInlineValueBytes) {
    connection.writer.push(std::move(header.append(*value)));
  } else {
    connection.writer.push(std::move(header));
    connection.writer.push(value);
  }
  touch(token, connection);
}

void StoreServer::State::store(std::string_view key, std::shared_ptr<const std::string> value) {
  auto found = table.find(key);
  if (found == table.end()) {
    found = table.emplace(std::string(key), nullptr).first;
    value_bytes += key.size();
  } else {
    value_bytes -= found->second->size();
  }
  value_bytes += value->size();
  found->second = value;
  const auto waiting = waiters.find(key);
  if (waiting == waiters.end()) return;
  const std::vector<Waiter> told = std::move(waiting->second);
  waiters.erase(waiting);
  for (const Waiter& waiter : told) {
    if (const auto who = connections.find(waiter.token); who != connections.end()) --who->second.questions;
    answer(waiter.token, waiter.id, value);
  }
}

void StoreServer::State::erase(std::string_view prefix) {
  auto at = table.lower_bound(prefix);
  while (at != table.end() && at->first.compare(0, prefix.size(), prefix) == 0) {
    value_bytes -= at->first.size() + at->second->size();
    at = table.erase(at);
  }
}

RankSet StoreServer::State::absent(std::string_view prefix, uint32_t count) const {
  RankSet set;
  // Nobody makes us count to two thousand million: past the keys that exist everything is absent.
  const uint32_t looked_at = static_cast<uint32_t>(std::min<size_t>(count, table.size() + RankSet::kNamed));
  uint32_t present = 0;
  auto end = table.lower_bound(prefix);
  for (; end != table.end() && end->first.compare(0, prefix.size(), prefix) == 0; ++end) {
    const std::string_view digits = std::string_view(end->first).substr(prefix.size());
    uint64_t number = 0;
    bool plain = !digits.empty() && digits.size() <= 10 && (digits == "0" || digits[0] != '0');
    for (const char digit : digits) {
      plain = plain && digit >= '0' && digit <= '9';
      number = number * 10 + static_cast<uint64_t>(digit - '0');
    }
    if (plain && number < count) ++present;
  }
  set.count = count - present;
  for (uint32_t i = 0; i < looked_at && set.first.size() < std::min<size_t>(set.count, RankSet::kNamed); ++i) {
    if (table.find(fmt::format("{}{}", prefix, i)) == table.end()) set.first.push_back(static_cast<int>(i));
  }
  return set;
}

StoreServer::StoreServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
StoreServer::~StoreServer() = default;

Result<std::unique_ptr<StoreServer>> StoreServer::open(const StoreServerOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  state->clock = &options.network->clock();
  Result<std::unique_ptr<Poller>> poller = options.network->make_poller();
  TUTTI_TRY(poller.status());
  state->poller = std::move(poller).value();
  std::array<std::byte, 16> instance{};
  options.random->fill(instance);
  state->instance.assign(reinterpret_cast<const char*>(instance.data()), instance.size());
  TUTTI_TRY(state->listen());
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(state)));
}

void StoreServer::step() {
  State& state = *state_;
  state.ready.clear();
  state.poller->wait(Deadline{0}, &state.ready);
  for (const uint64_t token : state.ready) {
    if (token < state.listeners.size()) {
      state.accept(static_cast<size_t>(token));
    } else {
      state.serve(token);
    }
  }
  state.expire();
  state.flush();
  state.bury();
}

void StoreServer::close() {
  State& state = *state_;
  state.flush();
  for (const auto& listener : state.listeners) state.poller->forget(listener->fd());
  state.listeners.clear();
  for (auto& [token, connection] : state.connections) state.kill(token, connection);
  state.bury();
}

int StoreServer::fd() const noexcept { return state_->poller->fd(); }

uint64_t StoreServer::next_ns() const noexcept {
  uint64_t next = state_->accept_again_ns;
  if (state_->pending == 0) return next;
  for (const auto& [token, connection] : state_->connections) {
    if (!connection.handshake) continue;
    next = std::min(next, connection.deadline_ns);
    break;
  }
  return next;
}

Poller& StoreServer::poller() noexcept { return *state_->poller; }
const std::vector<Endpoint>& StoreServer::endpoints() const noexcept { return state_->endpoints; }

bool StoreServer::finished(uint32_t size) const {
  const std::string prefix = exchange_done_prefix({});
  // From the last rank down: while a job is coming up, the answer is then mostly found at once.
  for (uint32_t rank = size; rank-- > 0;) {
    const auto found = state_->table.find(fmt::format("{}{}", prefix, rank));
    if (found == state_->table.end() || *found->second == "0") return false;
  }
  for (const auto& [token, connection] : state_->connections) {
    if (!connection.writer.empty()) return false;
  }
  return true;
}

void StoreServer::set(std::string_view key, std::string_view value) {
  state_->store(key, std::make_shared<const std::string>(value));
  state_->flush();
  state_->bury();
}

bool StoreServer::get(std::string_view key, std::string* value) const {
  const auto found = state_->table.find(key);
  if (found == state_->table.end()) return false;
  *value = *found->second;
  return true;
}

size_t StoreServer::client_count() const noexcept { return state_->connections.size() - state_->pending; }
size_t StoreServer::pending_count() const noexcept { return state_->pending; }

uint64_t StoreServer::memory_bytes() const noexcept {
  uint64_t bytes = state_->value_bytes;
  for (const auto& [token, connection] : state_->connections) bytes += sizeof connection + connection.reader.memory_bytes();
  return bytes;
}

}  // namespace tutti
