// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tutti::tcp {
namespace {

constexpr std::size_t kMaxHot = 4;           // above that one epoll_wait is cheaper than a look at each socket
constexpr std::uint32_t kLookAtAllEvery = 16;

tutti_status_t status_of(int error_number) {
  switch (error_number) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case EADDRINUSE:
      return TUTTI_ERR_RESOURCE;
    case ENOMEM:
      return TUTTI_ERR_MEMORY;
    default:
      return TUTTI_ERR_SYSTEM;
  }
}

}  // namespace

Endpoint::Endpoint(const tutti_tp_open_t& arguments)
    : host_(arguments.host), machine_(hash_text(arguments.host_identity)), peers_(arguments.size) {
  std::memcpy(identity_.job_id.data(), arguments.job_id, sizeof arguments.job_id);
  identity_.rank = arguments.rank;
  host_.random(identity_.incarnation.data(), identity_.incarnation.size());
  host_.account(static_cast<std::int64_t>(sizeof *this + peers_.size() * sizeof(Peer)));
}

Endpoint::~Endpoint() = default;

// ---- set-up ----

tutti_status_t Endpoint::open(const char* bind_addresses) {
  if (!host_.read_settings(&settings_)) return TUTTI_ERR_CONFIG;
  identity_.window_bytes = settings_.window_bytes;
  if (bind_addresses == nullptr || *bind_addresses == '\0') {
    host_.log(TUTTI_LOG_INFO, "tcp: not used: there is no address to listen on");
    return TUTTI_ERR_UNSUPPORTED;
  }
  const bool polling = poller_.open();
  if (polling) timer_ = Descriptor(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!polling || !timer_.valid() || !poller_.add(timer_.get(), this, EPOLLIN)) {
    const int error = errno;
    host_.log(TUTTI_LOG_INFO, "tcp: cannot start: epoll or timer: %s", std::strerror(error));
    return status_of(error);
  }
  return open_listeners(bind_addresses);
}

tutti_status_t Endpoint::open_listeners(const std::string& addresses) {
  int error = EADDRNOTAVAIL;
  for (std::size_t at = 0; at <= addresses.size() && listeners_.size() < kMaxAddresses;) {
    const std::size_t comma = std::min(addresses.find(',', at), addresses.size());
    const std::string text = addresses.substr(at, comma - at);
    at = comma + 1;
    Address address;
    if (!parse_address(text, &address)) {
      host_.log(TUTTI_LOG_INFO, "tcp: '%s' is no address that others can connect to: skipped", text.c_str());
      continue;
    }
    auto listener = std::make_unique<Listener>(static_cast<ListenerOwner&>(*this), counters_);
    const int failed = listener->open(address, settings_, host_.random_u64());
    if (failed == 0) {
      listeners_.push_back(std::move(listener));
      continue;
    }
    error = failed;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    if (failed == EMFILE) {
      host_.log(TUTTI_LOG_INFO, "tcp: no descriptor left to listen on %s: %zu listeners needed, the limit of all is %llu",
                text.c_str(), listeners_.size() + 1, static_cast<unsigned long long>(limit.rlim_cur));
      return TUTTI_ERR_RESOURCE;
    }
    host_.log(TUTTI_LOG_INFO, "tcp: cannot listen on %s, ports %u-%u: %s", text.c_str(), settings_.first_port,
              settings_.last_port, std::strerror(failed));
  }
  return listeners_.empty() ? status_of(error) : TUTTI_OK;
}

tutti_status_t Endpoint::address(void* buffer, std::size_t capacity, std::size_t* bytes) const {
  Contact contact;
  contact.incarnation = identity_.incarnation;
  contact.machine = machine_;
  for (const auto& listener : listeners_) contact.addresses.push_back(listener->address());
  const std::vector<std::uint8_t> encoded = encode_contact(contact);
  if (encoded.size() > capacity) return TUTTI_ERR_ARGUMENT;
  std::memcpy(buffer, encoded.data(), encoded.size());
  *bytes = encoded.size();
  return TUTTI_OK;
}

