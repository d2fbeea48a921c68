// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace tutti::sim {
namespace {

constexpr char kAddressMark[8] = {'t', 'u', 't', 't', 'i', 's', 'i', 'm'};
constexpr uint32_t kMaxNotices = 64;  // under way to one peer

struct Address {
  char mark[sizeof kAddressMark];
  uint64_t number;
};

}  // namespace

Endpoint::Endpoint(State& of_world, const tutti_tp_open_t& arguments, uint32_t own_number)
    : world(&of_world), host(arguments.host), number(own_number), rank(arguments.rank), peers(arguments.size) {
  std::memcpy(job_id.data(), arguments.job_id, job_id.size());
  host->mac(host->host, job_id.data(), job_id.size(), proof.data());
  number_setting("connect_timeout", &connect_timeout_ns);
  number_setting("heartbeat_timeout", &heartbeat_timeout_ns);
}

Endpoint::~Endpoint() {
  for (const Channel* channel : channels) delete channel;
}

void Endpoint::number_setting(const char* name, uint64_t* value) const {
  const char* text = host->setting(host->host, name);
  if (text == nullptr || *text == '\0') return;
  char* end = nullptr;
  const unsigned long long parsed = std::strtoull(text, &end, 10);
  if (*end == '\0') *value = parsed;
}

// ---- set-up ----

tutti_status_t Endpoint::address(void* buffer, size_t capacity, size_t* bytes) const {
  if (capacity < sizeof(Address)) return TUTTI_ERR_ARGUMENT;
  Address own{};
  std::memcpy(own.mark, kAddressMark, sizeof own.mark);
  own.number = number;
  std::memcpy(buffer, &own, sizeof own);
  *bytes = sizeof own;
  return TUTTI_OK;
}

tutti_status_t Endpoint::set_peer(uint32_t peer, const void* bytes, size_t count) {
  if (peer >= peers.size()) return TUTTI_ERR_RANK;
  Address theirs{};
  if (count != sizeof theirs) return TUTTI_ERR_PROTOCOL;
  std::memcpy(&theirs, bytes, sizeof theirs);
  if (std::memcmp(theirs.mark, kAddressMark, sizeof theirs.mark) != 0) return TUTTI_ERR_PROTOCOL;
  const Endpoint* other = theirs.number < world->endpoints.size() ? world->endpoints[theirs.number].get() : nullptr;
  if (other == nullptr || other->rank != peer) return TUTTI_ERR_PROTOCOL;
  peers[peer].number = static_cast<uint32_t>(theirs.number);
  return TUTTI_OK;
}

/// The first call says AGAIN, so that hosts which do not ask twice are found out.
tutti_status_t Endpoint::start() {
  if (start_calls++ == 0) return TUTTI_TP_AGAIN;
  started = true;
  return TUTTI_OK;
}

tutti_status_t Endpoint::link(uint32_t peer, tutti_tp_link_t* link) const {
  if (peer >= peers.size()) return TUTTI_ERR_RANK;
  if (!usable(peer)) return TUTTI_ERR_UNSUPPORTED;
  const Options& options = world->options;
  uint32_t caps = TUTTI_TP_CAP_MESSAGES | TUTTI_TP_CAP_SLOTS;
  if (options.caps) caps = options.caps(std::min(rank, peer), std::max(rank, peer));
  if (caps == 0) return TUTTI_ERR_UNSUPPORTED;
  link->caps = caps;
  link->slot_bytes = (caps & TUTTI_TP_CAP_SLOTS) != 0 ? options.slot_bytes : UINT64_MAX;
  link->latency_ns = (options.min_delay_ns + options.max_delay_ns) / 2;
  link->bandwidth_mbps = options.bandwidth_mbps == 0 ? 1'000'000 : options.bandwidth_mbps;
  return TUTTI_OK;
}

tutti_status_t Endpoint::connect(uint32_t peer) {
  if (!usable(peer)) return TUTTI_ERR_RANK;
  if (gone(peer)) return peers[peer].gone_status;
  if (peers[peer].state == LinkState::kUp) return TUTTI_OK;
  world->want(number, peers[peer].number);
  return TUTTI_TP_AGAIN;
}

