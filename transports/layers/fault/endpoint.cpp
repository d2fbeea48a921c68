// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

#include <memory>
#include <utility>

namespace tutti::fault {
namespace {

Endpoint& self(void* host) { return *static_cast<Endpoint*>(host); }
const tutti_tp_host_t& outer(void* host) { return *self(host).host; }

/// The inner endpoint's host: everything goes on to the real one, but a peer that is gone ends what is kept back first.
void fill_host(tutti_tp_host_t& table) {
  table.struct_size = sizeof table;
  table.abi_version = TUTTI_TP_ABI_VERSION;
  table.log = [](void* host, int level, const char* line) { outer(host).log(outer(host).host, level, line); };
  table.alloc = [](void* host, size_t bytes, size_t alignment) { return outer(host).alloc(outer(host).host, bytes, alignment); };
  table.free = [](void* host, void* memory) { outer(host).free(outer(host).host, memory); };
  table.clock_ns = [](void* host) { return outer(host).clock_ns(outer(host).host); };
  table.random = [](void* host, void* bytes, size_t count) { outer(host).random(outer(host).host, bytes, count); };
  table.mac = [](void* host, const void* message, size_t bytes, uint8_t mac[32]) {
    outer(host).mac(outer(host).host, message, bytes, mac);
  };
  table.setting = [](void* host, const char* name) { return outer(host).setting(outer(host).host, name); };
  table.peer_gone = [](void* host, uint32_t peer, int cause, const char* text) {
    self(host).end_peer(peer);
    outer(host).peer_gone(outer(host).host, peer, cause, text);
  };
  table.notified = [](void* host, uint32_t peer, const void* notice, size_t bytes) {
    outer(host).notified(outer(host).host, peer, notice, bytes);
  };
}

}  // namespace

Endpoint::Endpoint(const Plan& of_plan, const tutti_tp_open_t& arguments)
    : plan(of_plan),
      host(arguments.host),
      rank(arguments.rank),
      random_state(of_plan.seed() + 0x9e3779b97f4a7c15u * (arguments.rank + 1)),
      sent(arguments.size),
      gone(arguments.size) {
  fill_host(own_host);
  own_host.host = this;
}

/// splitmix64, as in sim.
bool Endpoint::chance(uint32_t percent) {
  if (percent == 0) return false;
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (z ^ (z >> 31)) % 100 < percent;
}

uint64_t Endpoint::due_ns() {
  if (!chance(plan.rules().delay_percent)) return now_ns();
  return now_ns() + (plan.rules().max_delay_ns == 0 ? 0 : (random_state >> 8) % (plan.rules().max_delay_ns + 1));
}

void Endpoint::count(uint32_t peer) {
  ++sent[peer];
  for (const tutti::fault::Rules::Cut& cut : plan.rules().cuts) {
    if (cut.rank != rank || cut.peer != peer || cut.after_messages != sent[peer]) continue;
    under().cut(inner, peer);
    end_peer(peer);
    broken.push_back({peer, "rank " + std::to_string(peer) + ": the link broke after " + std::to_string(sent[peer]) +
                                " messages, as planned"});
  }
}

void Endpoint::end_held(Channel& channel, tutti_status_t status) {
  for (const Channel::Held& one : std::exchange(channel.held, {})) {
    one.op->status = status;
    one.op->done = 1;
  }
}

void Endpoint::end_peer(uint32_t peer) {
  gone[peer] = true;
  for (Channel* channel : channels) {
    if (channel->peer == peer) end_held(*channel, TUTTI_ERR_PEER_FAILED);
  }
}

/// Sends go on in their order; the first that may not yet holds up those behind it.
uint32_t Endpoint::release_held(bool all) {
  uint32_t events = 0;
  for (Channel* channel : channels) {
    while (!channel->held.empty() && (all || channel->held.front().due_ns <= now_ns())) {
      const Channel::Held one = channel->held.front();
      const tutti_status_t status = under().post_send(channel->inner, one.data, one.bytes, one.mark, one.op);
      if (status == TUTTI_TP_AGAIN) break;
      channel->held.pop_front();
      ++events;
      if (status == TUTTI_OK) {
        count(channel->peer);
      } else {
        one.op->status = status;
        one.op->done = 1;
      }
    }
  }
  return events;
}

uint32_t Endpoint::tell_broken() {
  const std::vector<Broken> all = std::exchange(broken, {});
  for (const Broken& one : all) host->peer_gone(host->host, one.peer, TUTTI_TP_GONE_FAILED, one.text.c_str());
  return static_cast<uint32_t>(all.size());
}

namespace {

tutti_status_t open(const tutti_tp_open_t* arguments, tutti_tp_endpoint_t** endpoint) {
  if (arguments->world == nullptr || arguments->rank >= arguments->size) return TUTTI_ERR_ARGUMENT;
  const Plan& plan = *static_cast<const Plan*>(arguments->world);
  auto made = std::make_unique<Endpoint>(plan, *arguments);
  tutti_tp_open_t beneath = *arguments;
  beneath.host = &made->own_host;
  beneath.world = plan.inner_world();
  const tutti_status_t status = plan.inner().open(&beneath, &made->inner);
  if (status == TUTTI_OK) *endpoint = reinterpret_cast<tutti_tp_endpoint_t*>(made.release());
  return status;
}

void close(tutti_tp_endpoint_t* handle) {
  Endpoint* endpoint = of(handle);
  const uint64_t give_up_ns = endpoint->now_ns() + TUTTI_TP_LINGER_NS;
  const auto waiting = [&] {
    for (const Channel* channel : endpoint->channels) {
      if (!channel->held.empty()) return true;
    }
    return false;
  };
  // Virtual time stands still within a call: there the number of rounds is the bound.
  for (int rounds = 0; waiting() && rounds < 1'000'000 && endpoint->now_ns() < give_up_ns; ++rounds) {
    if (endpoint->release_held(true) == 0) endpoint->under().progress(endpoint->inner);
  }
  for (Channel* channel : endpoint->channels) endpoint->end_held(*channel, TUTTI_ERR_ABORTED);
  endpoint->under().close(endpoint->inner);
  for (const Channel* channel : endpoint->channels) delete channel;
  delete endpoint;
}

void cut(tutti_tp_endpoint_t* handle, uint32_t peer) {
  Endpoint* endpoint = of(handle);
  endpoint->under().cut(endpoint->inner, peer);
  if (peer < endpoint->gone.size()) endpoint->end_peer(peer);
}

tutti_status_t notify(tutti_tp_endpoint_t* handle, uint32_t peer, const void* notice, size_t bytes) {
  Endpoint* endpoint = of(handle);
  if (bytes <= TUTTI_TP_NOTICE_MAX_BYTES && endpoint->chance(endpoint->plan.rules().again_percent)) return TUTTI_TP_AGAIN;
  return endpoint->under().notify(endpoint->inner, peer, notice, bytes);
}

uint32_t progress(tutti_tp_endpoint_t* handle) {
  Endpoint* endpoint = of(handle);
  uint32_t events = endpoint->release_held(false);
  events += endpoint->under().progress(endpoint->inner);
  return events + endpoint->tell_broken();
}

}  // namespace

void fill_endpoint_functions(tutti_tp_table_t& table) {
  table.open = open;
  table.close = close;
  table.cut = cut;
  table.notify = notify;
  table.progress = progress;
  table.address = [](tutti_tp_endpoint_t* endpoint, void* buffer, size_t capacity, size_t* bytes) {
    return of(endpoint)->under().address(of(endpoint)->inner, buffer, capacity, bytes);
  };
  table.set_peer = [](tutti_tp_endpoint_t* endpoint, uint32_t peer, const void* address, size_t bytes) {
    return of(endpoint)->under().set_peer(of(endpoint)->inner, peer, address, bytes);
  };
  table.start = [](tutti_tp_endpoint_t* endpoint) { return of(endpoint)->under().start(of(endpoint)->inner); };
  table.link = [](tutti_tp_endpoint_t* endpoint, uint32_t peer, tutti_tp_link_t* link) {
    return of(endpoint)->under().link(of(endpoint)->inner, peer, link);
  };
  table.connect = [](tutti_tp_endpoint_t* endpoint, uint32_t peer) {
    return of(endpoint)->under().connect(of(endpoint)->inner, peer);
  };
  table.fd = [](tutti_tp_endpoint_t*) { return -1; };
  table.arm = [](tutti_tp_endpoint_t*) {};
  table.disarm = [](tutti_tp_endpoint_t*) {};
  if (table.counter == nullptr) return;
  table.counter = [](tutti_tp_endpoint_t* endpoint, uint32_t index, const char** name, uint64_t* value) {
    return of(endpoint)->under().counter(of(endpoint)->inner, index, name, value);
  };
}

}  // namespace tutti::fault