tutti_status_t Endpoint::set_peer(std::uint32_t peer, const void* address, std::size_t bytes) {
  if (peer >= peers_.size()) return TUTTI_ERR_RANK;
  Contact contact;
  if (!decode_contact(address, bytes, &contact)) {
    host_.log(TUTTI_LOG_INFO, "tcp: the address of rank %u is malformed (%zu bytes)", peer, bytes);
    return TUTTI_ERR_PROTOCOL;
  }
  const auto* first = static_cast<const std::uint8_t*>(address);
  std::vector<std::uint8_t>& stored = peers_[peer].contact;
  host_.account(static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(stored.size()));
  stored.assign(first, first + bytes);
  return TUTTI_OK;
}

/// Only now are connections taken: before, they would be of ranks that this one does not know yet. They wait in the kernel.
tutti_status_t Endpoint::start() {
  if (started_) return TUTTI_OK;
  for (const auto& listener : listeners_) {
    if (!poller_.add(listener->fd(), listener.get(), EPOLLIN)) return status_of(errno);
  }
  started_ = true;
  return TUTTI_OK;
}

bool Endpoint::reachable(std::uint32_t peer) const {
  if (peer == identity_.rank || !knows(peer)) return false;
  Contact contact;
  if (!decode_contact(peers_[peer].contact.data(), peers_[peer].contact.size(), &contact)) return false;
  for (const Address& theirs : contact.addresses) {
    for (const auto& listener : listeners_) {
      if (listener->address().ipv6 == theirs.ipv6) return true;
    }
  }
  return false;
}

tutti_status_t Endpoint::link_info(std::uint32_t peer, tutti_tp_link_t* link) const {
  if (peer >= peers_.size()) return TUTTI_ERR_RANK;
  if (!reachable(peer)) return TUTTI_ERR_UNSUPPORTED;
  const bool same_machine = load_le<std::uint64_t>(peers_[peer].contact.data() + 18) == machine_;
  link->caps = TUTTI_TP_CAP_MESSAGES;
  link->slot_bytes = UINT64_MAX;
  link->latency_ns = same_machine ? 7'000 : 15'000;
  link->bandwidth_mbps = same_machine ? 2'500 : 1'200;
  return TUTTI_OK;
}

Link* Endpoint::link_of(std::uint32_t peer) {
  if (!knows(peer) || peer == identity_.rank) return nullptr;
  if (peers_[peer].link == nullptr) peers_[peer].link = std::make_unique<Link>(*this, peer);
  return peers_[peer].link.get();
}

tutti_status_t Endpoint::connect(std::uint32_t peer) {
  Link* link = link_of(peer);
  if (link == nullptr) return TUTTI_ERR_RANK;
  if (link->state() == LinkState::kUp) return TUTTI_OK;
  if (link->state() != LinkState::kDown) return link->gone_status();
  want(*link);
  return TUTTI_TP_AGAIN;
}

tutti_status_t Endpoint::channel_open(std::uint32_t peer, std::uint64_t id, int direction, Channel** channel) {
  Link* link = link_of(peer);
  if (link == nullptr) return TUTTI_ERR_RANK;
  return link->open_channel(id, direction, channel);
}

tutti_status_t Endpoint::notify(std::uint32_t peer, const void* notice, std::size_t bytes) {
  if (bytes > TUTTI_TP_NOTICE_MAX_BYTES) return TUTTI_ERR_ARGUMENT;
  Link* link = link_of(peer);
  return link == nullptr ? TUTTI_ERR_RANK : link->notify(notice, bytes);
}

void Endpoint::cut(std::uint32_t peer) {
  Link* link = link_of(peer);
  if (link == nullptr) return;
  forget_attempt(peer);
  link->cut();
}

// ---- progress ----

void Endpoint::set_hot(Link& link, bool hot) {
  if (hot == (link.hot_index != Link::kNotHot)) return;
  if (hot) {
    link.hot_index = hot_.size();
    hot_.push_back(&link);
    return;
  }
  hot_.back()->hot_index = link.hot_index;
  hot_[link.hot_index] = hot_.back();
  hot_.pop_back();
  link.hot_index = Link::kNotHot;
}

