// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
// How two endpoints that may both want to connect come to one connection. Either side may connect. When both do, the lower
// rank's connection wins, but only once it has shown to lead to the right peer: until then the lower rank takes the other's.

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "endpoint.hpp"

namespace tutti::tcp {
namespace {

constexpr std::uint32_t kMaxIncoming = 256;
constexpr std::uint64_t kConnectAllowedNs = 2'000'000'000;
constexpr std::uint64_t kIncomingAllowedNs = 10'000'000'000;
constexpr std::uint64_t kListenAgainNs = 100'000'000;
constexpr std::uint64_t kFirstRetryNs = 10'000'000;
constexpr std::uint64_t kRefusedNs = 1'000'000'000;
constexpr unsigned kMaxRetryShift = 6;  // 640 ms

}  // namespace

// ---- outgoing ----

Endpoint::Attempt& Endpoint::attempt_of(std::uint32_t peer) {
  const auto [entry, fresh] = attempts_.try_emplace(peer);
  if (fresh) decode_contact(peers_[peer].contact.data(), peers_[peer].contact.size(), &entry->second.contact);
  return entry->second;
}

void Endpoint::want(Link& link) {
  Attempt& attempt = attempt_of(link.peer());
  if (attempt.wanted) return;
  attempt.wanted = true;
  attempt.deadline_ns = host_.now_ns() + settings_.connect_timeout_ns;
  schedule(attempt.deadline_ns);
  if (attempt.incoming == nullptr) try_next_address(link.peer(), attempt);
}

bool Endpoint::wanted(std::uint32_t peer) const {
  const auto entry = attempts_.find(peer);
  return entry != attempts_.end() && entry->second.wanted;
}

void Endpoint::try_next_address(std::uint32_t peer, Attempt& attempt) {
  attempt.retry_at_ns = kNever;
  if (attempt.next_address == 0) attempt.all_refused = true;
  while (attempt.next_address < attempt.contact.addresses.size()) {
    const Address& address = attempt.contact.addresses[attempt.next_address++];
    const int error = start_connection(peer, attempt, address);
    if (error == 0) return;
    attempt.all_refused = attempt.all_refused && error == ECONNREFUSED;
    attempt.last_failure = address.text() + ": " + std::strerror(error);
  }
  try_later(peer, attempt);
}

void Endpoint::try_later(std::uint32_t peer, Attempt& attempt) {
  if (attempt.contact.addresses.empty()) attempt.last_failure = "it has no address";
  const std::uint64_t step = kFirstRetryNs << std::min(attempt.round, kMaxRetryShift);
  attempt.next_address = 0;
  ++attempt.round;
  const std::uint64_t now = host_.now_ns();
  attempt.retry_at_ns = now + step / 2 + host_.random_u64() % step;
  // Its listeners exist as long as it does: where nobody listens any more, nobody will.
  const bool lost = attempt.wanted && attempt.all_refused && attempt.incoming == nullptr &&
                    now >= attempt.deadline_ns - settings_.connect_timeout_ns + kRefusedNs;
  if (lost) attempt.retry_at_ns = attempt.deadline_ns = now;
  schedule(attempt.retry_at_ns);
  host_.log(TUTTI_LOG_DEBUG, "tcp: no connection to rank %u yet (%s)", peer, attempt.last_failure.c_str());
}

int Endpoint::start_connection(std::uint32_t peer, Attempt& attempt, const Address& address) {
  Descriptor fd = make_socket(address.ipv6, settings_);
  if (!fd.valid()) return errno;
  sockaddr_storage storage;
  const socklen_t bytes = address.to_sockaddr(&storage);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), bytes) != 0 && errno != EINPROGRESS) return errno;
  // A connection made at once shows as writable too: one path for both.
  auto made = std::make_unique<Negotiation>(owner(), poller_, counters_, std::move(fd),
                                            Handshake::connector(host_, identity_, peer, attempt.contact.incarnation), true);
  if (!made->watch()) return errno;
  // With one address there is nothing better to do than wait; with several each has its share.
  const std::size_t addresses = attempt.contact.addresses.size();
  const std::uint64_t share = settings_.connect_timeout_ns / (addresses == 1 ? 1 : 2 * addresses);
  made->deadline_ns = host_.now_ns() + std::min(kConnectAllowedNs, share);
  made->handshake_allowed_ns = share;
  schedule(made->deadline_ns);
  attempt.outgoing = made.get();
  negotiations_.push_back(std::move(made));
  return 0;
}

// ---- incoming ----

