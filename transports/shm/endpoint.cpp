// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// An endpoint among its peers.
#include "endpoint.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace tutti::shm {
namespace {

constexpr uint64_t kLatencyNs = 150;
constexpr uint64_t kBandwidthMbps = 8'000;
/// A host that polls without ever sleeping looks at the clock every so many calls, and at the kernel every so often.
constexpr uint32_t kQuietCalls = 32;
constexpr uint64_t kWatchEveryNs = 1'000'000;

std::string rank_text(uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

Endpoint::~Endpoint() {
  if (desk_.hall() != nullptr) desk_.hall()->settle(nullptr);
  stop_setup();
  if (share_) share_->node->depart(share_->self, RankState::kLeft);
  for (const auto& [key, channel] : channels_) delete channel;
}

Peer* Endpoint::find(uint32_t rank) {
  if (!share_) return nullptr;
  const uint32_t index = share_->node->roster.index_of(rank);
  if (index == UINT32_MAX || peers_[index].state == Peer::State::kUnlinked) return nullptr;
  return &peers_[index];
}

tutti_status_t Endpoint::link(uint32_t peer, tutti_tp_link_t* link) const {
  if (peer >= size_) return TUTTI_ERR_RANK;
  if (!started_) return TUTTI_TP_AGAIN;
  if (find(peer) == nullptr) return TUTTI_ERR_UNSUPPORTED;
  link->caps = TUTTI_TP_CAP_SLOTS;
  link->slot_bytes = share_->node->slot_bytes;
  link->latency_ns = kLatencyNs;
  link->bandwidth_mbps = kBandwidthMbps;
  return TUTTI_OK;
}

tutti_status_t Endpoint::connect(uint32_t peer) const {
  if (peer >= size_) return TUTTI_ERR_RANK;
  if (!started_) return TUTTI_TP_AGAIN;
  const Peer* found = find(peer);
  if (found == nullptr) return TUTTI_ERR_UNSUPPORTED;
  return found->state == Peer::State::kAlive ? TUTTI_OK : TUTTI_ERR_PEER_FAILED;
}

void Endpoint::cut(uint32_t rank) {
  Peer* peer = find(rank);
  if (peer == nullptr || peer->state == Peer::State::kFailed) return;
  peer->state = Peer::State::kFailed;
  tell_cut(*peer);
}

void Endpoint::tell_cut(const Peer& peer) {
  const Node& node = *share_->node;
  node.arena->cut_bits(peer.index, share_->self / 64).fetch_or(uint64_t{1} << (share_->self % 64), std::memory_order_seq_cst);
  node.call_attention(peer.index);
}

/// The peer broke the protocol.
void Endpoint::reject(Peer& peer) {
  gone(peer, Peer::State::kFailed, TUTTI_TP_GONE_FAILED, rank_text(peer.rank) + " wrote nonsense into shared memory");
  tell_cut(peer);
}

tutti_status_t Endpoint::channel_open(uint32_t rank, uint64_t id, bool sends, Channel** channel) {
  Peer* peer = find(rank);
  if (peer == nullptr) return rank >= size_ ? TUTTI_ERR_RANK : TUTTI_ERR_UNSUPPORTED;
  if (sends ? peer->state != Peer::State::kAlive : peer->state == Peer::State::kFailed) return TUTTI_ERR_PEER_FAILED;
  const auto [entry, is_new] = channels_.try_emplace({peer->index, id, sends}, nullptr);
  if (!is_new) return TUTTI_ERR_ARGUMENT;  // it is open
  tutti_status_t status = TUTTI_ERR_MEMORY;
  try {
    status = make_channel(*peer, id, sends, entry->second);
  } catch (const std::bad_alloc&) {
    // Told below, like any other failure.
  }
  if (status == TUTTI_OK) {
    *channel = entry->second;
  } else {
    channels_.erase(entry);
  }
  return status;
}

tutti_status_t Endpoint::make_channel(Peer& peer, uint64_t id, bool sends, Channel*& channel) {
  auto made = std::make_unique<Channel>();
  made->endpoint = this;
  made->peer = &peer;
  made->id = id;
  if (sends) free_closed();
  make_room_to_close();
  if (sends) {
    made->sender = std::make_unique<Sender>(*share_, peer.index);
    if (const Outcome opened = made->sender->open({peer.index, false, id}); !opened.ok()) {
      host_.log(TUTTI_LOG_INFO, "no channel to " + rank_text(peer.rank) + ": " + opened.text);
      return opened.status;
    }
  } else {
    const RingKey key{share_->self, false, id};
    made->receiver = std::make_unique<Receiver>(*share_, peer.index, key);
    // Earlier uses of the id that we closed before the writer opened them are still to come.
    const auto orphan =
        std::find_if(orphans_.begin(), orphans_.end(), [&](const Orphan& o) { return o.writer == peer.index && o.key == key; });
    if (orphan != orphans_.end()) {
      made->receiver->skip(orphan->uses);
      orphans_.erase(orphan);
    }
  }
  channel = made.release();
  return TUTTI_OK;
}

void Endpoint::channel_close(Channel* channel) {
  channels_.erase({channel->peer->index, channel->id, channel->sender != nullptr});
  const Peer& peer = *channel->peer;
  if (channel->sender) {
    channel->sender->close();
    if (can_free(*channel->sender)) {
      channel->sender->free_memory();
    } else {
      closed_.push_back(std::move(channel->sender));
    }
    if (peer.state == Peer::State::kAlive) share_->node->call_attention(peer.index);
  } else if (!channel->receiver->close() && peer.state == Peer::State::kAlive) {
    orphans_.push_back({peer.index, channel->receiver->key(), channel->receiver->skipped() + 1});
  }
  delete channel;
}

/// Whether the reader will not look at the ring any more. A link that was merely cut is no proof of that.
bool Endpoint::can_free(const Sender& sender) const {
  const RankState state = share_->node->state(sender.reader());
  return sender.abandoned() || state == RankState::kLeft || state == RankState::kDead;
}

void Endpoint::free_closed() {
  std::erase_if(closed_, [this](const std::unique_ptr<Sender>& sender) {
    if (!can_free(*sender)) return false;
    sender->free_memory();
    return true;
  });
}

/// Closing any of the channels that are open allocates nothing.
void Endpoint::make_room_to_close() {
  const auto make_room = [this](auto& left_behind) {
    const size_t most = left_behind.size() + channels_.size();
    if (left_behind.capacity() < most) left_behind.reserve(std::max(most, 2 * left_behind.capacity()));
  };
  make_room(closed_);
  make_room(orphans_);
}

void Endpoint::settle_orphans() {
  std::erase_if(orphans_, [this](Orphan& orphan) {
    Receiver receiver{*share_, orphan.writer, orphan.key};
    receiver.skip(orphan.uses - 1);
    if (!receiver.close()) {
      orphan.uses = receiver.skipped() + 1;
      return peers_[orphan.writer].state != Peer::State::kAlive;
    }
    return true;
  });
}

tutti_status_t Endpoint::channel_trouble(Channel& channel, tutti_status_t status) {
  Peer& peer = *channel.peer;
  if (status == TUTTI_ERR_PROTOCOL) {
    reject(peer);
  } else if (status == TUTTI_ERR_RESOURCE) {
    host_.log(TUTTI_LOG_INFO, "a message to " + rank_text(peer.rank) + " has no room: " + share_->last_failure.text);
  } else if (status == TUTTI_TP_AGAIN && peer.state != Peer::State::kAlive) {
    return TUTTI_ERR_PEER_FAILED;
  }
  return status;
}

tutti_status_t Endpoint::notify(uint32_t rank, const void* notice, size_t bytes) {
  if (bytes > TUTTI_TP_NOTICE_MAX_BYTES) return TUTTI_ERR_ARGUMENT;
  Peer* peer = find(rank);
  if (peer == nullptr) return rank >= size_ ? TUTTI_ERR_RANK : TUTTI_ERR_UNSUPPORTED;
  if (peer->state != Peer::State::kAlive) return TUTTI_ERR_PEER_FAILED;
  if (!peer->notices_out) {
    auto sender = std::make_unique<Sender>(*share_, peer->index);
    if (const Outcome opened = sender->open({peer->index, true, 0}); !opened.ok()) {
      host_.log(TUTTI_LOG_INFO, "no notices to " + rank_text(rank) + ": " + opened.text);
      return opened.status;
    }
    peer->notices_out = std::move(sender);
  }
  void* slot = nullptr;
  tutti_status_t status = peer->notices_out->reserve(bytes, &slot);
  if (status == TUTTI_OK) {
    if (bytes > 0) std::memcpy(slot, notice, bytes);
    status = peer->notices_out->commit(bytes, 0);
  }
  if (status != TUTTI_OK) return status;
  ++notices_sent_;
  const Node& node = *share_->node;
  node.arena->notice_bits(peer->index, share_->self / 64).fetch_or(uint64_t{1} << (share_->self % 64), std::memory_order_seq_cst);
  node.call_attention(peer->index);
  return TUTTI_OK;
}

uint32_t Endpoint::take_notices(Peer& peer) {
  if (peer.state == Peer::State::kFailed || peer.state == Peer::State::kUnlinked) return 0;
  if (!peer.notices_in) {
    peer.notices_in.emplace(*share_, peer.index, RingKey{share_->self, true, 0});
  }
  uint32_t taken = 0;
  for (;;) {
    const void* slot = nullptr;
    uint64_t bytes = 0;
    uint32_t mark = 0;
    const tutti_status_t status = peer.notices_in->peek(&slot, &bytes, &mark);
    if (status == TUTTI_TP_AGAIN) return taken;
    if (status != TUTTI_OK || bytes > TUTTI_TP_NOTICE_MAX_BYTES) {
      reject(peer);
      return taken;
    }
    // A copy: the host may call us from its callback.
    std::byte notice[TUTTI_TP_NOTICE_MAX_BYTES];
    std::memcpy(notice, slot, bytes);
    peer.notices_in->release();
    ++taken;
    host_.notified(peer.rank, notice, bytes);
  }
}

uint32_t Endpoint::take_flagged_notices() {
  uint32_t taken = 0;
  for (uint32_t word = 0; word * 64 < peers_.size(); ++word) {
    std::atomic<uint64_t>& bits = share_->node->arena->notice_bits(share_->self, word);
    if (bits.load(std::memory_order_relaxed) == 0) continue;
    for (uint64_t set = bits.exchange(0, std::memory_order_seq_cst); set != 0; set &= set - 1) {
      const uint32_t index = word * 64 + static_cast<uint32_t>(std::countr_zero(set));
      if (index < peers_.size()) taken += take_notices(peers_[index]);
    }
  }
  return taken;
}

void Endpoint::gone(Peer& peer, Peer::State state, int cause, std::string text) {
  if (peer.state == Peer::State::kFailed || peer.state == Peer::State::kUnlinked || peer.state == state) return;
  departures_.push_back({peer.rank, cause, std::move(text)});  // first: what there is no memory for is found again
  peer.state = state;
}

void Endpoint::take_cuts() {
  for (uint32_t word = 0; word * 64 < peers_.size(); ++word) {
    const std::atomic<uint64_t>& bits = share_->node->arena->cut_bits(share_->self, word);
    for (uint64_t set = bits.load(std::memory_order_seq_cst); set != 0; set &= set - 1) {
      const uint32_t index = word * 64 + static_cast<uint32_t>(std::countr_zero(set));
      if (index >= peers_.size()) break;
      Peer& peer = peers_[index];
      gone(peer, Peer::State::kFailed, TUTTI_TP_GONE_FAILED, rank_text(peer.rank) + " cut the link");
    }
  }
}

void Endpoint::take_departures() {
  for (Peer& peer : peers_) {
    if (peer.state != Peer::State::kAlive) continue;
    const RankState state = share_->node->state(peer.index);
    if (state == RankState::kLeft) {
      take_notices(peer);
      if (peer.state == Peer::State::kAlive) {
        gone(peer, Peer::State::kLeft, TUTTI_TP_GONE_LEFT, rank_text(peer.rank) + " left");
      }
    } else if (state == RankState::kDead) {
      gone(peer, Peer::State::kFailed, TUTTI_TP_GONE_FAILED, "the process of " + rank_text(peer.rank) + " ended");
    }
  }
}

/// Things that happen seldom.
uint32_t Endpoint::look_around() {
  const uint32_t taken = take_flagged_notices();
  take_cuts();
  take_departures();
  settle_orphans();
  free_closed();
  return taken + 1;
}

/// Asks the kernel: were we woken, has a process ended? Returns how often we were woken.
uint32_t Endpoint::watch_kernel() {
  const Node& node = *share_->node;
  uint64_t rings = 0;
  epoll_event events[16];
  const int count = ::epoll_wait(epoll_.get(), events, 16, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 >= node.watches.size()) {
      if (::read(node.bells[share_->self].get(), &rings, sizeof rings) == sizeof rings) rings_due_ -= static_cast<int64_t>(rings);
      continue;
    }
    const Watch& watch = node.watches[events[i].data.u64];
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watch.fd.get(), nullptr);
    for (const uint32_t index : node.roster.processes[watch.process]) node.depart(index, RankState::kDead);
  }
  // Still armed: the next one has to ring again. What happened in between, the host sees as progress counts as an event.
  std::atomic<uint32_t>& sleeping = bell().sleeping;
  if (armed_ && sleeping.load(std::memory_order_relaxed) == 0) {
    sleeping.exchange(1, std::memory_order_seq_cst);
    ++rings_due_;
    rings = std::max<uint64_t>(rings, 1);
  }
  look_ = count == 16 || rings_due_ > 0;
  return static_cast<uint32_t>(rings);
}

