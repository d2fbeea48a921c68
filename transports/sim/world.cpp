// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "endpoint.hpp"

namespace tutti::sim {

World::World(uint64_t seed, Options options) : state_(std::make_unique<State>(seed, std::move(options))) {}

World::~World() = default;

State& state_of(void* world) { return *static_cast<World*>(world)->state_; }

bool World::step() {
  std::unique_lock lock(state_->mutex);
  return state_->step(lock);
}

uint64_t World::now_ns() const {
  const std::lock_guard lock(state_->mutex);
  return state_->now_ns;
}

uint64_t World::next_ns() const {
  const std::lock_guard lock(state_->mutex);
  return state_->events.empty() ? UINT64_MAX : state_->events.begin()->first.first;
}

uint64_t World::steps() const {
  const std::lock_guard lock(state_->mutex);
  return state_->steps;
}

uint64_t World::digest() const {
  const std::lock_guard lock(state_->mutex);
  return state_->digest;
}

uint64_t World::random_u64() {
  const std::lock_guard lock(state_->mutex);
  return state_->random_u64();
}

void World::random(void* bytes, size_t count) {
  const std::lock_guard lock(state_->mutex);
  auto* out = static_cast<unsigned char*>(bytes);
  while (count > 0) {
    const uint64_t value = state_->random_u64();
    const size_t part = std::min(count, sizeof value);
    std::memcpy(out, &value, part);
    out += part;
    count -= part;
  }
}

void World::call_at(uint64_t at_ns, std::function<void()> action) {
  const std::lock_guard lock(state_->mutex);
  state_->at(at_ns, std::move(action), true);
}

bool World::take_awake(uint32_t rank) {
  const std::lock_guard lock(state_->mutex);
  const bool was = state_->awake.at(rank);
  state_->awake[rank] = false;
  return was;
}

void World::crash(uint32_t rank) {
  const std::lock_guard lock(state_->mutex);
  state_->crash(rank);
}

bool World::crashed(uint32_t rank) const {
  const std::lock_guard lock(state_->mutex);
  return state_->crashed.at(rank);
}

void World::partition(const std::vector<uint32_t>& side) {
  const std::lock_guard lock(state_->mutex);
  state_->partition(side);
}

void World::heal() {
  const std::lock_guard lock(state_->mutex);
  state_->heal();
}

// ---- time and chance ----

State::State(uint64_t seed, Options chosen)
    : options(std::move(chosen)),
      random_state(seed),
      awake(options.size),
      apart(options.size),
      crashed(options.size) {
  options.max_delay_ns = std::max(options.max_delay_ns, options.min_delay_ns);
  options.slots = std::max<uint32_t>(options.slots, TUTTI_TP_MIN_SLOTS);
  options.again_percent = std::min<uint32_t>(options.again_percent, 95);
}

void State::at(uint64_t at_ns, Action action, bool outside) {
  events[{std::max(at_ns, now_ns), sequence++}] = {std::move(action), outside};
}

bool State::step(std::unique_lock<std::mutex>& lock) {
  if (events.empty()) return false;
  const auto first = events.begin();
  now_ns = first->first.first;
  const Event event = std::move(first->second);
  note(now_ns);
  note(first->first.second);
  ++steps;
  events.erase(first);
  if (event.outside) lock.unlock();
  event.action();
  return true;
}

/// splitmix64: the same numbers with every compiler and library.
uint64_t State::random_u64() {
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

uint64_t State::delay_ns() {
  const uint64_t span = options.max_delay_ns - options.min_delay_ns;
  return options.min_delay_ns + (span == 0 ? 0 : random_u64() % (span + 1));
}

/// AGAIN without a reason; the host is woken to try once more.
bool State::spurious(Endpoint& endpoint) {
  if (options.again_percent == 0 || random_u64() % 100 >= options.again_percent) return false;
  at(now_ns + options.min_delay_ns, [self = endpoint.shared_from_this()] { self->wake(); });
  return true;
}

void State::note(uint64_t what) { digest = (digest ^ what) * 1099511628211u; }

// ---- faults ----

bool State::separated(uint32_t a, uint32_t b) const { return apart[endpoints[a]->rank] != apart[endpoints[b]->rank]; }

void State::crash(uint32_t rank) {
  if (crashed.at(rank)) return;
  crashed[rank] = true;
  for (const auto& endpoint : endpoints) {
    if (endpoint->rank != rank || endpoint->closed) continue;
    endpoint->crashed = true;
    for (Channel* channel : endpoint->channels) {
      if (channel->direction != TUTTI_TP_SEND) continue;
      for (const MessagePtr& message : channel->pipe->unbuffered) message->cancelled = true;
    }
    for (auto& [numbers, pair] : pairs) {
      if (numbers.first != endpoint->number && numbers.second != endpoint->number) continue;
      const uint32_t other = numbers.first == endpoint->number ? numbers.second : numbers.first;
      if (pair.state == Pair::State::kUp) break_pair(endpoint->number, other, TUTTI_TP_GONE_FAILED, "it crashed");
    }
  }
}

void State::partition(const std::vector<uint32_t>& side) {
  heal();
  for (const uint32_t rank : side) apart.at(rank) = true;
  const uint64_t mine = ++partitions;
  for (auto& [numbers, pair] : pairs) {
    if (pair.state != Pair::State::kUp || !separated(numbers.first, numbers.second)) continue;
    const uint32_t both[2] = {numbers.first, numbers.second};
    for (const int i : {0, 1}) {
      const uint64_t silence_ns = endpoints[both[i]]->heartbeat_timeout_ns;
      if (silence_ns == 0) continue;
      at(now_ns + silence_ns, [this, mine, whom = both[i], about = both[1 - i]] {
        if (mine != partitions || !separated(whom, about)) return;
        this->pair(whom, about).state = Pair::State::kGone;
        tell_gone(whom, about, TUTTI_TP_GONE_FAILED, "nothing was heard of it for longer than heartbeat_timeout");
      });
    }
  }
}

/// What was held goes first: later messages of the same channels may arrive in this very moment.
void State::heal() {
  ++partitions;
  std::fill(apart.begin(), apart.end(), false);
  for (Held& message : std::exchange(held, {})) arrival(message.from, message.to, std::move(message.arrive));
}

// ---- links ----

void State::want(uint32_t from, uint32_t to) {
  Pair& between = pair(from, to);
  if (between.state == Pair::State::kUp) return;
  if (between.state == Pair::State::kGone) {
    const auto tell = [this, from, to, cause = between.gone_cause] { tell_gone(from, to, cause, "the link to it is gone"); };
    return at(now_ns + delay_ns(), tell);
  }
  between.wanted[from < to ? 0 : 1] = true;
  if (between.state == Pair::State::kConnecting) return;
  between.state = Pair::State::kConnecting;
  between.give_up_ns = now_ns + endpoints[from]->connect_timeout_ns;
  at(now_ns + 2 * delay_ns(), [this, from, to] { try_connect(std::min(from, to), std::max(from, to)); });
}

/// Why the two cannot be connected now, nullptr if they can.
const char* State::obstacle(uint32_t lower, uint32_t higher, bool* for_ever) const {
  const Endpoint& a = *endpoints[lower];
  const Endpoint& b = *endpoints[higher];
  const auto& waiting = pairs.at({lower, higher}).waiting;
  const auto absent = [&](const Endpoint& end) {
    const bool owes = std::any_of(waiting.begin(), waiting.end(), [&](const auto& one) { return one.from == end.number; });
    return end.crashed || (end.closed && !owes);
  };
  *for_ever = true;
  if (absent(a) || absent(b) || (a.closed && b.closed)) return "nobody listens at its address";
  if (a.proof != b.proof || a.job_id != b.job_id) return "it does not belong to this job";
  *for_ever = now_ns >= pairs.at({lower, higher}).give_up_ns;
  const bool known = a.number_of(b.rank) == higher && b.number_of(a.rank) == lower;
  if (!known || !a.started || !b.started || separated(lower, higher)) return "no connection within connect_timeout";
  return nullptr;
}

void State::try_connect(uint32_t lower, uint32_t higher) {
  Pair& between = pair(lower, higher);
  if (between.state != Pair::State::kConnecting) return;
  bool for_ever = false;
  const char* why = obstacle(lower, higher, &for_ever);
  if (why == nullptr) return connected(lower, higher);
  if (!for_ever) return at(now_ns + 1'000'000, [this, lower, higher] { try_connect(lower, higher); });
  between.state = Pair::State::kGone;
  between.gone_cause = TUTTI_TP_GONE_UNREACHABLE;
  between.waiting.clear();
  if (between.wanted[0]) tell_gone(lower, higher, TUTTI_TP_GONE_UNREACHABLE, why);
  if (between.wanted[1]) tell_gone(higher, lower, TUTTI_TP_GONE_UNREACHABLE, why);
}

void State::connected(uint32_t a, uint32_t b) {
  Pair& between = pair(a, b);
  between.state = Pair::State::kUp;
  for (const uint32_t number : {a, b}) {
    Endpoint& end = *endpoints[number];
    const Endpoint& other = *endpoints[number == a ? b : a];
    Endpoint::Peer& peer = end.peers[other.rank];
    if (!end.gone(other.rank)) peer.state = Endpoint::LinkState::kUp;
    end.wake();
  }
  for (Pair::Waiting& one : std::exchange(between.waiting, {})) {
    transmit(one.from, one.from == a ? b : a, one.bytes, one.order, std::move(one.arrive));
  }
  if (endpoints[a]->closed) goodbye(a, b);
  if (endpoints[b]->closed) goodbye(b, a);
}

void State::transmit(uint32_t from, uint32_t to, uint64_t bytes, const PipePtr& order, Action arrive) {
  Pair& between = pair(from, to);
  if (between.state == Pair::State::kGone) return want(from, to);
  if (between.state != Pair::State::kUp) {
    between.waiting.push_back({from, bytes, order, std::move(arrive)});
    return want(from, to);
  }
  Pair::Direction& direction = between.directions[from < to ? 0 : 1];
  const uint64_t start = std::max(now_ns, direction.busy_until_ns);
  direction.busy_until_ns = start + (options.bandwidth_mbps == 0 ? 0 : bytes * 1000 / options.bandwidth_mbps);
  uint64_t when = direction.busy_until_ns + delay_ns();
  if (!options.reorder) when = std::max(when, direction.last_arrival_ns);
  if (order != nullptr) {
    when = std::max(when, order->last_arrival_ns);
    order->last_arrival_ns = when;
  }
  direction.last_arrival_ns = std::max(direction.last_arrival_ns, when);
  at(when, [this, from, to, action = std::move(arrive)]() mutable { arrival(from, to, std::move(action)); });
}

void State::arrival(uint32_t from, uint32_t to, Action arrive) {
  if (pair(from, to).state != Pair::State::kUp) return;
  if (separated(from, to)) {
    held.push_back({from, to, std::move(arrive)});
    return;
  }
  const Endpoint& end = *endpoints[to];
  if (!end.closed && !end.crashed) arrive();
}

void State::break_pair(uint32_t from, uint32_t to, int cause, const char* why) {
  pair(from, to).state = Pair::State::kGone;
  pair(from, to).waiting.clear();
  at(now_ns + delay_ns(), [this, from, to, cause, why] { tell_gone(to, from, cause, why); });
}

void State::tell_gone(uint32_t whom, uint32_t about, int cause, const char* why) {
  Endpoint* end = endpoint(whom);
  if (end == nullptr || end->closed || end->crashed) return;
  // The endpoint it is about may have been unknown here, if an address was wrong.
  for (uint32_t rank = 0; rank < end->peers.size(); ++rank) {
    if (end->peers[rank].number != about) continue;
    end->gone_inbox.push_back({rank, cause, "rank " + std::to_string(rank) + ": " + why});
    return end->wake();
  }
}

/// After everything that was sent before.
void State::goodbye(uint32_t from, uint32_t to) {
  Pair& between = pair(from, to);
  const uint64_t when = std::max(between.directions[from < to ? 0 : 1].last_arrival_ns, now_ns + delay_ns());
  const auto leave = [this, from, to] {
    pair(from, to).state = Pair::State::kGone;
    tell_gone(to, from, TUTTI_TP_GONE_LEFT, "it left");
  };
  at(when, [this, from, to, leave] { arrival(from, to, leave); });
}

}  // namespace tutti::sim
