// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "transport_host.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace tutti {

TransportHost::TransportHost(const tutti_tp_table_t* table, Services services) : table_(table), services_(services) {
  host_.struct_size = sizeof host_;
  host_.abi_version = TUTTI_TP_ABI_VERSION;
  host_.host = this;
  host_.log = log_line;
  host_.alloc = allocate;
  host_.free = release;
  host_.clock_ns = clock_ns;
  host_.random = random_bytes;
  host_.mac = keyed_hash;
  host_.setting = setting;
  host_.peer_gone = peer_gone;
  host_.notified = notified;
}

TransportHost::~TransportHost() { close(); }

tutti_status_t TransportHost::open(tutti_tp_open_t args) {
  args.struct_size = sizeof args;
  args.host = &host_;
  return table_->open(&args, &endpoint_);
}

Result<std::string> TransportHost::address() const {
  std::string bytes(TUTTI_TP_ADDRESS_MAX_BYTES, '\0');
  size_t count = 0;
  const tutti_status_t status = table_->address(endpoint_, bytes.data(), bytes.size(), &count);
  if (status != TUTTI_OK || count > bytes.size())
    return error(TUTTI_ERR_INTERNAL, "transport {} gave no address (status {})", name(), status);
  bytes.resize(count);
  return bytes;
}

tutti_status_t TransportHost::start(Deadline deadline) {
  for (;;) {
    table_->arm(endpoint_);
    const tutti_status_t status = table_->start(endpoint_);
    if (status != TUTTI_TP_AGAIN) {
      table_->disarm(endpoint_);
      return status;
    }
    if (deadline.passed(*services_.clock)) {
      table_->disarm(endpoint_);
      return TUTTI_ERR_TIMEOUT;
    }
    if (table_->progress(endpoint_) == 0) {
      pollfd wanted{table_->fd(endpoint_), POLLIN, 0};
      const int wait_ms = std::clamp(deadline.poll_ms(*services_.clock), 0, 5);
      ::poll(&wanted, wanted.fd >= 0 ? 1 : 0, wait_ms);
    }
    table_->disarm(endpoint_);
  }
}

void TransportHost::set_engine(Engine* engine) {
  engine_ = engine;
  if (engine && early_lost_) engine->on_events_lost();
  if (engine)
    for (Gone& gone : early_gone_) engine->on_peer_gone(gone.peer, gone.cause, std::move(gone.text));
  early_gone_.clear();
}

void TransportHost::close() noexcept {
  if (!endpoint_) return;
  table_->close(endpoint_);
  endpoint_ = nullptr;
}

void TransportHost::log_line(void* host, int level, const char* line) {
  auto* self = static_cast<TransportHost*>(host);
  if (!self->engine_) self->last_line_ = line;
  const int bounded = std::clamp(level, static_cast<int>(LogLevel::error), static_cast<int>(LogLevel::trace));
  self->services_.log->write(static_cast<LogLevel>(bounded), "{}: {}", self->name(), line);
}

void* TransportHost::allocate(void* host, size_t bytes, size_t alignment) {
  return static_cast<TransportHost*>(host)->services_.hooks->allocate(bytes, alignment);
}

void TransportHost::release(void* host, void* memory) { static_cast<TransportHost*>(host)->services_.hooks->release(memory); }

uint64_t TransportHost::clock_ns(void* host) { return static_cast<TransportHost*>(host)->services_.clock->now_ns(); }

void TransportHost::random_bytes(void* host, void* bytes, size_t count) {
  static_cast<TransportHost*>(host)->services_.random->fill({static_cast<std::byte*>(bytes), count});
}

void TransportHost::keyed_hash(void* host, const void* message, size_t bytes, uint8_t mac[32]) {
  const Mac result = keyed_mac(*static_cast<TransportHost*>(host)->services_.secret, "transport",
                               {static_cast<const std::byte*>(message), bytes});
  std::memcpy(mac, result.data(), result.size());
}

const char* TransportHost::setting(void* host, const char* name) {
  auto* self = static_cast<TransportHost*>(host);
  try {
    const std::lock_guard<std::mutex> hold(self->settings_mutex_);
    if (const auto known = self->settings_.find(name); known != self->settings_.end()) return known->second.c_str();
    std::optional<std::string> value = self->services_.config->lookup(name);
    if (!value) return nullptr;
    return self->settings_.emplace(name, std::move(*value)).first->second.c_str();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void TransportHost::peer_gone(void* host, uint32_t peer, int cause, const char* text) {
  // Called from C: nothing is thrown.
  auto* self = static_cast<TransportHost*>(host);
  std::string line;
  try {
    line = fmt::format("{}: {}", self->name(), text);
    if (!self->engine_) self->early_gone_.push_back({peer, cause, line});
  } catch (const std::bad_alloc&) {
    self->early_lost_ |= !self->engine_;
  }
  if (self->engine_) self->engine_->on_peer_gone(peer, cause, std::move(line));
}

void TransportHost::notified(void* host, uint32_t peer, const void* notice, size_t bytes) {
  auto* self = static_cast<TransportHost*>(host);
  if (self->engine_) self->engine_->on_notice(peer, notice, bytes);
}

}  // namespace tutti