uint32_t Endpoint::deliver() {
  std::vector<Departure> told;
  told.swap(departures_);
  for (const Departure& departure : told) host_.peer_gone(departure.rank, departure.cause, departure.text);
  return static_cast<uint32_t>(told.size());
}

uint32_t Endpoint::progress() {
  if (!share_) {
    if (begun_ && !started_) advance();
    return 0;
  }
  if (++quiet_ >= kQuietCalls) [[unlikely]] {
    quiet_ = 0;
    const uint64_t now_ns = host_.clock_ns();
    if (now_ns >= next_watch_ns_) {
      next_watch_ns_ = now_ns + kWatchEveryNs;
      look_ = true;
    }
  }
  uint32_t events = 0;
  if (look_ || armed_) [[unlikely]]
    events += watch_kernel();
  if (const uint64_t attention = bell().attention.load(std::memory_order_acquire); attention != seen_attention_) [[unlikely]] {
    seen_attention_ = attention;
    events += look_around();
  }
  if (!departures_.empty()) [[unlikely]]
    events += deliver();
  return events;
}

void Endpoint::arm() {
  if (!share_ || armed_) return;
  armed_ = true;
  bell().sleeping.exchange(1, std::memory_order_seq_cst);
  // What came before the flag was up rang no bell.
  if (bell().attention.load(std::memory_order_seq_cst) != seen_attention_ || !departures_.empty()) {
    share_->node->write_bell(share_->self);
    ++rings_due_;
  }
}

void Endpoint::disarm() {
  if (!armed_) return;
  armed_ = false;
  // Who takes the flag down writes our eventfd, if not yet then a moment later.
  if (bell().sleeping.exchange(0, std::memory_order_seq_cst) == 0) ++rings_due_;
  look_ = true;
}

tutti_status_t Endpoint::counter(uint32_t index, const char** name, uint64_t* value) const {
  const Counters counts = share_ ? share_->counters : Counters{};
  const struct {
    const char* name;
    uint64_t value;
  } all[] = {
      {"memory_bytes", host_.allocated_bytes() + (share_ ? share_->pool.held_bytes() : 0)},
      {"arena_bytes", share_ ? share_->pool.used_bytes() : 0},
      {"channels", channels_.size()},
      {"channels_closing", closed_.size() + orphans_.size()},
      {"messages_sent", counts.slots_sent},
      {"bytes_sent", counts.bytes_sent},
      {"messages_received", counts.slots_received},
      {"bells_rung", counts.bells_rung},
      {"notices_sent", notices_sent_},
  };
  if (index >= std::size(all)) return TUTTI_ERR_ARGUMENT;
  *name = all[index].name;
  *value = all[index].value;
  return TUTTI_OK;
}

}  // namespace tutti::shm
