// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/context.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include "cards.hpp"
#include "transport/loader.hpp"
#include "transport_host.hpp"

namespace tutti {
namespace {

constexpr uint64_t kLastNoticesNs = 500'000'000;  // news of a failure may take this long before all is closed
constexpr uint64_t kLeastSlotBytes = 64;

constexpr uint64_t kFarewellNs = 1'000'000'000;

const SettingInfo& info(Setting setting) { return all_settings()[static_cast<size_t>(setting)]; }

std::string log_file(const Config& config, uint32_t rank) {
  std::string path = config.text(Setting::log_file);
  if (const size_t at = path.find("%r"); at != std::string::npos) path.replace(at, 2, std::to_string(rank));
  return path;
}

LogLevel log_level(const Config& config) {
  const std::string& word = config.choice(Setting::log_level);
  for (const auto& [name, level] : {std::pair{"error", LogLevel::error},
                                    {"warn", LogLevel::warn},
                                    {"info", LogLevel::info},
                                    {"debug", LogLevel::debug},
                                    {"trace", LogLevel::trace}})
    if (word == name) return level;
  return LogLevel::warn;
}

std::shared_ptr<LogSink> first_sink(const Hooks& hooks) { return hooks.has_log() ? hooks.log_sink() : make_stderr_sink(); }

}  // namespace

Context::Context(ContextOptions options)
    : config_(options.config),
      hooks_(options.hooks),
      options_(std::move(options)),
      log_(first_sink(hooks_), log_level(config_), "tutti"),
      network_(make_system_network()) {}

Result<std::shared_ptr<Context>> Context::create(ContextOptions options) {
  std::shared_ptr<Context> context(new Context(std::move(options)));
  if (Status met = context->meet(); !met.ok()) return met;
  return context;
}

Context::~Context() {
  control_.reset();
  if (engine_) engine_->send_last_notices(Deadline::after(clock_, kLastNoticesNs));
  for (const auto& transport : transports_) transport->set_engine(nullptr);
  engine_.reset();
  transports_.clear();
  // Who serves the rendezvous stays until all have met; and if they did not, until those who come a little later know.
  if (job_.host && !job_.host->finished()) {
    const Deadline farewell = Deadline::after(clock_, kFarewellNs);
    job_.host->linger({std::max(job_.deadline.at_ns, farewell.at_ns)}, farewell);
  }
}

Status Context::meet() {
  TUTTI_TRY(find_job_info());
  // Must be equal on all ranks; those of rank 0 hold.
  for (const Setting setting : kAlgorithmSettings) agreed_[std::string(info(setting).name)] = config_.text(setting);
  read_tuning_file();
  agreed_[std::string(info(Setting::check).name)] = config_.choice(Setting::check);
  agreed_[std::string(info(Setting::deterministic).name)] = config_.flag(Setting::deterministic) ? "on" : "off";
  fabric_ = std::make_unique<Fabric>(rank_, size_);
  if (size_ > 1) {
    TUTTI_TRY(open_transports());
    TUTTI_TRY(exchange_addresses());
    TUTTI_TRY(start_transports());
    job_.store.reset();
  } else {
    TUTTI_TRY(take_topology({make_topology_card(config_, job_.host_identity, rank_, size_)}));
  }
  return start_engine();
}

Status Context::find_job_info() {
  bootstrap_.config = &config_;
  bootstrap_.log = &log_;
  bootstrap_.random = &random_;
  bootstrap_.network = network_.get();
  bootstrap_.environment = process_environment();
  bootstrap_.unique_id = options_.unique_id;
  bootstrap_.store = options_.store;
  bootstrap_.rank = options_.rank;
  bootstrap_.size = options_.size;
  bootstrap_.start_thread = [this](std::function<void()> body) { return hooks_.start_thread(std::move(body)); };
  Result<JobInfo> job = find_job(bootstrap_);
  if (!job) return job.status();
  job_ = std::move(*job);
  rank_ = static_cast<uint32_t>(job_.rank);
  size_ = static_cast<uint32_t>(job_.size);
  std::memcpy(&world_id_, job_.job.data(), sizeof world_id_);
  world_id_ <<= 16;
  if (const std::string path = log_file(config_, rank_); !path.empty() && !hooks_.has_log()) {
    try {
      log_ = Log(make_file_sink(path), log_level(config_));
    } catch (const std::exception& e) {
      return error(TUTTI_ERR_CONFIG, "log_file: {}", e.what());
    }
  }
  log_.set_tag(fmt::format("tutti {}", rank_));
  if (!options_.warning.empty()) log_.write(rank_ == 0 ? LogLevel::warn : LogLevel::info, "{}", options_.warning);
  return Status();
}

Status Context::open_transports() {
  Result<std::vector<LoadedTransport>> loaded = load_transports(config_, log_, options_.built_in);
  if (!loaded) return loaded.status();
  std::string bind_addresses;
  for (const std::string& address : job_.addresses) bind_addresses += (bind_addresses.empty() ? "" : ",") + address;
  const TransportHost::Services services{&log_, &hooks_, &clock_, &random_, &job_.secret, &config_};
  for (const LoadedTransport& one : *loaded) {
    auto transport = std::make_unique<TransportHost>(one.table, services);
    tutti_tp_open_t args{};
    args.rank = rank_;
    args.size = size_;
    std::copy(job_.job.begin(), job_.job.end(), reinterpret_cast<std::byte*>(args.job_id));
    args.host_identity = job_.host_identity.c_str();
    args.bind_addresses = bind_addresses.c_str();
    if (const tutti_status_t status = transport->open(args); status != TUTTI_OK) {
      log_.info("transport {} ({}) does not start here: {}", one.table->name, one.origin, status_name(status));
      note_trouble(one.table->name, transport->last_line(), status);
      continue;
    }
    transports_.push_back(std::move(transport));
  }
  if (transports_.empty()) return error(TUTTI_ERR_CONNECT, "no transport starts here: {}", trouble_);
  return Status();
}

Status Context::exchange_addresses() {
  AddressCard own;
  own.topology = make_topology_card(config_, job_.host_identity, rank_, size_);
  own.settings = agreed_;
  for (const auto& transport : transports_) {
    Result<std::string> address = transport->address();
    if (!address) return address.status();
    own.addresses[transport->name()] = std::move(*address);
  }
  Result<std::vector<std::string>> cards = exchange_cards(job_, bootstrap_, own.encode(), "addresses");
  if (!cards) return cards.status();
  std::vector<std::string> topology_cards;
  for (uint32_t r = 0; r < size_; ++r) {
    Result<AddressCard> card = AddressCard::decode((*cards)[r], r);
    if (!card) return card.status();
    topology_cards.push_back(std::move(card->topology));
    if (r == 0) agreed_ = card->settings;
    peer_addresses_.push_back(std::move(card->addresses));
  }
  return take_topology(topology_cards);
}

Status Context::take_topology(const std::vector<std::string>& cards) {
  Result<JobTopology> topology = read_topology_cards(cards);
  if (!topology) return topology.status();
  topology_ = std::move(*topology);
  return Status();
}

Status Context::start_transports() {
  StartCard own;
  for (const auto& transport : transports_) {
    const char* name = transport->name();
    bool usable = true;
    for (uint32_t r = 0; r < size_ && usable; ++r) {
      const auto address = peer_addresses_[r].find(name);
      if (address == peer_addresses_[r].end()) continue;
      usable = transport->table()->set_peer(transport->endpoint(), r, address->second.data(), address->second.size()) == TUTTI_OK;
    }
    const tutti_status_t status = usable ? transport->start(job_.deadline) : TUTTI_ERR_PROTOCOL;
    own.started[name] = status == TUTTI_OK;
    if (status != TUTTI_OK) {
      log_.info("transport {} does not start here: {}", name, status_name(status));
      note_trouble(name, transport->last_line(), status);
    }
  }
  for (uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    bool slots = false;
    for (const auto& transport : transports_) {
      tutti_tp_link_t link{};
      link.struct_size = sizeof link;
      if (!own.started[transport->name()] || peer_addresses_[r].count(transport->name()) == 0) continue;
      if (transport->table()->link(transport->endpoint(), r, &link) != TUTTI_OK || !(link.caps & TUTTI_TP_CAP_SLOTS)) continue;
      slots = true;
      own.min_slot_bytes = std::min(own.min_slot_bytes, link.slot_bytes);
    }
    own.node_slots &= slots || topology().node(r) != topology().node(rank_);
  }
  Result<std::vector<std::string>> cards = exchange_cards(job_, bootstrap_, own.encode());
  if (!cards) return cards.status();
  return choose_routes(*cards);
}

// Both ends of a pair compare the same numbers, so that both choose the same transport.
Status Context::choose_routes(const std::vector<std::string>& cards) {
  uint64_t slot_bytes = UINT64_MAX;
  std::vector<StartCard> starts;
  for (uint32_t r = 0; r < size_; ++r) {
    Result<StartCard> card = StartCard::decode(cards[r], r);
    if (!card) return card.status();
    slot_bytes = std::min(slot_bytes, card->min_slot_bytes);
    node_slots_ = node_slots_ && card->node_slots;
    starts.push_back(std::move(*card));
  }
  if (slot_bytes < kLeastSlotBytes)
    return error(TUTTI_ERR_PROTOCOL, "a rank has slots of {} bytes; {} are the least", slot_bytes, kLeastSlotBytes);
  max_segment_bytes_ = slot_bytes == UINT64_MAX ? 256 * 1024 : slot_bytes;
  std::erase_if(transports_, [&](const auto& transport) { return !starts[rank_].started[transport->name()]; });
  for (const auto& transport : transports_) fabric_->add_transport({transport->table(), transport->endpoint()});
  std::string unreachable;
  for (uint32_t r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    PeerRoute route;
    uint64_t best_ns = UINT64_MAX;
    for (size_t t = 0; t < transports_.size(); ++t) {
      const auto started = starts[r].started.find(transports_[t]->name());
      tutti_tp_link_t link{};
      link.struct_size = sizeof link;
      if (started == starts[r].started.end() || !started->second ||
          transports_[t]->table()->link(transports_[t]->endpoint(), r, &link) != TUTTI_OK || link.latency_ns >= best_ns)
        continue;
      best_ns = link.latency_ns;
      route.transport = static_cast<int>(t);
      route.carrier = link.caps & TUTTI_TP_CAP_SLOTS ? Carrier::slots : Carrier::messages;
      route.slot_bytes = link.caps & TUTTI_TP_CAP_SLOTS ? link.slot_bytes : UINT64_MAX;
    }
    if (route.transport < 0)
      unreachable += fmt::format("{}{} (on {})", unreachable.empty() ? "" : ", ", r, topology_.found.place(r).host_name);
    fabric_->set_route(r, std::move(route));
  }
  note_links(starts);
  if (!unreachable.empty())
    return error(TUTTI_ERR_CONNECT,
                 "no common transport to rank {}: check TUTTI_TRANSPORTS on both ends{}{}; TUTTI_LOG_LEVEL=info says more",
                 unreachable, trouble_.empty() ? "" : "; here ", trouble_);
  return Status();
}

void Context::note_links(const std::vector<StartCard>& starts) {
  std::set<std::string> names;
  for (const StartCard& start : starts) {
    for (const auto& [name, started] : start.started) {
      if (started) names.insert(name);
    }
  }
  own_links_.names.assign(names.begin(), names.end());
  peer_counts_.resize(transports_.size());
  for (uint32_t r = 0; r < size_; ++r) {
    const int transport = r == rank_ ? -1 : fabric_->route(r).transport;
    if (transport < 0) continue;
    const bool here = topology().node(r) == topology().node(rank_);
    PeerCount& peers = peer_counts_[static_cast<size_t>(transport)];
    ++(here ? peers.within_node : peers.between_nodes);
    const auto place = std::distance(names.begin(), names.find(transports_[static_cast<size_t>(transport)]->name()));
    (here ? own_links_.within_node : own_links_.between_nodes) |= uint64_t{1} << std::min<ptrdiff_t>(place, 63);
  }
}

void Context::note_trouble(const char* transport, const std::string& line, tutti_status_t status) {
  trouble_ += fmt::format("{}{}: {}", trouble_.empty() ? "" : "; ", transport, line.empty() ? status_name(status) : line);
}

Status Context::start_engine() {
  EngineOptions options;
  options.clock = &clock_;
  options.log = &log_;
  options.spin_ns = config_.duration_ns(Setting::spin);
  options.yield = is_oversubscribed(topology_.found, rank_);
  options.timer = !config_.flag(Setting::control_thread);
  engine_ = std::make_unique<Engine>(*fabric_, options);
  TUTTI_TRY(engine_->open());
  for (const auto& transport : transports_) transport->set_engine(engine_.get());
  collect_counter_names();
  if (size_ > 1 && config_.flag(Setting::control_thread)) {
    control_ = std::make_unique<ControlThread>(*engine_, clock_);
    TUTTI_TRY(control_->start([this](std::function<void()> body) { return hooks_.start_thread(std::move(body)); }));
  }
  return Status();
}

const std::string& Context::agreed(Setting setting) const { return agreed_.at(std::string(info(setting).name)); }

const std::shared_ptr<void>& Context::attachment(const std::function<std::shared_ptr<void>()>& make) {
  const std::lock_guard<std::mutex> hold(attachment_mutex_);
  if (!attachment_) attachment_ = make();
  return attachment_;
}

// ---- counters -----------------------------------------------------------------------------------------------------------

namespace {
constexpr const char* kOwnCounters[] = {"engine.operations", "engine.sleeps", "engine.failures", "requests.kept_bytes"};
}

void Context::collect_counter_names() {
  for (const char* name : kOwnCounters) counter_names_.emplace_back(name);
  peer_counts_.resize(transports_.size());
  for (const auto& transport : transports_) {
    counter_names_.push_back(fmt::format("{}.node_peers", transport->name()));
    counter_names_.push_back(fmt::format("{}.remote_peers", transport->name()));
  }
  for (const auto& transport : transports_) {
    const char* name = nullptr;
    uint64_t value = 0;
    for (uint32_t i = 0;
         transport->table()->counter && transport->table()->counter(transport->endpoint(), i, &name, &value) == TUTTI_OK; ++i)
      counter_names_.push_back(fmt::format("{}.{}", transport->name(), name));
  }
}

const char* Context::counter(size_t index, uint64_t* value) {
  if (index >= counter_names_.size()) return nullptr;
  if (index < std::size(kOwnCounters)) {
    const EngineCounters counters = engine_->counters();
    const uint64_t values[] = {counters.operations, counters.sleeps, counters.failures, requests_.kept_bytes()};
    *value = values[index];
    return counter_names_[index].c_str();
  }
  index -= std::size(kOwnCounters);
  if (index < 2 * peer_counts_.size()) {
    const PeerCount& peers = peer_counts_[index / 2];
    *value = index % 2 == 0 ? peers.within_node : peers.between_nodes;
    return counter_names_[index + std::size(kOwnCounters)].c_str();
  }
  index -= 2 * peer_counts_.size();
  engine_->exclusively([&] {
    size_t left = index;
    for (const auto& transport : transports_) {
      const char* name = nullptr;
      uint64_t one = 0;
      for (uint32_t i = 0;
           transport->table()->counter && transport->table()->counter(transport->endpoint(), i, &name, &one) == TUTTI_OK; ++i)
        if (left-- == 0) *value = one;
    }
  });
  return counter_names_[index + std::size(kOwnCounters) + 2 * peer_counts_.size()].c_str();
}

}  // namespace tutti