std::uint32_t Endpoint::incoming_count() const {
  std::uint32_t count = 0;
  for (const auto& negotiation : negotiations_) count += negotiation->handshake().is_connector() ? 0 : 1;
  return count;
}

/// The oldest that has not proved anything goes first.
void Endpoint::make_room_for_negotiation() {
  if (incoming_count() < kMaxIncoming) return;
  for (const auto& negotiation : negotiations_) {
    if (negotiation->handshake().is_connector() || negotiation->handshake().verified()) continue;
    drop_stranger(*negotiation, "too many connections that prove nothing");
    return bury(*negotiation);
  }
}

void Endpoint::accepted(Descriptor fd) {
  make_room_for_negotiation();
  send_at_once(fd.get());
  auto made = std::make_unique<Negotiation>(owner(), poller_, counters_, std::move(fd),
                                            Handshake::acceptor(host_, identity_), false);
  if (!made->watch()) return;
  made->deadline_ns = host_.now_ns() + std::min(kIncomingAllowedNs, settings_.connect_timeout_ns);
  schedule(made->deadline_ns);
  negotiations_.push_back(std::move(made));
}

void Endpoint::accept_failed(int error_number) {
  host_.log(TUTTI_LOG_WARN, "tcp: cannot accept connections for the moment: %s", std::strerror(error_number));
  for (const auto& listener : listeners_) poller_.remove(listener->fd());
  listen_again_at_ns_ = host_.now_ns() + kListenAgainNs;
  schedule(listen_again_at_ns_);
}

void Endpoint::drop_stranger(const Negotiation& negotiation, const std::string& why) {
  const std::uint64_t count = ++counters_.strangers_dropped;
  if (count > 32 && (count & (count - 1)) != 0) return;  // a flood must not fill the log
  host_.log(TUTTI_LOG_INFO, "tcp: dropped a connection from %s: %s (%llu so far)", peer_text(negotiation.fd()).c_str(),
            why.c_str(), static_cast<unsigned long long>(count));
}

Verdict Endpoint::decide(Negotiation& negotiation) {
  const Handshake& handshake = negotiation.handshake();
  const std::uint32_t peer = handshake.peer();
  Link* link = link_of(peer);
  if (link == nullptr || link->state() != LinkState::kDown || closing_) return Verdict::kRefuse;
  Contact contact;
  decode_contact(peers_[peer].contact.data(), peers_[peer].contact.size(), &contact);
  if (contact.incarnation != handshake.peer_incarnation()) return Verdict::kRefuse;
  Attempt& attempt = attempt_of(peer);
  if (attempt.outgoing != nullptr && identity_.rank < peer && attempt.outgoing->handshake().committed()) {
    return Verdict::kYield;
  }
  drop(attempt.outgoing);
  drop(attempt.incoming);  // the peer has given it up, or it would not try again
  attempt.incoming = &negotiation;
  attempt.retry_at_ns = kNever;
  return Verdict::kAccept;
}

// ---- ends of negotiations ----

void Endpoint::established(Negotiation& negotiation) {
  const std::uint32_t peer = negotiation.handshake().peer();
  Link* link = link_of(peer);
  Descriptor fd = negotiation.take_socket();
  const std::uint64_t window = negotiation.handshake().peer_window_bytes();
  bury(negotiation);
  Attempt& attempt = attempt_of(peer);
  if (attempt.outgoing == &negotiation) attempt.outgoing = nullptr;
  if (attempt.incoming == &negotiation) attempt.incoming = nullptr;
  forget_attempt(peer);
  if (link->state() != LinkState::kDown) return;
  ++counters_.connections;
  ++events_;
  link->up(std::move(fd), window);
  if (settings_.heartbeat_timeout_ns > 0 && silence_check_at_ns_ == kNever) {
    silence_check_at_ns_ = host_.now_ns() + settings_.heartbeat_timeout_ns / 4;
    schedule(silence_check_at_ns_);
  }
}