tutti_status_t Endpoint::notify(uint32_t peer, const void* notice, size_t bytes) {
  if (bytes > TUTTI_TP_NOTICE_MAX_BYTES) return TUTTI_ERR_ARGUMENT;
  if (!usable(peer)) return TUTTI_ERR_RANK;
  if (gone(peer)) return peers[peer].gone_status;
  if (world->spurious(*this) || peers[peer].notices >= kMaxNotices) return TUTTI_TP_AGAIN;
  ++peers[peer].notices;
  // By number: endpoints that hold each other would outlive their world.
  State* in = world;
  const uint32_t from = number;
  const uint32_t to = peers[peer].number;
  const auto delivered = [in, from, peer] {
    --in->endpoints[from]->peers[peer].notices;
    in->endpoints[from]->wake();
  };
  // Room for another one comes back when the host there takes this one: who is not driven holds its notifiers back.
  const auto taken_there = [in, from, to, delivered] { in->transmit(to, from, 0, nullptr, delivered); };
  const auto arrive = [in, to, taken_there, sender = rank, text = std::string(static_cast<const char*>(notice), bytes)] {
    Endpoint& there = *in->endpoints[to];
    there.notice_inbox.push_back({sender, text, taken_there});
    there.wake();
  };
  world->transmit(number, to, bytes, nullptr, arrive);
  return TUTTI_OK;
}

// ---- the end ----

void Endpoint::end_link(uint32_t peer, int cause) {
  peers[peer].state = cause == TUTTI_TP_GONE_LEFT ? LinkState::kLeft : LinkState::kFailed;
  peers[peer].gone_status = cause == TUTTI_TP_GONE_UNREACHABLE ? TUTTI_ERR_CONNECT : TUTTI_ERR_PEER_FAILED;
  for (Channel* channel : channels) {
    if (channel->peer != peer) continue;
    if (channel->direction == TUTTI_TP_SEND) {
      end_sends(*channel, peers[peer].gone_status);
      continue;
    }
    if (cause == TUTTI_TP_GONE_LEFT) {
      match(*channel);
    } else {
      channel->pipe->arrived.clear();
      channel->held = false;
    }
    end_receives(*channel, peers[peer].gone_status);
  }
}

void Endpoint::cut(uint32_t peer) {
  if (!usable(peer) || peers[peer].state == LinkState::kFailed) return;
  world->break_pair(number, peers[peer].number, TUTTI_TP_GONE_FAILED, "it cut the link");
  end_link(peer, TUTTI_TP_GONE_FAILED);
}

void Endpoint::close() {
  for (Channel* channel : channels) {
    if (crashed) {
      channel->receives.clear();
      channel->pipe->unbuffered.clear();
      continue;
    }
    if (channel->direction == TUTTI_TP_RECV) {
      end_receives(*channel, TUTTI_ERR_ABORTED);
      continue;
    }
    for (const MessagePtr& message : std::exchange(channel->pipe->unbuffered, {})) {
      if (!message->taken) buffer(*channel->pipe, *message, true);
      tutti_tp_op_t* op = std::exchange(message->op, nullptr);
      op->status = TUTTI_OK;
      op->done = 1;
    }
  }
  while (!channels.empty()) channel_close(channels.back());
  closed = true;
  if (crashed) return;
  for (uint32_t peer = 0; peer < peers.size(); ++peer) {
    if (peers[peer].state == LinkState::kUp) world->goodbye(number, peers[peer].number);
  }
}

// ---- progress ----

void Endpoint::wake() {
  if (!closed && !crashed) world->awake[rank] = true;
}

uint32_t Endpoint::progress(std::vector<Gone>* all_gone, std::vector<Notice>* notices) {
  if (crashed) return 0;
  uint32_t events = finish_taken();
  for (Channel* channel : std::exchange(dirty, {})) {
    channel->dirty = false;
    events += match(*channel);
  }
  for (Gone& one : std::exchange(gone_inbox, {})) {
    if (gone(one.peer)) continue;
    end_link(one.peer, one.cause);
    all_gone->push_back(std::move(one));
    ++events;
  }
  notices->swap(notice_inbox);
  for (const Notice& notice : *notices) notice.on_taken();
  return events + static_cast<uint32_t>(notices->size());
}

tutti_status_t Endpoint::counter(uint32_t index, const char** name, uint64_t* value) const {
  const std::pair<const char*, uint64_t> all[] = {
      {"memory_bytes", sizeof *this + memory_bytes},
      {"messages_sent", messages_sent},
      {"messages_received", messages_received},
      {"bytes_sent", bytes_sent},
      {"bytes_received", bytes_received},
  };
  if (index >= std::size(all)) return TUTTI_ERR_ARGUMENT;
  *name = all[index].first;
  *value = all[index].second;
  return TUTTI_OK;
}

}  // namespace tutti::sim
