// SPDX-FileCopyrightText: The Tutti authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "bootstrap/bootstrap.hpp"

namespace tutti {
namespace {

constexpr uint64_t kAbortCheckNs = 20'000'000;
constexpr uint64_t kLongestSleepNs = 200'000'000;

}  // namespace

Result<JobInfo> find_job(BootstrapOptions options) {
  Result<std::unique_ptr<Bootstrap>> bootstrap = Bootstrap::start(std::move(options));
  TUTTI_TRY(bootstrap.status());
  while (true) {
    const Result<bool> done = (*bootstrap)->step();
    TUTTI_TRY(done.status());
    if (*done) return (*bootstrap)->take();
    (*bootstrap)->wait(Deadline{});
  }
}

std::unique_ptr<Exchange> start_exchange(JobInfo& job, const BootstrapOptions& options, std::string card, std::string room) {
  ExchangeOptions exchange;
  exchange.store = job.store.get();
  exchange.clock = &options.network->clock();
  exchange.random = options.random;
  exchange.rank = job.rank;
  exchange.size = job.size;
  exchange.card = std::move(card);
  exchange.deadline = job.deadline;
  exchange.version = job.version;
  exchange.room = std::move(room);
  return std::make_unique<Exchange>(std::move(exchange));
}

Result<std::vector<std::string>> exchange_cards(JobInfo& job, const BootstrapOptions& options, std::string card,
                                                std::string room) {
  const Clock& clock = options.network->clock();
  const std::unique_ptr<Exchange> exchange = start_exchange(job, options, std::move(card), std::move(room));
  while (true) {
    if (job.host) job.host->step();
    const Result<bool> done = exchange->step();
    TUTTI_TRY(done.status());
    if (*done) return exchange->take_cards();
    if (options.abort != nullptr && options.abort->load()) return error(TUTTI_ERR_ABORTED, "the start of the job was aborted");
    const bool stepped = job.host && !options.host_thread;
    const uint64_t cap = stepped                                                  ? 1'000'000
                         : options.abort != nullptr || job.deadline.passed(clock) ? kAbortCheckNs
                                                                                  : kLongestSleepNs;
    uint64_t until = Deadline::after(clock, cap).at_ns;
    if (!job.deadline.passed(clock)) until = std::min(until, job.deadline.at_ns);
    // The exchange meets the same error at its next step, and knows what it means there.
    (void)job.store->wait(Deadline{until}).ok();
  }
}

Result<UniqueIdHost> create_unique_id(const BootstrapOptions& options) {
  std::vector<std::string> addresses = options.addresses;
  if (addresses.empty()) {
    Result<std::vector<std::string>> chosen = choose_local_addresses(*options.config, false);
    TUTTI_TRY(chosen.status());
    addresses = std::move(chosen).value();
    if (std::find(addresses.begin(), addresses.end(), "127.0.0.1") == addresses.end()) {
      addresses.insert(addresses.begin(), "127.0.0.1");  // ranks on this host need no network
    }
  }
  Invitation invitation;
  options.random->fill(invitation.job);
  invitation.version = options.version;
  invitation.secret = Secret::generate(*options.random);
  StoreServerOptions server;
  server.network = options.network;
  server.random = options.random;
  server.log = options.log;
  server.secret = invitation.secret;
  server.job_id = invitation.job_id();
  server.version = options.version;
  for (const std::string& address : addresses) {
    server.addresses.push_back({address, 0});
    // As many as fit: ports have five digits at most.
    for (Endpoint& endpoint : invitation.servers = server.addresses) endpoint.port = 65535;
    if (invitation.encode().ok()) continue;
    server.addresses.pop_back();
    break;
  }
  Result<PortRange> ports = PortRange::parse(options.config->text(Setting::port_range));
  TUTTI_TRY(ports.status());
  server.ports = *ports;
  Result<std::unique_ptr<StoreHost>> host = StoreHost::open(server, 0, options.host_thread, options.start_thread);
  TUTTI_TRY(host.status());
  invitation.servers = (*host)->endpoints();
  const Result<std::array<std::byte, Invitation::kBytes>> bytes = invitation.encode();
  TUTTI_TRY(bytes.status());
  UniqueIdHost made{};
  static_assert(sizeof made.id.bytes == Invitation::kBytes);
  std::copy_n(reinterpret_cast<const unsigned char*>(bytes->data()), bytes->size(), made.id.bytes);
  made.host = std::move(host).value();
  return made;
}

}  // namespace tutti