void Endpoint::ended(Negotiation& negotiation, const std::string& why) {
  const bool outgoing = negotiation.handshake().is_connector();
  const std::uint32_t peer = negotiation.handshake().peer();
  const auto entry = attempts_.find(peer);
  Attempt* attempt = entry == attempts_.end() ? nullptr : &entry->second;
  if (outgoing) {
    if (attempt != nullptr && attempt->outgoing == &negotiation) {
      attempt->outgoing = nullptr;
      attempt->all_refused = attempt->all_refused && negotiation.error_number() == ECONNREFUSED;
      attempt->last_failure = peer_text(negotiation.fd()) + ": " + why;
      if (attempt->contact.addresses.size() >= attempt->next_address && attempt->next_address > 0) {
        attempt->last_failure = attempt->contact.addresses[attempt->next_address - 1].text() + ": " + why;
      }
      const bool yielded = negotiation.lost_to_other_side();
      yielded || attempt->incoming != nullptr ? try_later(peer, *attempt) : try_next_address(peer, *attempt);
    }
  } else if (attempt != nullptr && attempt->incoming == &negotiation) {
    attempt->incoming = nullptr;
    attempt->last_failure = why;
    if (attempt->wanted) {
      try_later(peer, *attempt);
    } else {
      attempts_.erase(entry);
    }
  } else if (!negotiation.handshake().verified() && !negotiation.hung_up()) {
    drop_stranger(negotiation, why);
  }
  bury(negotiation);
}

void Endpoint::bury(Negotiation& negotiation) {
  negotiation.abandon();
  const auto entry = std::find_if(negotiations_.begin(), negotiations_.end(),
                                  [&](const auto& candidate) { return candidate.get() == &negotiation; });
  if (entry == negotiations_.end()) return;
  buried_.push_back(std::move(*entry));
  negotiations_.erase(entry);
}

void Endpoint::drop(Negotiation*& negotiation) {
  if (negotiation != nullptr) bury(*std::exchange(negotiation, nullptr));
}

void Endpoint::forget_attempt(std::uint32_t peer) {
  const auto entry = attempts_.find(peer);
  if (entry == attempts_.end()) return;
  drop(entry->second.outgoing);
  drop(entry->second.incoming);
  attempts_.erase(entry);
}

// ---- time ----

void Endpoint::schedule(std::uint64_t at_ns) {
  if (at_ns >= timer_at_ns_) return;
  timer_at_ns_ = at_ns;
  const std::uint64_t now = host_.now_ns();
  const std::uint64_t delay = at_ns > now ? at_ns - now : 1;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(delay / 1'000'000'000);
  when.it_value.tv_nsec = static_cast<long>(delay % 1'000'000'000);
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void Endpoint::ready(std::uint32_t) {
  std::uint64_t fired = 0;
  if (::read(timer_.get(), &fired, sizeof fired) < 0) return;
  timer_at_ns_ = kNever;
  on_time(host_.now_ns());
}

void Endpoint::on_time(std::uint64_t now) {
  std::vector<Negotiation*> late;
  for (const auto& negotiation : negotiations_) {
    if (now >= negotiation->deadline_ns) late.push_back(negotiation.get());
  }
  for (Negotiation* negotiation : late) {
    if (!negotiation->done()) ended(*negotiation, negotiation->connecting() ? "no answer" : "silent in the handshake");
  }
  std::vector<std::uint32_t> due;
  for (const auto& [peer, attempt] : attempts_) {
    if (now >= std::min(attempt.retry_at_ns, attempt.deadline_ns)) due.push_back(peer);
  }
  for (const std::uint32_t peer : due) {
    Attempt& attempt = attempts_[peer];
    if (now < attempt.deadline_ns) {
      try_next_address(peer, attempt);
      continue;
    }
    const std::string why =
        (attempt.all_refused ? "nobody listens at its addresses any more; last tried "
                             : "no connection within " + std::to_string(settings_.connect_timeout_ns / 1'000'000) +
                                   " ms (setting connect_timeout); last tried ") +
        attempt.last_failure;
    forget_attempt(peer);
    peers_[peer].link->fail(TUTTI_TP_GONE_UNREACHABLE, why);
  }
  if (now >= listen_again_at_ns_) {
    listen_again_at_ns_ = kNever;
    for (const auto& listener : listeners_) poller_.add(listener->fd(), listener.get(), EPOLLIN);
  }
  if (now >= silence_check_at_ns_) {
    check_silence();
    silence_check_at_ns_ = now + settings_.heartbeat_timeout_ns / 4;
  }
  for (const auto& negotiation : negotiations_) schedule(negotiation->deadline_ns);
  for (const auto& [peer, attempt] : attempts_) schedule(std::min(attempt.retry_at_ns, attempt.deadline_ns));
  schedule(std::min(listen_again_at_ns_, silence_check_at_ns_));
}

void Endpoint::check_silence() {
  for (Peer& peer : peers_) {
    if (peer.link == nullptr || peer.link->state() != LinkState::kUp) continue;
    const char* why = silence(peer.link->fd(), settings_.heartbeat_timeout_ns);
    if (why != nullptr) peer.link->fail(TUTTI_TP_GONE_FAILED, why);
  }
}

}  // namespace tutti::tcp