/// While few links are awaited, reading their sockets outright saves the epoll_wait before each message.
std::uint32_t Endpoint::poll_hot() {
  std::uint32_t events = 0;
  for (std::size_t i = hot_.size(); i > 0; --i) {
    if (i <= hot_.size()) events += hot_[i - 1]->receive();
  }
  return events;
}

void Endpoint::poll_all(int timeout_ms) {
  epoll_event found[64];
  ++counters_.system_calls;
  const int count = ::epoll_wait(poller_.fd(), found, 64, timeout_ms);
  for (int i = 0; i < count; ++i) static_cast<Pollable*>(found[i].data.ptr)->ready(found[i].events);
  buried_.clear();
}

std::uint32_t Endpoint::progress() {
  events_ = 0;
  const bool direct = !hot_.empty() && hot_.size() <= kMaxHot;
  if (direct) poll_hot();
  const bool busy_elsewhere = look_ || blocked_ > 0 || !attempts_.empty() || !negotiations_.empty();
  if (!direct || busy_elsewhere || ++skipped_ >= kLookAtAllEvery) {
    skipped_ = 0;
    look_ = false;
    poll_all(0);
  }
  if (!deferred_.empty()) deliver();
  return events_;
}

void Endpoint::defer_gone(std::uint32_t peer, int cause, const std::string& why) {
  if (closing_) return;
  deferred_.push_back({peer, cause, "rank " + std::to_string(peer) + ": " + why});
}

void Endpoint::defer_notice(std::uint32_t peer, const void* notice, std::size_t bytes) {
  if (closing_) return;
  deferred_.push_back({peer, -1, std::string(static_cast<const char*>(notice), bytes)});
}

void Endpoint::deliver() {
  delivering_.swap(deferred_);  // a callback may bring new ones
  for (const Deferred& item : delivering_) {
    ++events_;
    if (item.cause < 0) {
      host_.notified(item.peer, item.text.data(), item.text.size());
    } else {
      host_.peer_gone(item.peer, item.cause, item.text.c_str());
    }
  }
  delivering_.clear();
}

void Endpoint::arm() {
  look_ = true;
  if (!deferred_.empty()) schedule(0);
}

// ---- the end ----

void Endpoint::close() {
  closing_ = true;
  // Taken out by name: a forked child may hold copies of the sockets, which would keep them in the epoll set.
  for (const auto& listener : listeners_) poller_.remove(listener->fd());
  listeners_.clear();
  for (auto entry = attempts_.begin(); entry != attempts_.end();) {
    const std::uint32_t peer = (entry++)->first;
    const Link* link = peers_[peer].link.get();
    if (link == nullptr || !link->has_output()) forget_attempt(peer);
  }
  const std::uint64_t give_up = host_.now_ns() + TUTTI_TP_LINGER_NS;
  for (;;) {
    bool all_left = true;
    for (Peer& peer : peers_) {
      if (peer.link != nullptr && !peer.link->left()) all_left = false;
    }
    if (all_left || host_.now_ns() >= give_up) break;
    poll_all(1);
  }
  for (Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->end_operations_at_close();
  }
  negotiations_.clear();
  peers_.clear();
}

tutti_status_t Endpoint::counter(std::uint32_t index, const char** name, std::uint64_t* value) const {
  const std::pair<const char*, std::uint64_t> all[] = {
      {"memory_bytes", host_.memory_bytes()},
      {"bytes_sent", counters_.bytes_sent},
      {"bytes_received", counters_.bytes_received},
      {"messages_sent", counters_.messages_sent},
      {"messages_received", counters_.messages_received},
      {"system_calls", counters_.system_calls},
      {"connections", counters_.connections},
      {"strangers_dropped", counters_.strangers_dropped},
  };
  if (index >= std::size(all)) return TUTTI_ERR_ARGUMENT;
  *name = all[index].first;
  *value = all[index].second;
  return TUTTI_OK;
}

}  // namespace tutti::tcp
